package transporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// The tools of a [Handler].
const (
	echoTool  = "echo"  // returns its arguments as structured content
	fillTool  = "fill"  // returns a text of n bytes
	countTool = "count" // sends n progress notifications first
	meetTool  = "meet"  // returns when n calls with the same key are there
	holdTool  = "hold"  // announces key, and returns when it is cancelled, which it announces as well
	deafTool  = "deaf"  // announces key, and returns when the handler is closed
	askTool   = "ask"   // asks, and announces that the call was cancelled as hold does
	awaitTool = "await" // returns when key has been announced
)

// ended is what hold announces when it has been cancelled.
func ended(key string) string { return key + " ended" }

// A Handler is a server whose tools do what the suite needs. It is safe for
// concurrent use.
type Handler struct {
	closing sync.Once
	closed  chan struct{}

	mu        sync.Mutex
	announced map[string]chan struct{} // closed when it has happened; guarded by mu
	meetings  map[string]int           // calls that are there, guarded by mu
	early     int                      // questions that failed before their call was cancelled, guarded by mu
}

// NewHandler returns a handler. [Handler.Close] lets its calls go.
func NewHandler() *Handler {
	return &Handler{
		closed:    make(chan struct{}),
		announced: make(map[string]chan struct{}),
		meetings:  make(map[string]int),
	}
}

// Close ends all calls, also those that do not listen to their context.
func (h *Handler) Close() { h.closing.Do(func() { close(h.closed) }) }

// Handle implements [mcp.Handler].
func (h *Handler) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch {
	case req.Notification:
		return mcp.Result{}, nil
	case req.Method == mcp.MethodDiscover:
		return mcp.RawResult([]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],` +
			`"capabilities":{"tools":{}},"serverInfo":{"name":"transporttest","version":"1"}}`)), nil
	case req.Method == mcp.MethodListen:
		return h.listen(ctx, req, caller)
	case req.Method == mcp.MethodListTools:
		return mcp.RawResult([]byte(`{"tools":[]}`)), nil
	case req.Method == mcp.MethodCallTool:
		return h.call(ctx, req, caller)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
}

func (h *Handler) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	<-ctx.Done()
	return mcp.Result{}, context.Cause(ctx)
}

// done is the result of a tool that has nothing to say.
func done() (mcp.Result, error) { return mcp.RawResult([]byte(`{"content":[]}`)), nil }

func (h *Handler) call(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	name, _ := req.Params.LookupString("name")
	raw, _ := req.Params.Lookup("arguments")
	if name == echoTool {
		return mcp.RawResult(fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, raw)), nil
	}
	var args struct {
		Key string `json:"key"`
		N   int    `json:"n"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	switch name {
	case fillTool:
		return mcp.NewResult(map[string]any{"content": []map[string]string{{"type": "text", "text": strings.Repeat("x", args.N)}}})
	case countTool:
		return count(ctx, req, caller, args.N)
	case meetTool:
		return h.meet(ctx, args.Key, args.N)
	case holdTool:
		h.announce(args.Key)
		err := h.wait(ctx, nil)
		h.announce(ended(args.Key))
		return mcp.Result{}, err
	case askTool:
		return h.ask(ctx, caller, args.Key)
	case deafTool:
		h.announce(args.Key)
		<-h.closed
		return done()
	case awaitTool:
		if err := h.wait(ctx, h.event(args.Key)); err != nil {
			return mcp.Result{}, err
		}
		return done()
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool: %s", name)
}

// count sends n progress notifications before its result.
func count(ctx context.Context, req *mcp.Request, caller mcp.Caller, n int) (mcp.Result, error) {
	for i := range n {
		params, err := json.Marshal(map[string]any{
			"progressToken": json.RawMessage(req.Meta.ProgressToken.Raw()), "progress": i + 1, "total": n,
		})
		if err != nil {
			return mcp.Result{}, err
		}
		err = caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted(params)})
		if err != nil {
			return mcp.Result{}, err
		}
	}
	return done()
}

// ask asks what is not answered.
func (h *Handler) ask(ctx context.Context, caller mcp.Caller, key string) (mcp.Result, error) {
	_, err := caller.Ask(ctx, &mcp.Request{
		Method: mcp.MethodElicit,
		Params: jsonrpc.Trusted([]byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)),
	})
	if err == nil {
		return done()
	}
	if ctx.Err() == nil {
		h.mu.Lock()
		h.early++
		h.mu.Unlock()
	}
	h.announce(ended(key))
	return mcp.Result{}, err
}

// misled returns how many questions failed before their call was cancelled.
func (h *Handler) misled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.early
}

// meet waits until n calls with a key are there.
func (h *Handler) meet(ctx context.Context, key string, n int) (mcp.Result, error) {
	h.mu.Lock()
	h.meetings[key]++
	all := h.meetings[key] == n
	h.mu.Unlock()
	if all {
		h.announce(key)
	}
	if err := h.wait(ctx, h.event(key)); err != nil {
		return mcp.Result{}, err
	}
	return done()
}

// event returns what is closed when key is announced.
func (h *Handler) event(key string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	event := h.announced[key]
	if event == nil {
		event = make(chan struct{})
		h.announced[key] = event
	}
	return event
}

func (h *Handler) announce(key string) {
	event := h.event(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-event:
	default:
		close(event)
	}
}

// wait waits for an event, which may be nil.
func (h *Handler) wait(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.closed:
		return mcp.ErrClosed
	}
}
