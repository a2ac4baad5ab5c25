package session

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

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
	c.setFilter(call, passed(filter, granted)) // what comes from now on waits for the acknowledgement
	granted.ResourceSubscriptions = c.subscribeAll(ctx, granted.ResourceSubscriptions)
	defer c.unsubscribe(granted.ResourceSubscriptions)
	c.setFilter(call, passed(filter, granted))
	if err := call.Open(ctx, caller, granted.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	if granted.Session {
		c.mu.Lock()
		c.listens++
		c.mu.Unlock()
		c.offerRoots(ctx)
	}
	_, err = call.Wait(ctx, caller, 0)
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		named := *e
		named.Method = req.Method
		err = &named
	}
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

// passed returns what is passed on to who wants a filter of which this much was
// granted. Some servers tell of changes of lists that they do not promise to tell
// of: those of the Python SDK never promise it.
func passed(want, granted mcp.Filter) mcp.Filter {
	want.ResourceSubscriptions = granted.ResourceSubscriptions
	return want
}

func (c *Client) setFilter(call *inflight.Call, filter mcp.Filter) {
	c.mu.Lock()
	call.Filter = filter
	c.mu.Unlock()
}

// A subscription counts the listen calls that want one resource.
type subscription struct {
	telling turn
	users   int // of them the server knows, guarded by telling
	holders int // of users and of those who tell, guarded by Client.mu
}

// hold returns the subscription to a resource, which is kept until let go.
func (c *Client) hold(uri string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.resources[uri]
	if s == nil {
		s = &subscription{telling: newTurn()}
		c.resources[uri] = s
	}
	s.holders++
	return s
}

func (c *Client) letGo(uri string, s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.holders--; s.holders == 0 {
		delete(c.resources, uri)
	}
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

// subscribe counts one more user of a resource; the server sees the first only.
// A user holds the subscription.
func (c *Client) subscribe(ctx context.Context, uri string) error {
	s := c.hold(uri)
	err := s.telling.take(ctx)
	if err == nil {
		defer s.telling.pass()
		if s.users == 0 {
			_, err = c.request(ctx, mcp.MethodSubscribe, uriEdit(uri))
		}
	}
	if err != nil {
		c.letGo(uri, s)
		return err
	}
	s.users++
	return nil
}

// unsubscribeTimeout bounds telling a server that resources are no longer
// watched.
const unsubscribeTimeout = 5 * time.Second

func (c *Client) unsubscribe(uris []string) {
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTimeout)
	defer cancel()
	for _, uri := range uris {
		c.unsubscribeOne(ctx, uri)
	}
}

func (c *Client) unsubscribeOne(ctx context.Context, uri string) {
	s := c.hold(uri)
	defer c.letGo(uri, s)
	if s.telling.take(ctx) != nil {
		return // the server does not answer; it stays a user
	}
	defer s.telling.pass()
	defer c.letGo(uri, s) // of the user
	if s.users--; s.users == 0 {
		// Whether it succeeds matters to nobody any more.
		_, _ = c.request(ctx, mcp.MethodUnsubscribe, uriEdit(uri))
	}
}

// Notified takes a notification of the server. On is the call on whose own
// stream it came, nil if it came on a channel that all calls share. It does not
// wait.
func (c *Client) Notified(m *jsonrpc.Message, on *inflight.Call) {
	n := &mcp.Notification{Method: mcp.MethodName(m.Method), Params: m.Body}
	switch n.Method {
	case mcp.NotificationProgress:
		if !c.calls.Progress(n) {
			c.taskProgress(n)
		}
	case mcp.NotificationMessage:
		c.logMessage(n, on)
	case mcp.NotificationCancelled:
		c.withdraw(n)
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated:
		if n.Method == mcp.NotificationToolsListChanged {
			c.toolTasks.changed()
		}
		listeners, _ := c.listening(func(f *mcp.Filter) bool { return f.Wants(n) })
		for _, call := range listeners {
			call.Notify(n)
		}
	case mcp.NotificationTaskStatus:
		c.taskNews(n, on)
	default:
		c.foreign(n, on)
	}
}

// taskNews takes news of a task, for which its client is found.
func (c *Client) taskNews(n *mcp.Notification, on *inflight.Call) {
	a := about{id: mcp.TaskID(&n.Params)}
	if a.id == "" || !c.tasks.awaitsNews(a, len(n.Params.Raw()), func() { c.taskStatus(n, on) }) {
		c.taskStatus(n, on)
	}
}

// foreign gives a notification that the protocol does not have to the call on whose
// stream it came, or to the one client that it can be for.
func (c *Client) foreign(n *mcp.Notification, on *inflight.Call) {
	if on == nil || on.Request.Method == mcp.MethodListen {
		on = c.onlyClient()
	}
	if on != nil {
		on.Notify(n)
	}
}

// onlyClient returns the listen call of the client that listens to the session, or, since
// modern clients have none to listen to, one of those in flight. It returns nil if there
// is another client that what the server says may be for.
func (c *Client) onlyClient() *inflight.Call {
	listener, sessions := c.sessionListeners()
	call, several := c.calls.Owner(func(*mcp.Request) bool { return true })
	only := listener
	switch {
	case sessions || several:
		return nil
	case listener == nil:
		only = call
	case call != nil && call.Client() != listener.Client():
		return nil
	}
	if only == nil || c.calls.LeftByOthers(only.Client()) {
		return nil
	}
	return only
}

// listening returns the listen calls whose filter wants says yes
// to, and whether they are of several clients.
func (c *Client) listening(wants func(*mcp.Filter) bool) (calls []*inflight.Call, several bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.Listening(func(call *inflight.Call) bool { return wants(&call.Filter) })
}

// sessionListener returns the listen call of the one client that listens to the
// session, nil if there is none or more than one.
func (c *Client) sessionListener() *inflight.Call {
	call, _ := c.sessionListeners()
	return call
}

// sessionListeners is sessionListener, and says whether there are several clients.
// While a client replaces its listen call it has two, of which the newer one
// counts.
func (c *Client) sessionListeners() (call *inflight.Call, several bool) {
	listeners, several := c.listening(func(f *mcp.Filter) bool { return f.Session })
	if several {
		return nil, true
	}
	for _, l := range listeners {
		if call == nil || l.ID > call.ID {
			call = l
		}
	}
	return call, false
}

// logMessage goes to the call that it belongs to, or outside calls to the one
// client that listens to the session; if that is not certain, to nobody. One that
// comes on a shared channel may be overtaken by the response of its call, which
// has a stream of its own, and is then taken by what [Client.withLate] waits with.
func (c *Client) logMessage(n *mcp.Notification, on *inflight.Call) {
	a := about{id: mcp.RelatedTask(&n.Params)}
	if a.id == "" || !c.tasks.awaitsNews(a, len(n.Params.Raw()), func() { c.passLog(n, on, a.id) }) {
		c.passLog(n, on, a.id)
	}
}

// passLog is logMessage for one about a task, "" if it is about none.
func (c *Client) passLog(n *mcp.Notification, on *inflight.Call, task string) {
	text, _ := n.Params.LookupString("level")
	wants := func(req *mcp.Request) bool { return wantsLog(req, mcp.Level(text)) }
	if call, known := c.callFor(task); known {
		on = call
		if on == nil {
			return
		}
	}
	if on != nil {
		if wants(on.Request) {
			on.Notify(n)
		}
		return
	}
	c.late.seen.Store(true)
	owner, several := c.calls.Owner(wants)
	switch {
	case several, owner != nil && c.mayBeOthers(owner):
		return
	case owner != nil && owner.Notify(n):
		c.late.cameInTime(owner.Request)
		return
	case c.tellLate(n, wants):
		return
	}
	if listener := c.sessionListener(); listener != nil && wants(listener.Request) && !c.mayBeOthers(listener) {
		listener.Notify(n)
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
