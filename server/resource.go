package server

import (
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/yosida95/uritemplate/v3"
)

// A ReadFunc reads a resource. Variables are those of the template that the URI
// matches, nil for a resource that has its own URI. Contents without a URI get
// the one that was asked for. [NotFound] says that there is no such resource.
type ReadFunc func(ctx context.Context, call *Call, uri string, variables map[string]string) (*mcp.ReadResourceResult, error)

// A resource is a resource of a server.
type resource struct {
	read ReadFunc
}

// A template is a resource template of a server.
type template struct {
	resource
	pattern *uritemplate.Template
}

// AddResource adds a resource, or replaces the one of its URI. It panics if the
// definition has no URI or no name.
func (s *Server) AddResource(definition mcp.Resource, read ReadFunc) {
	entry, err := json.Marshal(definition, json.Deterministic(true))
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
	pattern, err := uritemplate.New(definition.URITemplate)
	if err == nil && (definition.Name == "" || definition.URITemplate == "") {
		err = errors.New("it needs a URI template and a name")
	}
	must("resource template", definition.URITemplate, err)
	entry, err := json.Marshal(definition, json.Deterministic(true))
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
	if !s.lists(c.req.Method) {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	read, variables := s.findResource(uri)
	if read == nil {
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
		values := t.pattern.Match(uri)
		if values == nil {
			return true
		}
		read, variables = t.read, make(map[string]string)
		for _, name := range t.pattern.Varnames() {
			variables[name] = values.Get(name).String()
		}
		return false
	})
	return read, variables
}
