package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A wire is what a side's messages pass. It remembers what checks ask for, and
// has a session be one of the side's own revision.
type wire struct {
	// Set at construction.
	revision mcp.Revision      // of a session
	next     http.RoundTripper // that makes the requests of HTTP

	mu      sync.Mutex
	headers map[string][]string // values of Mcp-Param-* seen, by name; guarded by mu
	ids     []string            // of tool calls sent; guarded by mu
	asked   []string            // questions received; guarded by mu
	logged  []string            // levels of log messages received; guarded by mu
}

func newWire(s side) *wire { return &wire{revision: s.revision, headers: map[string][]string{}} }

// tap sees each message.
func (w *wire) tap(outgoing bool, message []byte) {
	v, err := jsonrpc.ParseValue(message)
	if err != nil {
		return
	}
	method, _ := v.LookupString("method")
	id, _ := v.Lookup("id")
	params, result := v.Get("params"), v.Get("result")
	level, _ := params.LookupString("level")
	kind, _ := result.LookupString("resultType")
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case outgoing && method == mcp.MethodCallTool:
		w.ids = append(w.ids, string(id))
	case !outgoing && (method == mcp.MethodElicit || method == mcp.MethodCreateMessage || method == mcp.MethodListRoots):
		w.asked = append(w.asked, method)
	case !outgoing && kind == mcp.InputRequired:
		w.asked = append(w.asked, kind)
	case !outgoing && method == mcp.NotificationMessage:
		w.logged = append(w.logged, level)
	}
}

// logs returns the levels of the log messages that came, and forgets them.
func (w *wire) logs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	levels := w.logged
	w.logged = nil
	return levels
}

// questions returns what was asked over the wire, by requests or by results.
func (w *wire) questions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// callIDs returns the ids of the tool calls that were sent, in order.
func (w *wire) callIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ids)
}

// params returns the values of the headers that mirror parameters, by name, and
// forgets them.
func (w *wire) params() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := maps.Clone(w.headers)
	clear(w.headers)
	return seen
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	for name, values := range req.Header {
		if strings.HasPrefix(name, mcp.HeaderPrefix) {
			w.headers[name] = append(w.headers[name], values...)
		}
	}
	w.mu.Unlock()
	if w.revision.Era() != mcp.Legacy || w.revision == mcp.NewestLegacy || req.Body == nil {
		return w.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Body.Close(); err != nil {
		return nil, err
	}
	if body, err = w.asksFor(body); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.ContentLength = int64(len(body))
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.GetBody = nil
	return w.next.RoundTrip(again)
}

// asksFor has an initialize request ask for the wire's revision: our own clients
// ask for the newest one, and take what they are offered.
func (w *wire) asksFor(body []byte) ([]byte, error) {
	v, err := jsonrpc.ParseValue(body)
	if err != nil {
		return nil, err
	}
	if method, _ := v.LookupString("method"); method != mcp.MethodInitialize {
		return body, nil
	}
	params := v.Get("params")
	params = jsonrpc.Edited(&params,
		jsonrpc.Edit{Name: "protocolVersion", Value: jsonrpc.AppendString(nil, string(w.revision))})
	return jsonrpc.AppendEdited(nil, &v, jsonrpc.Edit{Name: "params", Value: params.Raw()}), nil
}
