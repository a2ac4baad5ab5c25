package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Correlation makes calls whose replies are checked whole: a reply must be that
// to its own call, byte for byte.
type Correlation struct {
	Addr        string
	Peer        Peer
	Connections int
	Calls       int // in all

	done    atomic.Int64
	crossed atomic.Int64
	wrong   atomic.Int64
}

// Done returns how many calls have been answered so far.
func (c *Correlation) Done() int { return int(c.done.Load()) }

// Crossed returns how many replies have had the id or the text of another call.
func (c *Correlation) Crossed() int { return int(c.crossed.Load()) }

// Wrong returns how many replies have been those of no call at all.
func (c *Correlation) Wrong() int { return int(c.wrong.Load()) }

// tooMany is after how many bad replies a connection gives up.
const tooMany = 100

// Run makes the calls. Each connection is a client of its own, and all of them
// count their ids from the same number on, as clients do that know nothing of each
// other. The texts tell the calls apart.
func (c *Correlation) Run(ctx context.Context) error {
	var left atomic.Int64
	left.Store(int64(c.Calls))
	errs := make([]error, c.Connections)
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			h := NewHTTP(c.Addr, c.Peer)
			defer h.Close()
			if errs[i] = h.Open(); errs[i] == nil {
				errs[i] = c.call(ctx, h, i, &left)
			}
		})
	}
	workers.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// call makes calls on one connection as long as some are left.
func (c *Correlation) call(ctx context.Context, h *HTTP, connection int, left *atomic.Int64) error {
	pair, err := newPair(h, connection)
	if err != nil {
		return err
	}
	for n := int64(1); left.Add(-1) >= 0 && ctx.Err() == nil; n++ {
		pair.set(n)
		reply, err := h.conns[0].do(pair.request.Bytes)
		if err != nil {
			return err
		}
		if reply.status != http.StatusOK {
			return reply.unexpected()
		}
		if !pair.matches(&reply) {
			c.note(&reply)
		}
		c.done.Add(1)
		if c.crossed.Load()+c.wrong.Load() >= tooMany {
			return fmt.Errorf("%d replies are wrong, the last one is %s", tooMany, wire.Excerpt(reply.body))
		}
	}
	return nil
}

// note counts a reply that is not the one that was expected.
func (c *Correlation) note(r *reply) {
	var m struct {
		ID     int64 `json:"id"`
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	data := r.body
	if r.events {
		data, _ = nextData(data)
	}
	if json.Unmarshal(data, &m) == nil && m.ID >= wire.FirstID &&
		len(m.Result.Content) == 1 && strings.HasPrefix(m.Result.Content[0].Text, textPrefix) {
		c.crossed.Add(1)
		return
	}
	c.wrong.Add(1)
}

const (
	textPrefix = "connection "
	textBytes  = 100
)

// A pair is a request, and the reply to it that is expected, of which the number
// of the call is patched in.
type pair struct {
	request *wire.Message
	// Where the request and the reply have the number, as digits: in the text.
	requestAt, replyAt int
	reply              []byte
	idAt               int // of the reply
}

// newPair makes the first call of a connection and learns from its reply.
func newPair(h *HTTP, connection int) (*pair, error) {
	const first = wire.FirstID
	text := fmt.Sprintf("%s%04d call %d ", textPrefix, connection, first)
	text += strings.Repeat("x", textBytes-len(text))
	call := wire.CallTool(h.peer.Revision, text)
	h.turn = 0
	reply, id, err := h.ask(call, "tools/call", wire.ToolName)
	if err == nil {
		err = wire.CheckCall(reply, id, h.peer.Revision, text)
	}
	if err != nil {
		return nil, err
	}
	p := &pair{request: call.HTTP(h.endpoint, "tools/call", wire.ToolName), reply: bytes.Clone(reply)}
	number := fmt.Appendf(nil, "call %d ", first)
	const before = len("call ")
	p.requestAt = bytes.Index(p.request.Bytes, number) + before
	p.replyAt = bytes.Index(p.reply, number) + before
	p.idAt = bytes.Index(p.reply, fmt.Appendf(nil, `"id":%d`, id)) + len(`"id":`)
	return p, nil
}

// set makes the pair that of the connection's call n.
func (p *pair) set(n int64) {
	n += wire.FirstID
	p.request.SetID(n)
	wire.PutID(p.request.Bytes[p.requestAt:], n)
	wire.PutID(p.reply[p.replyAt:], n)
	wire.PutID(p.reply[p.idAt:], n)
}

// matches reports whether a reply is the expected one.
func (p *pair) matches(r *reply) bool {
	body := bytes.TrimSuffix(r.body, []byte("\n"))
	for rest := body; r.events && len(rest) > 0; {
		body, rest = nextData(rest)
		if len(body) == len(p.reply) {
			break
		}
	}
	return bytes.Equal(body, p.reply)
}
