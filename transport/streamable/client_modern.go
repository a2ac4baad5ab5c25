package streamable

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A modernEra speaks to a modern server: each request is a POST of its own.
type modernEra struct {
	stateless

	conn     *Conn
	revision mcp.Revision
	version  []string // revision as a header
	stamp    *mcp.Stamp
	listed   atomic.Bool   // tools have been listed once, or cannot be
	listing  chan struct{} // holds one value while they are being listed
}

func newModernEra(c *Conn, revision mcp.Revision) *modernEra {
	return &modernEra{
		conn: c, revision: revision, version: []string{string(revision)}, stamp: mcp.NewStamp(revision),
		listing: make(chan struct{}, 1),
	}
}

// Handle implements [mcp.Handler]. A call that the server refuses because of its
// headers, which proves that it was not executed, is made once more after
// looking at the list of tools, unless something has come for it: the caller has seen
// that.
func (e *modernEra) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		return mcp.Result{}, nil // modern MCP over HTTP has none from a client
	}
	if req.IsLegacyOnly() || !isFieldValue(req.Method) {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	}
	if req.Method == mcp.MethodCallTool {
		e.knowTool(ctx, req)
	}
	result, heard, err := e.request(ctx, req, caller)
	if heard || req.Method != mcp.MethodCallTool || !refusesHeaders(err) || e.listTools(ctx, req) != nil {
		return result, err
	}
	result, _, err = e.request(ctx, req, caller)
	return result, err
}

func refusesHeaders(err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && refused.Code == jsonrpc.CodeHeaderMismatch && jsonrpc.FromPeer(err)
}

// knowTool makes the header annotations of a tool known. If several calls need
// that at a time, one of them lists the tools for all.
func (e *modernEra) knowTool(ctx context.Context, req *mcp.Request) {
	name, _ := req.Params.LookupString("name")
	if e.knows(name) {
		return
	}
	select {
	case e.listing <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-e.listing }()
	if e.knows(name) {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	err := e.listTools(bounded, req)
	if err == nil {
		return
	}
	e.conn.opts.Logger.Debug("listing tools for their headers", "err", err)
	if ctx.Err() == nil && (bounded.Err() != nil || mcp.OutcomeOf(err) != mcp.NotSent) {
		e.listed.Store(true) // a refusal tells when it is time to look again
	}
}

// listWait is how long calls wait for a list of tools that they might need. Without it
// they are made nevertheless: a server that misses headers executes nothing.
const listWait = 5 * time.Second

// knows reports whether listing tools would tell nothing new of one.
func (e *modernEra) knows(tool string) bool {
	_, known := e.conn.headers.Lookup(tool)
	return known || e.listed.Load()
}

// maxPages bounds listing for header annotations.
const maxPages = 100

// listTools lists all tools for their header annotations.
func (e *modernEra) listTools(ctx context.Context, like *mcp.Request) error {
	var params jsonrpc.Value
	var last []byte
	for range maxPages {
		list := &mcp.Request{Method: mcp.MethodListTools, Params: params, Meta: like.Meta}
		list.Meta.Revision, list.Meta.ProgressToken, list.Meta.Headers = "", jsonrpc.ID{}, nil
		result, _, err := e.request(ctx, list, mcp.NoCaller{})
		if err != nil {
			return err
		}
		e.conn.learn(result)
		cursor, ok := result.Lookup("nextCursor")
		// Some servers have a next page for ever.
		if !ok || string(cursor) == "null" || bytes.Equal(cursor, last) {
			break
		}
		params, last = jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "cursor", Value: cursor}), cursor
	}
	e.listed.Store(true)
	return nil
}

// request makes one request, once. Heard reports whether something has come for it
// before its result.
func (e *modernEra) request(ctx context.Context, req *mcp.Request, caller mcp.Caller) (_ mcp.Result, heard bool, _ error) {
	call, err := e.conn.calls.Start(req)
	if err != nil {
		return mcp.Result{}, false, err
	}
	defer call.End()
	t, err := e.trip(call)
	if err != nil {
		return mcp.Result{}, false, err
	}
	result, err := t.run(ctx, caller)
	return result, call.Heard(), err
}

// trip returns the POST of a call.
func (e *modernEra) trip(call *inflight.Call) (*trip, error) {
	req := call.Request
	// Clients that share the connection may have chosen the same token.
	var token jsonrpc.ID
	if !req.Meta.ProgressToken.IsZero() {
		token = call.WireID()
	}
	params, edits := req.Params, e.stamp.Edits(req, token)
	if req.Method == mcp.MethodListen {
		params = jsonrpc.Edited(&params, edits...)
		params, edits = mcp.WithoutSession(&params), nil
	}
	header := e.conn.newHeader(e)
	header[methodHeader] = []string{req.Method}
	if param, ok := mcp.NameParam(req.Method); ok {
		name, _ := params.LookupString(param)
		header[nameHeader] = []string{mcp.EncodeHeader(name)}
		if req.Method == mcp.MethodCallTool {
			if err := e.mirror(header, req, name, &params); err != nil {
				return nil, err
			}
		}
	}
	body := appendRequest(call, &params, edits)
	return &trip{conn: e.conn, era: e, call: call, header: header, body: body}, nil
}

// mirror adds the headers that mirror the parameters of a tool (2026-07-28,
// streamable-http, Custom Headers).
func (e *modernEra) mirror(header http.Header, req *mcp.Request, tool string, params *jsonrpc.Value) error {
	for name, value := range req.Meta.Headers {
		header.Set(name, value)
	}
	known, _ := e.conn.headers.Lookup(tool)
	if len(known) == 0 {
		return nil
	}
	mirrored, err := mcp.Mirror(known, params)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	for name, value := range mirrored {
		header.Set(name, value)
	}
	return nil
}

func (e *modernEra) prepare(header http.Header) {
	header[versionHeader] = e.version
}

// notified gives a notification to the call on whose stream it came, and
// progress to the call whose id is its token.
func (e *modernEra) notified(m *jsonrpc.Message, call *inflight.Call) {
	n := &mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body}
	if n.Method == mcp.NotificationProgress {
		e.conn.calls.Progress(n)
		return
	}
	call.Notify(n)
}

// asked refuses: a modern server must not ask.
func (e *modernEra) asked(m *jsonrpc.Message, _ *inflight.Call) {
	e.conn.skip("a modern server sent a request", errors.New(mcp.MethodName(m.Method)))
}

// stateless is what eras without sessions have in common.
type stateless struct{}

func (stateless) accepted(*inflight.Call, *http.Response) error { return nil }

// cancel does nothing: the stream has been closed.
func (stateless) cancel(_ context.Context, _ *inflight.Call, hangup context.CancelFunc) { hangup() }

func (stateless) undisturbed() bool { return true }

func (stateless) batches() bool { return false }

func (stateless) resumable() bool { return false }

func (stateless) end(context.Context) {}
