package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A dialedSSE is the [transport.Link] to a server of HTTP with SSE: what comes on
// the stream is read from it, and what is written to it is posted, each message
// by a goroutine of its own. Some servers answer the POST of a call only when
// the call has ended.
type dialedSSE struct {
	// Set at construction, and by open.
	site     *site
	ctx      context.Context // ends with the link; its cause says why
	cancel   context.CancelCauseFunc
	body     io.ReadCloser
	events   *sse.Reader
	endpoint string

	calls  chan struct{} // holds a value for each request being posted
	others chan struct{} // and for each other message

	// opening is set during the handshake, whose messages have an order: Write
	// then waits until its message is taken.
	opening atomic.Bool

	last  error // of the stream, once it has been read to its end; owned by the reader
	moves int   // further endpoints that were passed over; owned by the reader

	mu      sync.Mutex
	closed  bool // nothing is started any more, guarded by mu
	order   line // of the other messages, guarded by mu
	running sync.WaitGroup
}

const (
	// maxPosting is how many requests of calls may wait for the server to take
	// them, and how many other messages, or over Streamable HTTP how many answers;
	// whoever has one more waits.
	maxPosting = 256
	// afterCall is how much longer than its call a POST may take. An answer that
	// comes on the stream can overtake it.
	afterCall = 5 * time.Second
)

func newDialedSSE(s *site) *dialedSSE {
	l := &dialedSSE{
		site: s, body: http.NoBody,
		calls: make(chan struct{}, maxPosting), others: make(chan struct{}, maxPosting),
	}
	l.opening.Store(true)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Read implements transport.Link.
func (l *dialedSSE) Read() ([]byte, error) {
	for l.last == nil {
		e, err := l.events.Next()
		switch {
		case err != nil:
			return l.ended(err)
		case e.Name == endpointEvent:
			// What has been said once is what the origin was checked for.
			if l.moves++; l.moves&(l.moves-1) == 0 {
				l.site.opts.Logger.Warn("a further endpoint was passed over", "count", l.moves)
			}
		case e.Name == "" && len(e.Data) > 0:
			return l.read(e.Data), nil
		}
	}
	return nil, l.last
}

func (l *dialedSSE) read(data []byte) []byte {
	if l.site.opts.Tap != nil {
		l.site.opts.Tap(false, data)
	}
	return data
}

// ended is what Read returns when there are no more events. An event that the end
// has cut off is lost, as the standard has it, unless it is a whole response.
func (l *dialedSSE) ended(err error) ([]byte, error) {
	if tooLarge, ok := errors.AsType[*sse.TooLargeError](err); ok {
		return nil, &mcp.CallError{Kind: mcp.LimitExceeded, Limit: "MaxBody", Outcome: mcp.MaybeExecuted, Err: tooLarge}
	}
	l.last = errors.New("the server ended the event stream")
	switch cause := context.Cause(l.ctx); {
	case cause != nil:
		l.last = cause
	case isGivenUp(err):
		l.last = fmt.Errorf("the event stream is over the limit MaxBody: %w", err)
	case !errors.Is(err, io.EOF):
		l.last = l.site.origin.brief(err)
	}
	l.cancel(l.last) // nothing that is posted now could be answered
	var m jsonrpc.Message
	if data, _ := l.events.Partial(); data != nil && jsonrpc.Scan(data, &m) == nil && m.Kind == jsonrpc.Response {
		l.site.opts.Logger.Warn("the last event of the stream, a response, was not terminated")
		return l.read(data), nil
	}
	return nil, l.last
}

// Write implements transport.Link. It is for what is not the request of a call.
func (l *dialedSSE) Write(ctx context.Context, frame []byte, _ bool) error {
	isOpening := l.opening.Load()
	posted := make(chan error, 1)
	err := l.start(ctx, l.others, frame, &l.order, func(body []byte, at place) {
		defer close(at.taken)
		awaitEither(at.previous, l.ctx.Done(), orderWait)
		ctx, cancel := context.WithTimeout(l.ctx, postTimeout)
		defer cancel()
		err := l.post(ctx, body)
		if posted <- err; err != nil && !isOpening {
			l.site.opts.Logger.Warn("a message was not taken", "err", err)
		}
		l.endIfLost(err)
	})
	if err != nil || !isOpening {
		return err
	}
	select {
	case err := <-posted:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// orderWait is how long a message waits for the one before it to be taken. What is
// said of a call, and then of its question, is to arrive in that order; but a server
// that takes one message slowly is not to be kept from the others.
const orderWait = time.Second

// A line is an order of messages. It must not be used concurrently.
type line struct {
	newest chan struct{} // closed when the newest message has been taken
}

// A place is where in a line a message is.
type place struct {
	previous <-chan struct{} // closed when the last message before it has been taken
	taken    chan struct{}   // to be closed when this one has, or cannot be
}

// join gives a message the last place. One that may not go on its way after all must
// not have one: whoever comes behind it would no longer wait for those before it.
func (o *line) join() place {
	at := place{previous: o.newest, taken: make(chan struct{})}
	o.newest = at.taken
	return at
}

// awaitEither waits for either of two, or as long as wait; it does not wait for what
// is nil.
func awaitEither(one, other <-chan struct{}, wait time.Duration) {
	if one == nil {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-one:
	case <-other:
	case <-timer.C:
	}
}

// Post sends the request of a call, see transport.Conn.
func (l *dialedSSE) Post(ctx context.Context, frame []byte, failed func(error)) error {
	waiting, cancel := context.WithTimeout(ctx, l.site.opts.MaxCall)
	defer cancel()
	return l.start(waiting, l.calls, frame, nil, func(body []byte, _ place) {
		posting, stop := context.WithCancel(l.ctx)
		defer stop()
		unhook := context.AfterFunc(ctx, func() { time.AfterFunc(afterCall, stop) })
		defer unhook()
		// The end of the link ends all calls, and says more.
		err := l.post(posting, body)
		if err != nil && posting.Err() == nil {
			failed(err)
		}
		l.endIfLost(err)
	})
}

// endIfLost ends the link if a POST has shown that its session has ended: the
// stream need not have noticed.
func (l *dialedSSE) endIfLost(err error) {
	if errors.Is(err, ErrSessionLost) {
		l.cancel(ErrSessionLost)
	}
}

// start runs send with a copy of frame in a goroutine that Close waits for, when
// there is a slot for it, and gives it the last place in order, if that is not nil.
func (l *dialedSSE) start(ctx context.Context, slots chan struct{}, frame []byte, order *line, send func(body []byte, at place)) error {
	if err := take(ctx, l.ctx, slots); err != nil {
		return err
	}
	body := bytes.Clone(frame)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		<-slots
		return mcp.ErrClosed
	}
	var at place
	if order != nil {
		at = order.join()
	}
	l.running.Go(func() {
		defer func() { <-slots }()
		send(body, at)
	})
	return nil
}

// take waits for a slot, no longer than ctx and the life of the link.
func take(ctx, life context.Context, slots chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if life.Err() != nil {
		return context.Cause(life)
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-life.Done():
		return context.Cause(life)
	case <-ctx.Done():
		return fmt.Errorf("%d messages wait for the server to take them, the limit: %w", maxPosting, context.Cause(ctx))
	}
}

// post makes a POST, and returns why its message was not taken. Any 2xx status
// means that it was; what comes with it is ignored.
func (l *dialedSSE) post(ctx context.Context, body []byte) error {
	header := make(http.Header, len(l.site.origin.header)+4)
	maps.Copy(header, l.site.origin.header)
	header["Accept"] = anyReply
	header["Content-Type"] = jsonType
	resp, err := l.site.sendTo(ctx, http.MethodPost, l.endpoint, body, header)
	if err != nil {
		return err
	}
	defer discard(resp.Body)
	if isSuccess(resp.StatusCode) {
		return nil
	}
	return l.notTaken(resp)
}

// notTaken returns what a status other than 2xx means for a message: the answer
// to it would have come on the stream.
func (l *dialedSSE) notTaken(resp *http.Response) error {
	err := l.site.statusOnly(resp)
	if status := resp.StatusCode; status == http.StatusNotFound || status == http.StatusGone {
		return &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: fmt.Errorf("%w: %w", ErrSessionLost, errors.Unwrap(err)), Public: ErrSessionLost.Error()}
	}
	return err
}

// Close implements transport.Link.
func (l *dialedSSE) Close() error {
	l.cancel(mcp.ErrClosed)
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.body.Close()
	l.running.Wait()
	l.site.leave()
	return nil
}
