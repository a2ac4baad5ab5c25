package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/share"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Defaults of [TableOptions].
const (
	DefaultMaxSessions = 10_000
	DefaultIdle        = 30 * time.Minute
)

// TableOptions configure a [Table]. The zero value is usable.
type TableOptions struct {
	// Max is how many sessions there may be at a time. One principal may have
	// MaxSessionShare times what is left of them. Default DefaultMaxSessions.
	Max  int
	Idle time.Duration // a session without requests or streams ends after it; default DefaultIdle
	// Ended is called with a session's id when the session has been closed
	// and nobody uses it any more. It may be called concurrently. Nil for
	// nothing.
	Ended func(id string)
}

// MaxSessionShare is how many times as many sessions as are left one principal may have
// in a [Table]: of 10,000 it has 7,500 at most, so that whoever comes finds one. Sessions
// without a principal are not held to it.
const MaxSessionShare = share.Times

// ErrTooMany says that a table holds as many sessions as it may, of all principals or of
// one.
var ErrTooMany = errors.New("too many sessions: the limit MaxSessions is reached")

// A Table holds the sessions of an HTTP listener by their ids, which are not to
// be guessed, each bound to its principal. It is safe for concurrent use.
type Table struct {
	opts TableOptions

	mu       sync.Mutex
	sessions map[string]*Held      // guarded by mu
	of       map[mcp.Principal]int // how many, of those that have a name; guarded by mu
	closed   bool                  // guarded by mu
}

// A Held is a session in a table.
type Held struct {
	*Server
	ID        string
	principal mcp.Principal
	table     *Table

	ended bool        // closed, guarded by table.mu
	users int         // requests and streams, guarded by table.mu
	since time.Time   // when the last user left, guarded by table.mu
	timer *time.Timer // calls expire; runs once the first user has left, guarded by table.mu
}

// NewTable returns an empty table.
func NewTable(opts TableOptions) *Table {
	if opts.Max <= 0 {
		opts.Max = DefaultMaxSessions
	}
	if opts.Idle <= 0 {
		opts.Idle = DefaultIdle
	}
	return &Table{opts: opts, sessions: make(map[string]*Held), of: make(map[mcp.Principal]int)}
}

// New adds a session and uses it, until [Held.Release]. Its id has 130 random
// bits in 26 visible ASCII characters. The error is [ErrTooMany], or [mcp.ErrClosed]
// after Close.
func (t *Table) New(handler mcp.Handler, opts ServerOptions) (*Held, error) {
	id := rand.Text()
	opts.ID = "session:" + id
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, mcp.ErrClosed
	case len(t.sessions) >= t.opts.Max:
		return nil, ErrTooMany
	case !share.Allows(t.of[opts.Principal], 1, t.opts.Max-len(t.sessions)):
		return nil, fmt.Errorf("%w for one principal: %d of %d sessions are its own, %d are the limit, and it may have %d times what is left",
			ErrTooMany, t.of[opts.Principal], len(t.sessions), t.opts.Max, MaxSessionShare)
	}
	h := &Held{Server: NewServer(handler, opts), ID: id, principal: opts.Principal, table: t, users: 1}
	t.sessions[id] = h
	if h.principal != (mcp.Principal{}) {
		t.of[h.principal]++
	}
	return h, nil
}

// remove takes a session out if it is there, and reports whether it was. t.mu is held.
func (t *Table) remove(h *Held) bool {
	if t.sessions[h.ID] != h {
		return false
	}
	delete(t.sessions, h.ID)
	if t.of[h.principal]--; t.of[h.principal] <= 0 {
		delete(t.of, h.principal)
	}
	return true
}

// Use returns the session with an id, if it is the principal's, and keeps it
// from expiring until [Held.Release]. Another principal's session is as unknown
// as none.
func (t *Table) Use(id string, principal mcp.Principal) (*Held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.sessions[id]
	if h == nil || h.principal != principal {
		return nil, false
	}
	h.users++
	return h, true
}

// Release ends one use.
func (h *Held) Release() {
	h.table.mu.Lock()
	h.users--
	last := h.users == 0 && h.ended
	if h.users == 0 && h.table.sessions[h.ID] == h {
		h.rest()
	}
	h.table.mu.Unlock()
	if last {
		h.table.tellEnded(h.ID)
	}
}

// rest begins the time that the session may be idle. table.mu is held.
func (h *Held) rest() {
	if h.since = time.Now(); h.timer == nil {
		h.timer = time.AfterFunc(h.table.opts.Idle, h.expire)
	}
}

// close closes the session, of which nobody begins a use any more.
func (h *Held) close() {
	h.Close()
	h.table.mu.Lock()
	last := h.users == 0 && !h.ended
	h.ended = true
	h.table.mu.Unlock()
	if last {
		h.table.tellEnded(h.ID)
	}
}

func (t *Table) tellEnded(id string) {
	if t.opts.Ended != nil {
		t.opts.Ended(id)
	}
}

// expire ends the session if nobody uses it. From the moment that this is
// certain nobody finds it any more.
func (h *Held) expire() {
	if h.takeIdle() {
		h.close()
	}
}

// takeIdle takes the session out of its table if it has been idle long enough;
// otherwise it looks again when it may have been.
func (h *Held) takeIdle() bool {
	h.table.mu.Lock()
	defer h.table.mu.Unlock()
	if h.table.sessions[h.ID] != h {
		return false
	}
	left := h.table.opts.Idle
	if h.users == 0 {
		left -= time.Since(h.since)
	}
	if left > 0 {
		h.timer.Reset(left)
		return false
	}
	return h.table.remove(h)
}

// End takes the session out of its table and closes it.
func (h *Held) End() {
	h.table.mu.Lock()
	h.table.remove(h)
	if h.timer != nil {
		h.timer.Stop()
	}
	h.table.mu.Unlock()
	h.close()
}

// Len returns how many sessions there are.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// Close ends all sessions and lets no more in.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	sessions := make([]*Held, 0, len(t.sessions))
	for _, h := range t.sessions {
		sessions = append(sessions, h)
	}
	t.mu.Unlock()
	for _, h := range sessions {
		h.End()
	}
}
