// Package crowd has many clients of both protocol families call one server at once,
// and looks at whom answers and questions belong to. It builds on net/http and
// encoding/json alone, so that no mistake of the library hides in the checks.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Crowd is clients, every other one of which is modern, and what they do. The server
// has the tools [ToolName] and [TallyName].
type Crowd struct {
	Addr     string
	Clients  int
	InFlight int // calls of one client at a time
	Calls    int // in all
	// Ask and Cancel say of how many calls one asks its client in the middle, or is
	// cancelled. 0 stands for none.
	Ask, Cancel int
	// MustAsk counts questions as wrong that the client was not asked.
	MustAsk bool

	counts counts
}

// Tools of the server. The first gives back who called it, and what that one answered;
// the second says what was executed.
const (
	ToolName  = wire.ToolName
	TallyName = "tally"
)

// Arguments are those of [ToolName].
type Arguments struct {
	Who  string `json:"who"` // [Key] of the call
	Ask  bool   `json:"ask"`
	Wait int    `json:"wait"` // milliseconds
}

// Refused is what the first tool says after [Key] if its question was refused.
const Refused = " refused"

// Key names a call.
func Key(client, call int64) string { return fmt.Sprintf("client %d call %d", client, call) }

// A Tally is what a server says of the calls that it has executed.
type Tally struct {
	Executed  int `json:"executed"`
	Twice     int `json:"twice"`
	Cancelled int `json:"cancelled"` // whose cancellation it has seen
	Crossed   int `json:"crossed"`   // questions with the answer to another one
}

// Figures are what came of a crowd's calls.
type Figures struct {
	Answered  int // with what they had to be
	Cancelled int
	Asked     int // questions that reached their client
	Refused   int // calls that were to ask, and could not
	// None of the following may be.
	Crossed int // answers and questions that were another call's
	Wrong   int // that were nobody's
	Lost    int // calls without an answer
	Doubled int // calls with two

	Tally   Tally
	Took    time.Duration
	Example string // of what may not be
}

// Bad returns how many things there are that may not be.
func (f *Figures) Bad() int {
	return f.Crossed + f.Wrong + f.Lost + f.Doubled + f.Tally.Twice + f.Tally.Crossed
}

type counts struct {
	done                                int64 // atomic
	mu                                  sync.Mutex
	figures                             Figures // guarded by mu
	answered, cancelled, asked, refused atomic.Int64
}

// bad notes what may not be.
func (c *counts) bad(n *int, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	c.figures.Example = fmt.Sprintf(format, args...)
}

// Done returns how many calls have ended so far.
func (c *Crowd) Done() int { return int(atomic.LoadInt64(&c.counts.done)) }

// Run makes the calls. An error is of the crowd itself.
func (c *Crowd) Run(ctx context.Context) (*Figures, error) {
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(c.Calls))
	errs := make([]error, c.Clients)
	var clients sync.WaitGroup
	for i := range errs {
		clients.Go(func() {
			m := newMember(c, int64(i))
			defer m.http.CloseIdleConnections()
			if errs[i] = m.open(ctx); errs[i] == nil {
				m.run(ctx, &left)
			}
		})
	}
	clients.Wait()
	f := &c.counts.figures
	f.Took = time.Since(began)
	f.Answered, f.Cancelled = int(c.counts.answered.Load()), int(c.counts.cancelled.Load())
	f.Asked, f.Refused = int(c.counts.asked.Load()), int(c.counts.refused.Load())
	return f, errors.Join(append(errs, context.Cause(ctx))...)
}

// A member is one client.
type member struct {
	crowd    *Crowd
	number   int64
	revision wire.Revision
	http     *http.Client
	leaving  *http.Client // for calls that are cancelled, which may take another's connection with them
	session  string
	last     atomic.Int64 // call
}

func newMember(c *Crowd, number int64) *member {
	m := &member{crowd: c, number: number, revision: wire.Legacy}
	if number%2 == 1 {
		m.revision = wire.Modern
	}
	m.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * c.InFlight}}
	m.leaving = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return m
}

// run makes calls as long as some are left. Those that are made at a time have ids
// that differ in their type only.
func (m *member) run(ctx context.Context, left *atomic.Int64) {
	var workers sync.WaitGroup
	for w := range m.crowd.InFlight {
		workers.Go(func() {
			for n := int64(1); left.Add(-1) >= 0 && ctx.Err() == nil; n++ {
				m.one(ctx, n, w%2 == 1)
				atomic.AddInt64(&m.crowd.counts.done, 1)
			}
		})
	}
	workers.Wait()
}

// one makes one call.
func (m *member) one(ctx context.Context, n int64, asText bool) {
	number := m.last.Add(1)
	call := &call{member: m, key: Key(m.number, number), id: fmt.Sprint(n)}
	if asText {
		call.id = fmt.Sprintf("%q", call.id)
	}
	call.arguments = Arguments{Who: call.key}
	switch {
	case m.crowd.Cancel > 0 && rand.IntN(m.crowd.Cancel) == 0:
		// A cancellation that overtakes its call is of no effect.
		call.arguments.Wait = 5000
		call.cancelAfter = 20*time.Millisecond + time.Duration(rand.IntN(20_000))*time.Microsecond
		if rand.IntN(2) == 0 { // it may ask when its client has gone
			call.arguments.Wait, call.arguments.Ask = 1+rand.IntN(40), m.crowd.Ask > 0
		}
	case m.crowd.Ask > 0 && rand.IntN(m.crowd.Ask) == 0:
		call.arguments.Ask = true
	}
	call.make(ctx)
}
