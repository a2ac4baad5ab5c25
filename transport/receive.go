package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

func (c *Conn) readLoop() {
	defer c.over()
	defer close(c.done)
	for {
		answered, err := c.read()
		if answered && c.baton.mayRest(c.buffered()) {
			c.baton.rest()
			err = c.baton.broken
		}
		if err != nil {
			c.ended(err)
			if _, ok := errors.AsType[*noiseError](err); ok {
				c.start(func() { _ = c.link.Close() }) // Close returns the error
			}
			return
		}
	}
}

// read reads and takes one message, which its caller must have the baton for. It
// reports whether that was a response. After an error other than
// jsonrpc.ErrInterrupted nothing more is to be read.
func (c *Conn) read() (answered bool, err error) {
	data, err := c.link.Read()
	if err == nil {
		answered, isMessage := c.received(data)
		return answered, c.noises.heard(isMessage, c.opts.MaxNoise)
	}
	if lost, ok := errors.AsType[*mcp.CallError](err); ok {
		c.skip("message passed over", err)
		c.calls.Fail(lost, false)
		c.calls.Missed()
		return false, c.noises.heard(false, c.opts.MaxNoise)
	}
	if _, ok := errors.AsType[*jsonrpc.LineTooLongError](err); ok {
		c.skip("line passed over", err)
		// It was a reply, most likely; whose cannot be told.
		c.calls.Fail(&mcp.CallError{
			Kind: mcp.LimitExceeded, Limit: "MaxLine", Outcome: mcp.MaybeExecuted, Err: err,
		}, false)
		c.calls.Missed() // or a change
		return false, c.noises.heard(false, c.opts.MaxNoise)
	}
	return false, err
}

// buffered reports whether there is something to read at once.
func (c *Conn) buffered() bool {
	hint, ok := c.link.(framingHint)
	return ok && hint.Buffered()
}

// noisePause is after which silence what is no message begins a new row: a server
// that logs a line now and then is not given up, however long it lives.
const noisePause = time.Second

// noises are messages in a row that were none.
type noises struct {
	n    int
	last time.Time
}

// A noiseError is why a server is given up that writes no messages.
type noiseError struct{ lines, limit int }

func (e *noiseError) Error() string {
	return fmt.Sprintf("the server wrote %d lines in a row that are no messages of MCP, the limit MaxNoise is %d", e.lines, e.limit)
}

// heard counts what came. It returns an error if that is too much; a negative limit
// is none.
func (r *noises) heard(isMessage bool, limit int) error {
	if isMessage {
		r.n = 0
		return nil
	}
	now := time.Now()
	if now.Sub(r.last) > noisePause {
		r.n = 0
	}
	r.n, r.last = r.n+1, now
	if limit < 0 || r.n <= limit {
		return nil
	}
	return &noiseError{r.n, limit}
}

// ended fails what is in flight when the link has ended.
func (c *Conn) ended(err error) {
	c.mu.Lock()
	c.err = c.reason(err)
	err = c.err
	c.mu.Unlock()
	c.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: err}, true)
}

// reason returns why the link has ended, given the error of the last read. c.mu
// is held.
func (c *Conn) reason(err error) error {
	if c.closed {
		return mcp.ErrClosed
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the server closed its output")
	}
	if c.truncated {
		err = fmt.Errorf("%w; its last message is truncated", err)
	}
	return c.hinted(err)
}

// hinted adds to err what the server may be doing that is not understood.
func (c *Conn) hinted(err error) error {
	if hint, ok := c.link.(framingHint); ok && hint.SawLengthFraming() {
		return fmt.Errorf("%w (the server seems to use Content-Length framing; MCP frames messages by newlines)", err)
	}
	return err
}

func (c *Conn) skip(what string, err error) {
	c.noise.Add(1)
	c.log.Warn(what, "err", err)
}

// received takes one message of the server. It reports whether it is a response,
// and whether it is a message at all.
func (c *Conn) received(data []byte) (answered, isMessage bool) {
	m := responses.Get().(*jsonrpc.Message)
	if err := jsonrpc.Scan(data, m); err != nil {
		if jsonrpc.IsBatch(data) {
			return false, c.receivedBatch(data)
		}
		c.unreadable(m, err)
		return false, false
	}
	m.Memory = data
	answered = m.Kind == jsonrpc.Response
	c.take(m)
	return answered, true
}

// responses holds memory of responses that have been handed on.
var responses = sync.Pool{New: func() any { return new(jsonrpc.Message) }}

// recycle gives the memory of a response back that nobody uses any more. One without
// memory of its own may still be in the reader's hands.
func recycle(m *jsonrpc.Message) {
	if m.Memory != nil {
		*m = jsonrpc.Message{}
		responses.Put(m)
	}
}

// take takes one message that has been scanned.
func (c *Conn) take(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Response:
		if call, loosely := c.calls.Respond(m); call == nil {
			c.log.Debug("a response answers nothing", "id", m.ID.String())
		} else if loosely {
			c.log.Warn("a response has an id of another type", "id", m.ID.String(), "method", call.Request.Method)
		}
	case jsonrpc.Request:
		c.asked(m)
	default:
		// Before the era is known there is nobody to tell.
		if c.known.Load() {
			c.era.Notified(m, nil)
		}
	}
}

// receivedBatch takes a batch apart. In a revision that has none, the calls that
// it means to answer fail.
func (c *Conn) receivedBatch(data []byte) (isBatch bool) {
	items, err := jsonrpc.SplitBatch(data)
	if err != nil {
		c.skip("what the server wrote is no message", err)
		return false
	}
	if !c.batches.Load() {
		err = fmt.Errorf("the server sent a batch, which is part of revision %s only", mcp.Revision20250326)
	}
	for _, item := range items {
		var m jsonrpc.Message
		if scanErr := jsonrpc.Scan(item, &m); scanErr != nil {
			c.unreadable(&m, scanErr)
		} else if err != nil {
			c.unreadable(&m, err)
		} else {
			c.take(&m)
			isBatch = true
		}
	}
	return isBatch
}

// unreadable passes over what is no message; the call that it meant to answer,
// if that can be told, fails. Who listens learns of a notification that is lost.
func (c *Conn) unreadable(m *jsonrpc.Message, err error) {
	c.skip("what the server wrote is no message", err)
	if hint, ok := c.link.(framingHint); ok && hint.Unterminated() {
		c.truncated = true // the end of the link says more than we could
		return
	}
	if m.Kind == jsonrpc.Notification {
		c.calls.Missed()
	}
	if m.Kind != jsonrpc.Response || m.ID.IsZero() {
		return
	}
	if call, _ := c.calls.Find(m.ID); call != nil {
		call.Finish(&mcp.CallError{
			Method: call.Request.Method, Kind: mcp.BadReply, Outcome: mcp.Answered,
			Err: err, Public: "the server's response is not valid",
		})
	}
}

// asked hands a request of the server to the era. Before that is known it is
// answered as well: the server may wait for it with its own answer.
func (c *Conn) asked(m *jsonrpc.Message) {
	ctx := context.Background()
	if c.known.Load() {
		c.era.Asked(ctx, m, nil)
		return
	}
	if client := c.client.Load(); client != nil {
		client.Asked(ctx, m, nil)
		return
	}
	var result mcp.Result
	var err error
	if method := mcp.MethodName(m.Method); method != mcp.MethodPing {
		result, err = session.Refusal(method, c.opts.Capabilities)
	}
	c.replySoon(m.ID, result, err)
}

// replyWait bounds how long the read loop waits for a server that does not read.
const replyWait = time.Second // more than a busy machine leaves a goroutine waiting

func (c *Conn) replySoon(id jsonrpc.ID, result mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), replyWait)
	defer cancel()
	if err := c.Reply(ctx, id, result, err); err != nil {
		c.log.Debug("an answer did not reach the server", "id", id.String(), "err", err)
	}
}
