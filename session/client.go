package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Wire carries the messages of a session with a legacy server.
type Wire interface {
	// Call sends a request for call and waits for its result, delivering to
	// caller what comes for it meanwhile. Errors are those of the contract.
	Call(ctx context.Context, call *inflight.Call, method string, params *jsonrpc.Value, caller mcp.Caller) (mcp.Result, error)
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
	Logger       *slog.Logger // nil for silence
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

	levelMu sync.Mutex // held while the level is being set
	level   mcp.Level  // guarded by levelMu

	mu        sync.Mutex
	questions map[string]context.CancelCauseFunc // by the server's id
	resources map[string]*subscription           // by URI
}

// A subscription counts the listen calls that want one resource. Its mutex is
// held while the server is told.
type subscription struct {
	mu    sync.Mutex
	users int
}

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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Client{
		wire: wire, calls: calls, opts: opts,
		questions: make(map[string]context.CancelCauseFunc),
		resources: make(map[string]*subscription),
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
	call, err := c.calls.StartOwn(&mcp.Request{Method: mcp.MethodInitialize})
	if err != nil {
		return err
	}
	defer call.End()
	params := c.InitializeParams()
	result, err := c.wire.Call(ctx, call, mcp.MethodInitialize, &params, mcp.NoCaller{})
	if err != nil {
		return err
	}
	return c.Initialized(ctx, result)
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
	c.discover = mcp.DiscoverFromInitialize(&result.Value)
	return c.wire.Notify(ctx, mcp.NotificationInitialized, &jsonrpc.Value{})
}

// ErrRevision says that a server speaks no revision that we speak.
var ErrRevision = errors.New("no common protocol revision")

// Handle implements [mcp.Handler].
func (c *Client) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	if req.Notification {
		params := mcp.ForLegacy(req, jsonrpc.ID{})
		return mcp.Result{}, c.wire.Notify(ctx, req.Method, &params)
	}
	switch req.Method {
	case mcp.MethodDiscover:
		return c.discover, nil
	case mcp.MethodListen:
		return c.listen(ctx, req, caller)
	}
	c.wantLevel(ctx, req.Meta.LogLevel)
	call, err := c.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	var token jsonrpc.ID
	if !req.Meta.ProgressToken.IsZero() {
		token = jsonrpc.IntID(call.ID)
	}
	params := mcp.ForLegacy(req, token)
	return c.wire.Call(ctx, call, req.Method, &params, caller)
}

// request makes a call of our own, which nobody else waits for.
func (c *Client) request(ctx context.Context, method string, edits ...jsonrpc.Edit) (mcp.Result, error) {
	call, err := c.calls.StartOwn(&mcp.Request{Method: method})
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	params := jsonrpc.Edited(&jsonrpc.Value{}, edits...)
	return c.wire.Call(ctx, call, method, &params, mcp.NoCaller{})
}

// wantLevel has the server send log messages of the given level if it does not
// yet. The level is never lowered: messages are filtered for each receiver.
func (c *Client) wantLevel(ctx context.Context, level mcp.Level) {
	if level == "" || c.capabilities.Logging == nil {
		return
	}
	c.levelMu.Lock()
	defer c.levelMu.Unlock()
	if c.level.Includes(level) {
		return
	}
	_, err := c.request(ctx, mcp.MethodSetLevel, jsonrpc.Edit{Name: "level", Value: jsonrpc.AppendString(nil, string(level))})
	if err != nil {
		c.opts.Logger.Debug("the server did not take the log level", "method", mcp.MethodSetLevel, "err", err)
		return
	}
	c.level = level
}

// unsubscribeTimeout bounds telling a server that a resource is no longer
// watched.
const unsubscribeTimeout = 5 * time.Second

// listen answers subscriptions/listen: with an acknowledgement, then with what
// the server sends unasked, until ctx or the connection ends.
func (c *Client) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	if filter.Session {
		c.wantLevel(ctx, req.Meta.LogLevel)
	}
	call, err := c.calls.Start(req)
	if err != nil {
		return mcp.Result{}, err
	}
	defer call.End()
	granted := c.grant(filter)
	c.setFilter(call, granted) // what comes from now on waits for the acknowledgement
	granted.ResourceSubscriptions = c.subscribeAll(ctx, granted.ResourceSubscriptions)
	defer c.unsubscribe(granted.ResourceSubscriptions)
	c.setFilter(call, granted)
	if err := caller.Notify(ctx, granted.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	_, err = call.Wait(ctx, caller, 0)
	return mcp.Result{}, err
}

// grant returns what of a filter the server promises to serve.
func (c *Client) grant(want mcp.Filter) mcp.Filter {
	granted := c.capabilities.ListFilter()
	granted.ToolsListChanged = granted.ToolsListChanged && want.ToolsListChanged
	granted.PromptsListChanged = granted.PromptsListChanged && want.PromptsListChanged
	granted.ResourcesListChanged = granted.ResourcesListChanged && want.ResourcesListChanged
	granted.Session = want.Session
	if c.capabilities.Resources.Subscribe {
		granted.ResourceSubscriptions = want.ResourceSubscriptions
	}
	return granted
}

func (c *Client) setFilter(call *inflight.Call, filter mcp.Filter) {
	c.mu.Lock()
	call.Filter = filter
	c.mu.Unlock()
}

// subscribeAll subscribes to resources and returns those that the server took.
func (c *Client) subscribeAll(ctx context.Context, uris []string) []string {
	var taken []string
	for _, uri := range uris {
		if err := c.subscribe(ctx, uri); err != nil {
			c.opts.Logger.Debug("the server refused a subscription", "method", mcp.MethodSubscribe, "err", err)
			continue
		}
		taken = append(taken, uri)
	}
	return taken
}

func uriEdit(uri string) jsonrpc.Edit {
	return jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)}
}

func (c *Client) subscription(uri string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.resources[uri]
	if s == nil {
		s = new(subscription)
		c.resources[uri] = s
	}
	return s
}

// subscribe counts one more user of a resource; the server sees the first only.
func (c *Client) subscribe(ctx context.Context, uri string) error {
	s := c.subscription(uri)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		if _, err := c.request(ctx, mcp.MethodSubscribe, uriEdit(uri)); err != nil {
			return err
		}
	}
	s.users++
	return nil
}

func (c *Client) unsubscribe(uris []string) {
	if len(uris) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTimeout)
	defer cancel()
	for _, uri := range uris {
		s := c.subscription(uri)
		s.mu.Lock()
		if s.users--; s.users == 0 {
			// Whether it succeeds matters to nobody any more.
			_, _ = c.request(ctx, mcp.MethodUnsubscribe, uriEdit(uri))
		}
		s.mu.Unlock()
	}
}

// Notified takes a notification of the server. On is the call on whose own
// stream it came, nil if it came on a channel that all calls share. It does not
// wait.
func (c *Client) Notified(m *jsonrpc.Message, on *inflight.Call) {
	n := &mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body}
	switch n.Method {
	case mcp.NotificationProgress:
		c.progress(n)
	case mcp.NotificationMessage:
		c.logMessage(n, on)
	case mcp.NotificationCancelled:
		c.withdraw(n)
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated:
		c.tellListeners(n)
	default:
		if on != nil && on.Request.Method != mcp.MethodListen {
			on.Notify(n)
			return
		}
		c.tellListeners(n)
	}
}

// progress goes to the call whose id was given to the server as its token.
func (c *Client) progress(n *mcp.Notification) {
	call := c.calls.ByToken(mcp.ProgressToken(&n.Params))
	if call == nil || call.Request.Meta.ProgressToken.IsZero() {
		return
	}
	n.Params = mcp.WithProgressToken(&n.Params, call.Request.Meta.ProgressToken)
	call.Notify(n)
}

func (c *Client) tellListeners(n *mcp.Notification) {
	for _, call := range c.listening(func(f *mcp.Filter) bool { return f.Wants(n) }) {
		call.Notify(n)
	}
}

// listening returns the listen calls whose acknowledged filter wants says yes
// to.
func (c *Client) listening(wants func(*mcp.Filter) bool) []*inflight.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.Listening(func(call *inflight.Call) bool { return wants(&call.Filter) })
}

// logMessage goes to the call that it belongs to, or outside calls to the one
// client that listens to the session; if that is not certain, to nobody.
func (c *Client) logMessage(n *mcp.Notification, on *inflight.Call) {
	text, _ := n.Params.LookupString("level")
	level := mcp.Level(text)
	if on == nil {
		var several bool
		on, several = c.calls.Owner(func(req *mcp.Request) bool { return wantsLog(req, level) })
		if several {
			return
		}
	}
	if on != nil {
		if wantsLog(on.Request, level) {
			on.Notify(n)
		}
		return
	}
	listeners := c.listening(func(f *mcp.Filter) bool { return f.Session })
	if !oneClient(listeners) {
		return
	}
	for _, call := range listeners {
		if wantsLog(call.Request, level) {
			call.Notify(n)
		}
	}
}

// wantsLog reports whether a request wants log messages of a level. A legacy
// client that has set no level leaves the choice to the server (2025-11-25,
// server/utilities/logging).
func wantsLog(req *mcp.Request, level mcp.Level) bool {
	if req.Meta.LogLevel == "" {
		return req.Meta.Revision.Era() == mcp.Legacy
	}
	return req.Meta.LogLevel.Includes(level)
}

func oneClient(calls []*inflight.Call) bool {
	for _, call := range calls {
		if call.Request.Meta.ClientKey() != calls[0].Request.Meta.ClientKey() {
			return false
		}
	}
	return len(calls) > 0
}

// Asked takes a request of the server. On is as for [Client.Notified]. It does
// not wait: the answer is sent when it is there.
func (c *Client) Asked(ctx context.Context, m *jsonrpc.Message, on *inflight.Call) {
	method, id := mcp.MethodName(m.Method), m.ID
	if method == mcp.MethodPing {
		c.reply(ctx, id, mcp.Result{}, nil)
		return
	}
	if on == nil {
		on = c.whomToAsk()
	}
	question := &mcp.Request{Method: method, Params: m.Body}
	asked := on != nil && on.Ask(func(askCtx context.Context, caller mcp.Caller) {
		askCtx, cancel := context.WithCancelCause(askCtx)
		defer c.remember(id, cancel)()
		result, err := caller.Ask(askCtx, question)
		switch {
		case context.Cause(askCtx) == errWithdrawn:
		case errors.Is(err, mcp.ErrCannotAsk):
			c.refuse(ctx, method, id)
		default:
			c.reply(ctx, id, result, err)
		}
	})
	if !asked {
		c.refuse(ctx, method, id)
	}
}

// whomToAsk returns the call that a question outside any stream belongs to: one
// in flight, or the only session that listens. Nobody guesses between clients.
func (c *Client) whomToAsk() *inflight.Call {
	owner, several := c.calls.Owner(func(req *mcp.Request) bool {
		return req.Meta.Revision.Era() == mcp.Legacy || mcp.MayNeedInput(req.Method)
	})
	if owner != nil || several {
		return owner
	}
	if listeners := c.listening(func(f *mcp.Filter) bool { return f.Session }); oneClient(listeners) {
		return listeners[0]
	}
	return nil
}

var errWithdrawn = errors.New("the server withdrew its question")

// remember keeps how to withdraw a question and returns what forgets it.
func (c *Client) remember(id jsonrpc.ID, cancel context.CancelCauseFunc) (forget func()) {
	key := id.Key()
	c.mu.Lock()
	c.questions[key] = cancel
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.questions, key)
		c.mu.Unlock()
		cancel(nil)
	}
}

func (c *Client) withdraw(n *mcp.Notification) {
	raw, _ := n.Params.Lookup("requestId")
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return
	}
	c.mu.Lock()
	cancel := c.questions[id.Key()]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errWithdrawn)
	}
}

// refuse answers a question that nobody can be asked: an elicitation as the
// user would who closes the dialog, what the client did not declare as an
// unknown method.
func (c *Client) refuse(ctx context.Context, method string, id jsonrpc.ID) {
	declared := jsonrpc.Trusted(c.opts.Capabilities)
	var err error = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
	capability := map[string]string{
		mcp.MethodElicit: "elicitation", mcp.MethodCreateMessage: "sampling", mcp.MethodListRoots: "roots",
	}[method]
	if _, ok := declared.Lookup(capability); ok && capability != "" {
		if method == mcp.MethodElicit {
			c.reply(ctx, id, mcp.RawResult([]byte(`{"action":"cancel"}`)), nil)
			return
		}
		err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: nobody can be asked just now")
	}
	c.reply(ctx, id, mcp.Result{}, err)
}

// replyWait bounds how long an answer waits for a server that does not read.
const replyWait = 100 * time.Millisecond

func (c *Client) reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWait)
	defer cancel()
	if err := c.wire.Reply(ctx, id, result, err); err != nil {
		c.opts.Logger.Debug("an answer did not reach the server", "id", id.String(), "err", err)
	}
}
