package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Wire carries the messages of a session with a legacy server.
type Wire interface {
	// Call sends a request for call and waits for its result, delivering to
	// caller what comes for it meanwhile. Errors are those of the contract.
	// Edits are made to params on the way.
	Call(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error)
	// Notify sends a notification.
	Notify(ctx context.Context, method string, params *jsonrpc.Value) error
	// Reply answers a request of the server.
	Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error
}

// ClientOptions are what a [Client] says of itself. The zero value is usable.
type ClientOptions struct {
	Info         []byte       // Implementation as JSON; default mcpsplice
	Capabilities []byte       // ClientCapabilities as JSON; default {}
	Revision     mcp.Revision // asked for; default mcp.NewestLegacy
	// MaxTaskWait is how long a call that must be made as a task may take, the time in
	// which a question is open not counted. Default DefaultMaxTaskWait.
	MaxTaskWait time.Duration
	// Overtaken reports whether what the server sends outside calls now comes on a
	// stream of its own, where responses can overtake it. A call that wants log
	// messages, and is not of a legacy client, then has them before its result, which
	// waits for 5 ms at most, and only if they could not be for another call. Nil for
	// never.
	Overtaken func() bool
	Logger    *slog.Logger // nil for silence
}

// A Client is a session with a legacy server. As a [mcp.Handler] it answers
// server/discover and subscriptions/listen from what the session knows, and
// sends everything else to the server. It is safe for concurrent use.
type Client struct {
	// Set at construction.
	wire  Wire
	calls *inflight.Calls
	opts  ClientOptions

	// Set by Initialize.
	revision     mcp.Revision
	discover     mcp.Result
	capabilities mcp.ServerCapabilities

	setting   turn // whose holder sets the level
	tasks     knownTasks
	toolTasks toolTasks
	late      lateLogs

	mu        sync.Mutex
	level     mcp.Level                // the most verbose that was asked for; guarded by mu, like what follows
	questions map[string]*question     // by the server's id
	resources map[string]*subscription // by URI
	listens   int                      // listen calls to the session that there have been

	roots        roots
	unattributed atomic.Int64
}

// A turn lets one goroutine at a time tell the server something. Unlike a mutex
// it can be waited for with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) pass() { <-t }

// NewClient returns a client that has not spoken yet.
func NewClient(wire Wire, calls *inflight.Calls, opts ClientOptions) *Client {
	if opts.Info == nil {
		opts.Info = []byte(`{"name":"mcpsplice","version":"0"}`)
	}
	if opts.Capabilities == nil {
		opts.Capabilities = []byte("{}")
	}
	if opts.Revision == "" {
		opts.Revision = mcp.NewestLegacy
	}
	if opts.MaxTaskWait <= 0 {
		opts.MaxTaskWait = DefaultMaxTaskWait
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Overtaken != nil {
		calls.RememberAnswered()
	}
	return &Client{
		wire: wire, calls: calls, opts: opts, setting: newTurn(),
		toolTasks: toolTasks{listing: newTurn()},
		questions: make(map[string]*question),
		resources: make(map[string]*subscription),
		roots:     roots{declared: declares(opts.Capabilities, mcp.MethodListRoots), telling: newTurn()},
	}
}

// Revision returns the negotiated revision, empty before Initialize.
func (c *Client) Revision() mcp.Revision { return c.revision }

// InitializeParams returns the params of the initialize request.
func (c *Client) InitializeParams() jsonrpc.Value {
	return jsonrpc.Edited(&jsonrpc.Value{},
		jsonrpc.Edit{Name: "protocolVersion", Value: jsonrpc.AppendString(nil, string(c.opts.Revision))},
		jsonrpc.Edit{Name: "capabilities", Value: c.opts.Capabilities},
		jsonrpc.Edit{Name: "clientInfo", Value: c.opts.Info},
	)
}

// Initialize makes the handshake: initialize, then notifications/initialized.
// The client is usable when it returns without an error.
func (c *Client) Initialize(ctx context.Context) error {
	result, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	return c.Initialized(ctx, result)
}

// Begin sends initialize and returns the server's InitializeResult, which
// [Client.Initialized] must be given.
func (c *Client) Begin(ctx context.Context) (mcp.Result, error) {
	call, err := c.calls.StartOwn(&mcp.Request{Method: mcp.MethodInitialize})
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	params := c.InitializeParams()
	return c.wire.Call(ctx, call, &params, mcp.NoCaller{})
}

// Initialized takes up the server's InitializeResult and ends the handshake.
func (c *Client) Initialized(ctx context.Context, result mcp.Result) error {
	text, ok := result.LookupString("protocolVersion")
	revision := mcp.Revision(text)
	if !ok || revision.Era() != mcp.Legacy {
		raw, _ := result.Lookup("protocolVersion")
		return fmt.Errorf("%w: the server answered initialize with protocolVersion %.40s", ErrRevision, raw)
	}
	c.revision = revision
	c.capabilities = mcp.ReadServerCapabilities(&result.Value)
	c.capabilities.TaskTools = c.capabilities.TaskTools && revision.HasTasks()
	c.discover = mcp.DiscoverFromInitialize(&result.Value)
	return c.wire.Notify(ctx, mcp.NotificationInitialized, &jsonrpc.Value{})
}

// ErrRevision says that a server speaks no revision that we speak.
var ErrRevision = errors.New("no common protocol revision")

// toldRevisions is how many revisions of a server an error names.
const toldRevisions = 10

// NoCommonRevision returns an error that wraps [ErrRevision] and names what the server
// supports, of a long list the beginning.
func NoCommonRevision(supported []mcp.Revision) error {
	told := fmt.Sprintf("%.40s", supported[:min(len(supported), toldRevisions)])
	if more := len(supported) - toldRevisions; more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w: the server supports %s", ErrRevision, told)
}

// Handle implements [mcp.Handler].
func (c *Client) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		if req.Method == mcp.NotificationTaskStatus && !c.tasks.theirs.mayTell(req) {
			return mcp.Result{}, nil
		}
		params := mcp.ForLegacy(req, jsonrpc.ID{})
		return mcp.Result{}, c.wire.Notify(ctx, req.Method, &params)
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return c.discover, nil
	case mcp.MethodListen:
		return c.listen(ctx, req, caller)
	}
	if err := refuseRetry(req); err != nil {
		return mcp.Result{}, err
	}
	if c.roots.declared && mcp.MayNeedInput(req.Method) {
		c.learnRoots(ctx, req, caller)
	}
	c.wantLevel(ctx, req.Meta.LogLevel)
	result, err := c.withLate(ctx, req, caller)
	if err == nil && c.roots.declared && !c.roots.spoken.Load() {
		c.roots.spoken.Store(true)
	}
	return result, err
}

// forward makes a request in the way of its kind.
func (c *Client) forward(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if isTaskRequest(req.Method) {
		return c.taskRequest(ctx, req, caller)
	}
	if c.capabilities.TaskTools {
		return c.withTasks(ctx, req, caller)
	}
	return c.send(ctx, req, caller)
}

// withTasks makes a request to a server whose tools can be called as tasks.
func (c *Client) withTasks(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Method == mcp.MethodCallTool {
		_, task := req.Params.Lookup("task")
		switch r := req.Meta.Revision; {
		case task && (r.HasTasks() || r == ""):
			return c.makeTask(ctx, req, caller)
		case !r.HasTasks():
			return c.callTool(ctx, req, caller)
		}
	}
	result, err := c.send(ctx, req, caller)
	if err == nil && req.Method == mcp.MethodListTools {
		c.toolTasks.learn(&result)
	}
	return result, err
}

// What is known of a request that was made.
type sent struct {
	id    int64 // of the call, under which its progress comes
	heard bool  // something has come for it, so that it is not to be made again
}

// send makes a request.
func (c *Client) send(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	result, _, err := c.sendEdited(ctx, req, caller)
	return result, err
}

// sendEdited is send for params that are edited.
func (c *Client) sendEdited(ctx context.Context, req *mcp.Request, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, sent, error) {
	call, err := c.calls.Start(req)
	if err != nil {
		return mcp.Result{}, sent{}, err
	}
	return c.sendCall(ctx, call, caller, edits...)
}

// sendCall is send for a call that was started, and ends it.
func (c *Client) sendCall(ctx context.Context, call *inflight.Call, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, sent, error) {
	defer call.End()
	req := call.Request
	var token jsonrpc.ID
	if !req.Meta.ProgressToken.IsZero() {
		token = call.WireID()
	}
	edits = append(mcp.EditsForLegacy(req, token), edits...)
	result, err := c.wire.Call(ctx, call, &req.Params, caller, edits...)
	if err != nil && mcp.OutcomeOf(err) == mcp.NotSent {
		call.Finish(err) // or it would count as one that was left
	}
	return result, sent{call.ID, call.Heard()}, err
}

// Unattributed returns how many questions of the server were refused because they
// may have been meant for either of several clients.
func (c *Client) Unattributed() int64 { return c.unattributed.Load() }

// refuseRetry refuses the retry of a request that needed input: a legacy server
// has no such thing, and would do the work a second time. Whoever began this has
// been restarted since, or knows the state no more.
func refuseRetry(req *mcp.Request) error {
	if !mcp.MayNeedInput(req.Method) {
		return nil
	}
	for _, name := range [...]string{"requestState", "inputResponses"} {
		if _, ok := req.Params.Lookup(name); ok {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %s is not known here", name)
		}
	}
	return nil
}

// request makes a call of our own, which nobody else waits for.
func (c *Client) request(ctx context.Context, method string, edits ...jsonrpc.Edit) (mcp.Result, error) {
	call, err := c.calls.StartOwn(&mcp.Request{Method: method})
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	params := jsonrpc.Edited(&jsonrpc.Value{}, edits...)
	return c.wire.Call(ctx, call, &params, mcp.NoCaller{})
}

// levelTimeout bounds setting the log level: a call does not wait for it longer.
const levelTimeout = 5 * time.Second

// wantLevel has the server send log messages of the given level if it does not
// yet. The level is never lowered: messages are filtered for each receiver. A
// server that did not take a level is not asked again for it.
func (c *Client) wantLevel(ctx context.Context, level mcp.Level) {
	if level == "" || c.capabilities.Logging == nil || c.askedFor(level) {
		return
	}
	if c.setting.take(ctx) != nil {
		return // the call that wants it will find out for itself
	}
	defer c.setting.pass()
	if c.askedFor(level) {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	_, err := c.request(bounded, mcp.MethodSetLevel, jsonrpc.Edit{Name: "level", Value: jsonrpc.AppendString(nil, string(level))})
	if err != nil {
		c.opts.Logger.Debug("the server did not take the log level", "method", mcp.MethodSetLevel, "err", err)
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.level = level
		c.mu.Unlock()
	}
}

func (c *Client) askedFor(level mcp.Level) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level.Includes(level)
}
