package server

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A ReadFunc reads a resource. Variables are those of the template that the URI
// matches, nil for a resource that has its own URI. They are decoded, and a client
// has chosen them: ".." may be among them, slashes even where the template has
// none, and control characters. Whoever opens files by them uses [os.Root]. Those
// that are absent are empty; a list is the text of its items and of what stands
// between them. Contents without a URI get
// the one that was asked for, and are an empty text if they are neither text nor
// bytes. [NotFound], or nil, says that there is no such resource.
type ReadFunc func(ctx context.Context, call *Call, uri string, variables map[string]string) (*mcp.ReadResourceResult, error)

// A resource is a resource of a server.
type resource struct {
	read ReadFunc
}

// A template is a resource template of a server.
type template struct {
	resource
	pattern *uriPattern
}

// AddResource adds a resource, or replaces the one of its URI. It panics if the
// definition has no URI or no name.
func (s *Server) AddResource(definition mcp.Resource, read ReadFunc) {
	entry, err := mcp.NewJSON(definition)
	if definition.URI == "" || definition.Name == "" {
		err = errors.New("it needs a URI and a name")
	}
	must("resource", definition.URI, err)
	s.resources.add(definition.URI, entry, &resource{read})
}

// AddResourceTemplate adds a template of resources, or replaces the one of its
// URI template (RFC 6570). A resource of its own URI goes before all templates,
// and of several templates that match the first in the list counts. It panics
// if the definition has no name or no valid template.
func (s *Server) AddResourceTemplate(definition mcp.ResourceTemplate, read ReadFunc) {
	pattern, err := newPattern(definition.URITemplate)
	if err == nil && (definition.Name == "" || definition.URITemplate == "") {
		err = errors.New("it needs a URI template and a name")
	}
	must("resource template", definition.URITemplate, err)
	entry, err := mcp.NewJSON(definition)
	must("resource template", definition.URITemplate, err)
	s.templates.add(definition.URITemplate, entry, &template{resource{read}, pattern})
}

// RemoveResources removes resources. URIs of none are passed over.
func (s *Server) RemoveResources(uris ...string) { s.resources.remove(uris...) }

// RemoveResourceTemplates removes templates. URI templates of none are passed
// over.
func (s *Server) RemoveResourceTemplates(uriTemplates ...string) { s.templates.remove(uriTemplates...) }

// NotFound returns the error of a resource that there is not.
func NotFound(uri string) error {
	data := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)})
	return &jsonrpc.Error{Code: jsonrpc.CodeResourceNotFound, Message: "Resource not found", Data: data}
}

// TextContents returns the result of reading a resource that is text.
func TextContents(mimeType, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{MIMEType: mimeType, Text: &text}}}
}

// BlobContents returns the result of reading a resource that is bytes.
func BlobContents(mimeType string, blob []byte) *mcp.ReadResourceResult {
	if blob == nil {
		blob = []byte{}
	}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{MIMEType: mimeType, Blob: blob}}}
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, c *Call) (mcp.Result, error) {
	uri, ok := c.req.Params.LookupString("uri")
	if !ok {
		return mcp.Result{}, invalid("uri must be a string")
	}
	read, variables := s.findResource(uri)
	switch {
	case read == nil && len(uri) > MaxURI:
		return mcp.Result{}, invalid("a URI of %d bytes is over the limit MaxURI of %d", len(uri), MaxURI)
	case read == nil:
		return mcp.Result{}, NotFound(uri)
	}
	if _, err := c.State(); err != nil {
		return mcp.Result{}, err
	}
	contents, err := read(ctx, c, uri, variables)
	if err != nil {
		return c.failed(err)
	}
	if contents == nil {
		return mcp.Result{}, NotFound(uri)
	}
	result := *contents
	result.Contents = make([]mcp.ResourceContents, len(contents.Contents))
	for i, part := range contents.Contents {
		if part.URI == "" {
			part.URI = uri
		}
		if part.Text == nil && part.Blob == nil { // it must be one of them
			part.Text = new(string)
		}
		result.Contents[i] = part
	}
	c.members(&result.ResultMembers)
	return encodeResult(&result)
}

// failed returns the outcome of a function, other than a tool's, that has failed.
func (c *Call) failed(err error) (mcp.Result, error) {
	if need, ok := errors.AsType[*inputError](err); ok {
		return c.inputRequired(need)
	}
	return mcp.Result{}, err
}

// findResource returns what reads a resource, nil if there is none.
func (s *Server) findResource(uri string) (read ReadFunc, variables map[string]string) {
	if r := s.resources.get(uri); r != nil {
		return r.read, nil
	}
	s.templates.all(func(_ string, t *template) bool {
		values, matches := t.pattern.match(uri)
		if matches {
			read, variables = t.read, values
		}
		return !matches
	})
	return read, variables
}
