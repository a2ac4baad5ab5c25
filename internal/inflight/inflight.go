// Package inflight holds the requests that were sent on one connection and wait
// for their responses, with what arrives for each of them meanwhile.
//
// Whatever reads from the peer puts notifications, questions and the response
// of a call into the call's inbox and never waits; the goroutine that made the
// call takes them out in their order ([Call.Wait]). So a slow caller delays
// nobody but itself.
package inflight

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Limits of a call's inbox, and again of its open questions. At either the
// oldest notification is dropped and counted; a question is refused.
const (
	MaxQueuedMessages = 256
	MaxQueuedBytes    = 1 << 20
)

// NoLimit is how long a call must be allowed to take for its time not to be counted.
const NoLimit = time.Duration(1 << 62)

// A Call is one request in flight.
type Call struct {
	// Set by Start.
	ID      int64
	Request *mcp.Request
	own     bool // made by this process, for no client
	calls   *Calls
	wire    jsonrpc.ID // ID
	digits  [maxDigits]byte
	token   jsonrpc.ID // the client's progress token, if it wants progress

	// MakesTask says that the peer must not be told if the call is left: such a
	// request is not cancelled, its task is (2025-11-25, utilities/cancellation).
	// Whoever starts the call sets it before anything is sent.
	MakesTask bool

	// Filter is what a listen call wants to hear of. Whoever sets and reads it
	// sees to it that this does not happen at once.
	Filter mcp.Filter

	key string // guarded by calls.mu

	mu       sync.Mutex
	inbox    []item // guarded by mu, like what follows
	prompt   Prompt // takes notifications past the inbox; nil for nobody
	bytes    int    // of the notifications in inbox, their methods included
	finished bool
	left     bool // Wait has returned without a response
	heard    bool // something has come before the response
	reply    *jsonrpc.Message
	err      error
	wake     chan struct{} // holds a value if there is news; nil until somebody waits
	news     func()        // is called if there is news; nil if nobody wants that
	open     int           // questions that have not been answered
	asked    int           // bytes of them
	ended    bool          // End was called
	telling  bool          // the peer is being told that the call was left
	then     []func()      // what is to be done after that
}

// An item is a notification or, if ask is set, a question.
type item struct {
	n    mcp.Notification
	ask  func(context.Context, mcp.Caller)
	size int // bytes
}

// A Prompt is a Caller whose Notify neither waits nor makes calls. Whoever reads
// from the peer may then call it itself, so that a notification has arrived
// before anything is read that came after it.
type Prompt interface {
	mcp.Caller
	// Missed tells that notifications may have been lost. It does not wait
	// either.
	Missed()
}

// Client returns the key of the client that made the call, which is in flight.
func (c *Call) Client() string {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.client()
}

// client is Client. calls.mu is held.
func (c *Call) client() string {
	if c.key == "" {
		c.key = c.Request.Meta.ClientKey()
	}
	return c.key
}

// Notify puts a notification into the inbox, or gives it to a [Prompt] caller.
// List changes that wait there already are not put in again. It reports false if
// the call has its response: nothing is delivered after that.
func (c *Call) Notify(n *mcp.Notification) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return false
	}
	c.heard = true
	if c.waiting(n.Method) {
		return true
	}
	if c.prompt != nil {
		_ = c.prompt.Notify(context.Background(), n) // see deliver
		return true
	}
	it := item{n: *n, size: len(n.Method) + len(n.Params.Raw())} // peers may make up methods of any length
	c.makeRoom(it.size)
	c.inbox = append(c.inbox, it)
	c.bytes += it.size
	c.signal()
	return true
}

// waiting reports whether a list change waits in the inbox already.
func (c *Call) waiting(method string) bool {
	switch method {
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged, mcp.NotificationResourcesListChanged:
		return slices.ContainsFunc(c.inbox, func(it item) bool { return it.n.Method == method })
	}
	return false
}

// makeRoom drops notifications until another one of the given size fits:
// progress first, then the oldest.
func (c *Call) makeRoom(size int) {
	for len(c.inbox) >= MaxQueuedMessages || c.bytes+size > MaxQueuedBytes {
		victim := slices.IndexFunc(c.inbox, func(it item) bool { return it.n.Method == mcp.NotificationProgress })
		if victim < 0 {
			victim = slices.IndexFunc(c.inbox, func(it item) bool { return it.ask == nil })
		}
		if victim < 0 {
			return // a single large one is let in
		}
		c.bytes -= c.inbox[victim].size
		c.inbox = slices.Delete(c.inbox, victim, victim+1)
		c.calls.dropped.Add(1)
	}
}

// Ask puts a question of size bytes into the inbox and reports whether there was
// room. Ask is then called, by a goroutine of its own, with the caller of the
// call and a context that ends with the call.
func (c *Call) Ask(size int, ask func(context.Context, mcp.Caller)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished || c.left || c.open >= MaxQueuedMessages || c.open > 0 && c.asked+size > MaxQueuedBytes {
		return false
	}
	c.heard = true
	c.open++
	c.asked += size
	c.inbox = append(c.inbox, item{ask: ask, size: size})
	c.signal()
	return true
}

// closed counts one open question less.
func (c *Call) closed(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.asked -= size
	c.signal()
}

// Finish ends the call with an error, if it has not ended yet.
func (c *Call) Finish(err error) { c.finish(nil, err) }

// Reply ends the call with a response, if it has not ended yet. M is the call's from
// then on.
func (c *Call) Reply(m *jsonrpc.Message) { c.finish(m, nil) }

func (c *Call) finish(m *jsonrpc.Message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished, c.reply, c.err = true, m, err
	if c.Request.Method != mcp.MethodListen {
		c.calls.pending.Add(-1)
	}
	c.signal()
}

// signal wakes who waits. c.mu is held.
func (c *Call) signal() {
	if c.news != nil {
		c.news()
	}
	if c.wake == nil {
		return // whoever waits later looks first
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// WhenNews has f called, which must not wait, whenever something comes for the call; nil
// ends that. What has come before is there when it returns.
func (c *Call) WhenNews(f func()) (has bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = f
	return c.finished || len(c.inbox) > 0
}

// take empties the inbox. A prompt, nil for none, is given the notifications in it at
// once, and later ones past it: none of these can overtake those, or be late.
func (c *Call) take(prompt Prompt) (items []item, finished bool, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake == nil && !c.finished {
		c.wake = make(chan struct{}, 1)
	}
	if prompt != nil {
		c.hook(prompt)
	}
	items, c.inbox, c.bytes = c.inbox, nil, 0
	return items, c.finished, c.open
}

// hook gives a prompt the notifications in the inbox, and later ones past it. c.mu is
// held.
func (c *Call) hook(prompt Prompt) {
	c.inbox = slices.DeleteFunc(c.inbox, func(it item) bool {
		if it.ask != nil {
			return false
		}
		c.bytes -= it.size
		_ = prompt.Notify(context.Background(), &it.n) // see deliver
		return true
	})
	c.prompt = prompt
}

// Open gives caller, who is about to wait, a notification before whatever has come for
// the call. A [Prompt] caller has what comes later as soon as it comes.
func (c *Call) Open(ctx context.Context, caller mcp.Caller, first *mcp.Notification) error {
	prompt, ok := caller.(Prompt)
	if !ok {
		return caller.Notify(ctx, first)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := prompt.Notify(ctx, first); err != nil {
		return err
	}
	c.hook(prompt)
	return nil
}

// release returns the channel, which holds nothing, and uses it no more; nil if the
// call has none.
func (c *Call) release() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	wake := c.wake
	c.wake = nil
	select {
	case <-wake:
	default:
	}
	return wake
}

// Wait delivers what comes for the call to caller and returns its response, or
// the error that it was finished with. It ends early with ctx, and after limit
// (none if 0) with context.DeadlineExceeded; the time in which questions are
// open does not count. A response that has come wins over both. All questions
// that were put have ended when it returns. It must not be called concurrently.
func (c *Call) Wait(ctx context.Context, caller mcp.Caller, limit time.Duration) (*jsonrpc.Message, error) {
	if finished, more := c.state(); finished && !more {
		return c.reply, c.err
	}
	var w waiter
	w.clock = newClock(limit)
	defer w.stop()
	defer c.unhook()
	prompt, _ := caller.(Prompt)
	for {
		items, finished, open := c.take(prompt)
		for i := range items {
			w.deliver(ctx, c, caller, &items[i])
		}
		if finished {
			return c.reply, c.err
		}
		w.clock.pause(open > 0)
		select {
		case <-c.wake:
		case <-ctx.Done():
			return c.late(context.Cause(ctx))
		case <-w.clock.expired():
			return c.late(context.DeadlineExceeded)
		}
	}
}

// A Reader reads from the peer for all calls. There is one right to do so, which a
// call that waits can have for a while.
type Reader interface {
	// Take reports whether the caller has the right now. If so, it must call Pass
	// soon after Read has reported false, or after it wants no more.
	Take() bool
	// Read reads one message and gives it to whom it belongs. It reports whether
	// the caller may read on.
	Read() bool
	Pass()
}

// WaitReading is Wait for a caller that may read for itself, as long as nothing but
// the response comes for it.
func (c *Call) WaitReading(ctx context.Context, caller mcp.Caller, limit time.Duration, reader Reader) (*jsonrpc.Message, error) {
	if c.read(ctx, reader) {
		return c.reply, c.err
	}
	return c.Wait(ctx, caller, limit)
}

// read reads, if the call may, until something has come for it. It reports whether
// that is the response and nothing else: what else comes is delivered when somebody
// else reads, since the caller may take its time.
func (c *Call) read(ctx context.Context, reader Reader) bool {
	if ctx.Err() != nil || !reader.Take() {
		return false
	}
	defer reader.Pass()
	for {
		if finished, more := c.state(); finished || more {
			return finished && !more
		}
		if !reader.Read() {
			return false
		}
	}
}

// state reports whether the call has ended, and whether there is more in its inbox.
func (c *Call) state() (finished, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished, len(c.inbox) > 0
}

// unhook ends that a prompt has notifications past the inbox.
func (c *Call) unhook() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompt = nil
}

// late returns the response if it has come in spite of err, and err if not.
func (c *Call) late(err error) (*jsonrpc.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return c.reply, c.err
	}
	c.left = true
	return nil, err
}

// Heard reports whether a notification or a question has come for the call. Whoever made
// it has seen that, or will.
func (c *Call) Heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Over reports whether the call has its response, or nobody waits for that any
// more. It may be in flight a moment longer.
func (c *Call) Over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished || c.left
}

// A waiter is one running Wait.
type waiter struct {
	clock     clock
	questions *questions // nil while there were none
}

// questions are those that one running Wait has put.
type questions struct {
	open   sync.WaitGroup
	ctx    context.Context // of this one Wait
	cancel context.CancelFunc
}

func (w *waiter) deliver(ctx context.Context, call *Call, caller mcp.Caller, it *item) {
	if it.ask == nil {
		// An error means that the caller has gone, which ctx tells as well.
		_ = caller.Notify(ctx, &it.n)
		return
	}
	if w.questions == nil {
		w.questions = new(questions)
		w.questions.ctx, w.questions.cancel = context.WithCancel(ctx)
	}
	ask, size, asking := it.ask, it.size, w.questions.ctx
	w.questions.open.Go(func() {
		defer call.closed(size)
		ask(asking, caller)
	})
}

func (w *waiter) stop() {
	w.clock.stop()
	if w.questions != nil {
		w.questions.cancel()
		w.questions.open.Wait()
	}
}

// A clock counts down while it is not paused.
type clock struct {
	left    time.Duration
	started time.Time
	timer   *time.Timer
}

func newClock(limit time.Duration) clock {
	c := clock{left: limit}
	if limit > 0 && limit < NoLimit {
		c.started, c.timer = time.Now(), time.NewTimer(limit)
	}
	return c
}

func (c *clock) pause(pause bool) {
	switch running := !c.started.IsZero(); {
	case c.timer == nil:
	case pause && running:
		c.timer.Stop()
		c.left -= time.Since(c.started)
		c.started = time.Time{}
	case !pause && !running:
		c.started = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *clock) expired() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}
