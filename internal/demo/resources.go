package demo

import (
	"net/url"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// The resources.
const (
	clockURI   = "demo://clock"
	textURI    = "demo://text"
	pictureURI = "demo://picture"
	extraURI   = "demo://extra"
	echoPrefix = "demo://echo/"
)

// clockPeriod is how long the clock stands still between two changes.
const clockPeriod = 3 * time.Second

const sampleText = "A text that never changes.\nGrüße, 世界, 👋.\n"

// A resource is an entry of resources/list.
type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}

var basicResources = []resource{
	{clockURI, "clock", "Clock", "The time, which changes every few seconds. Subscribe to it.", "text/plain"},
	{textURI, "text", "Text", "A text that never changes.", "text/plain"},
	{pictureURI, "picture", "Picture", "A small PNG.", "image/png"},
}

var extraResource = resource{extraURI, "extra", "Extra", "Is there because the tool toggle added it.", "text/plain"}

var templates = []object{{
	"uriTemplate": echoPrefix + "{text}",
	"name":        "echo",
	"title":       "Echo",
	"description": "The text in its own address.",
	"mimeType":    "text/plain",
}}

func (s *Server) resources() []resource {
	if s.has(kindResource) {
		return append(basicResources[:len(basicResources):len(basicResources)], extraResource)
	}
	return basicResources
}

func (s *Server) readResource(req *mcp.Request) (mcp.Result, error) {
	uri, ok := req.Params.LookupString("uri")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: uri must be a string")
	}
	contents, err := s.read(uri)
	if err != nil {
		return mcp.Result{}, err
	}
	contents["uri"] = uri
	return result(object{"contents": []object{contents}})
}

// read returns the contents of a resource.
func (s *Server) read(uri string) (object, error) {
	switch {
	case uri == clockURI:
		return plain(time.Now().Truncate(clockPeriod).UTC().Format(time.RFC3339)), nil
	case uri == textURI:
		return plain(sampleText), nil
	case uri == pictureURI:
		picture, err := draw()
		return object{"mimeType": "image/png", "blob": picture}, err
	case uri == extraURI && s.has(kindResource):
		return plain("I am extra."), nil
	}
	if rest, ok := strings.CutPrefix(uri, echoPrefix); ok && rest != "" && !strings.Contains(rest, "/") {
		if text, err := url.PathUnescape(rest); err == nil {
			return plain(text), nil
		}
	}
	return nil, unknownResource(uri)
}

func plain(text string) object { return object{"mimeType": "text/plain", "text": text} }

func unknownResource(uri string) *jsonrpc.Error {
	data := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)})
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Resource not found", Data: data}
}

func clockUpdated() *mcp.Notification {
	return &mcp.Notification{
		Method: mcp.NotificationResourceUpdated,
		Params: jsonrpc.Trusted([]byte(`{"uri":"` + clockURI + `"}`)),
	}
}
