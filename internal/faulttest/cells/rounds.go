package cells

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A Series says which rounds are made in which cell.
type Series struct {
	Client, Server Side
	Seed           uint64
	Rounds         int
	Dir            string // an empty directory
	Progress       func() // called after each round; nil for nobody
}

// Bounds of rounds.
const (
	clients   = 3
	maxCalls  = 4                      // at a time
	maxParked = 6                      // some of which nobody comes back for
	life      = 150 * time.Millisecond // of these
)

// A run is the rounds of one series.
type run struct {
	*Series

	backend *Backend
	bridge  *Bridge
	clients []*Client
	figures *Figures

	mu    sync.Mutex
	ended map[string]ending // by the id of the call; guarded by mu, like figures
}

// An ending is how a call ended.
type ending struct {
	err error
	// retry says that the last request was one of several that make up the call of a
	// modern client: what is known of it is not known of the call.
	retry bool
}

// Run makes rounds, fewer if ctx ends before, and returns what came of them. The
// program must begin with [RunServer].
func Run(ctx context.Context, s Series) (*Figures, error) {
	before := faulttest.Count(s.Dir)
	r := &run{Series: &s, figures: newFigures(s.Client, s.Server), ended: make(map[string]ending)}
	if err := r.all(ctx); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", r.figures.Cell, s.Seed, err)
	}
	r.figures.Left = faulttest.Since(before, s.Dir)
	if !r.figures.Left.None() {
		r.problem(-1, "%v are left", r.figures.Left)
	}
	return r.figures, nil
}

func (r *run) all(ctx context.Context) (err error) {
	if r.backend, err = NewBackend(r.Server, r.Dir, life); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.backend.Close()) }()
	waiting := streamable.ServerOptions{Drain: time.Second}
	waiting.Park = park.Options{MaxParked: maxParked, Life: life}
	// As many connections as clients, and those that end.
	if r.bridge, err = NewBridge(r.backend, transport.PoolOptions{MaxConns: 4 * clients}, waiting); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.bridge.Close()) }()
	defer func() { err = errors.Join(err, r.disconnect()) }()
	for i := range clients {
		c, err := r.connect(ctx, i)
		if err != nil {
			return err
		}
		r.clients = append(r.clients, c)
	}
	for i := 0; i < r.Rounds && ctx.Err() == nil; i++ {
		if err := r.round(ctx, i); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		r.figures.Rounds++
		if r.Progress != nil {
			r.Progress()
		}
	}
	if err := r.room(ctx); err != nil {
		return err
	}
	return r.audit()
}

func (r *run) disconnect() (err error) {
	for _, c := range r.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}

// connect connects a client, for which a legacy one needs the server.
func (r *run) connect(ctx context.Context, i int) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, err := r.bridge.Connect(ctx, r.Client, fmt.Sprint("client ", i))
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		if err := r.revive(); err != nil {
			return nil, err
		}
	}
}

// revive starts the server again if it has died, and waits a moment.
func (r *run) revive() error {
	if !r.backend.Alive() {
		return r.backend.Restore()
	}
	time.Sleep(time.Millisecond)
	return nil
}

// problem notes what does not hold.
func (r *run) problem(round int, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures.Problems = append(r.figures.Problems,
		fmt.Sprintf("%s, seed %d, round %d: %s", r.figures.Cell, r.Seed, round, fmt.Sprintf(format, args...)))
}

// round makes some calls at once, in which the server dies or a client leaves, and then
// one that must succeed.
func (r *run) round(ctx context.Context, n int) error {
	random := rand.New(rand.NewPCG(r.Seed, uint64(n)))
	if random.IntN(4) == 0 {
		i := random.IntN(clients)
		if err := r.clients[i].Close(); err != nil {
			r.problem(n, "closing a client: %v", err)
		}
		c, err := r.connect(ctx, i)
		if err != nil {
			return err
		}
		r.clients[i] = c
	}
	var calls sync.WaitGroup
	orders := make([]Order, 1+random.IntN(maxCalls))
	for i := range orders {
		orders[i] = Order{ID: fmt.Sprintf("%d-%d", n, i), Asks: random.IntN(3), Wait: random.IntN(5)}
	}
	if random.IntN(3) == 0 {
		fates := []faulttest.Fate{faulttest.Executed, faulttest.Answered}
		orders[random.IntN(len(orders))].Fate = fates[random.IntN(len(fates))]
	}
	for i := range orders {
		p := &player{run: r, round: n, client: r.clients[random.IntN(clients)], leaves: random.IntN(5) == 0, tries: random.IntN(3) == 0}
		calls.Go(func() { p.play(ctx, &orders[i]) })
	}
	if random.IntN(3) == 0 {
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
		r.backend.Kill()
	}
	calls.Wait()
	return r.recover(ctx, n)
}

// A player makes one call and answers what it asks, unless it leaves when asked.
type player struct {
	run    *run
	round  int
	client *Client
	leaves bool
	tries  bool // states that are not to be taken
}

func (p *player) play(ctx context.Context, o *Order) error {
	ctx, leave := context.WithTimeout(ctx, patience)
	defer leave()
	call := p.client.NewCall(ctx, o)
	retry := false
	for call.Go() {
		retry = p.run.Client.Era == mcp.Modern
		if p.tries && p.run.Client.Era == mcp.Modern {
			p.try(call)
		}
		if p.leaves {
			leave()
			call.Wait()
			p.run.end(p, o, ending{errLeft, retry})
			return errLeft
		}
	}
	err := call.Err
	switch {
	case err != nil:
	case refusedForRoom(&call.Result):
		err = errNoRoom
	case text(&call.Result) != wanted(o):
		p.run.problem(p.round, "the call %s has the result %s", o.ID, call.Result.Raw())
	}
	if err != nil && ctx.Err() != nil {
		p.run.problem(p.round, "the call %s did not end within %v: %v", o.ID, patience, err)
	}
	p.run.end(p, o, ending{err, retry})
	return err
}

// errNoRoom is how a call ended whose client could not be asked: calls that were left
// take the room until their life ends, and rounds may be quicker.
var errNoRoom = errors.New("too many calls were parked")

// refusedForRoom reports whether a tool failed since its question was refused for that.
func refusedForRoom(r *mcp.Result) bool {
	failed, _ := r.Lookup("isError")
	return string(failed) == "true" && strings.Contains(text(r), fmt.Sprintf("limit exceeded: %d calls wait", maxParked))
}

// errLeft is how a call ended for a client that did not answer.
var errLeft = errors.New("the client left")

// try makes the retry under states that are not that of the call.
func (p *player) try(call *Call) {
	state := []byte(call.State())
	at := len(state) / 2
	state[at] = "BA"[state[at]&1]
	if string(state) == call.State() {
		state[at] = 'C'
	}
	_, err := call.As(p.client, string(state))
	if wire := jsonrpc.ToWire(err); err == nil || wire.Code != jsonrpc.CodeInvalidParams && mcp.OutcomeOf(err) == mcp.Answered && !ours(wire) {
		p.run.problem(p.round, "the call %s under a changed state: %v", call.Order.ID, err)
	}
}

// ours reports whether an error is of a bridge whose server is not there.
func ours(e *jsonrpc.Error) bool { _, ok := e.Data.Lookup("mcpsplice"); return ok }

func text(r *mcp.Result) string {
	content := r.Get("content")
	for _, item := range jsonrpc.Elements(content.Raw()) {
		block := jsonrpc.Trusted(item)
		text, _ := block.LookupString("text")
		return text
	}
	return ""
}

func wanted(o *Order) string { return o.ID + strings.Repeat(" accept Ada", o.Asks) }

func (r *run) end(p *player, o *Order, e ending) {
	r.mu.Lock()
	_, twice := r.ended[o.ID]
	r.ended[o.ID] = e
	r.figures.count(e.err)
	r.mu.Unlock()
	if twice {
		r.problem(p.round, "the call %s has ended twice", o.ID)
	}
}

// recover calls until a call succeeds that asks.
func (r *run) recover(ctx context.Context, round int) error {
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		p := &player{run: r, round: round, client: r.clients[0]}
		err := p.play(ctx, &Order{ID: fmt.Sprintf("%d-again%d", round, i), Asks: 1})
		switch {
		case err == nil:
			return nil
		case time.Since(began) > patience:
			return fmt.Errorf("no call succeeds any more: %w", err)
		}
		if err := r.revive(); err != nil {
			return err
		}
	}
	return nil
}

// room checks that no parked call is left: so many can be parked at once as may be.
func (r *run) room(ctx context.Context) error {
	for began := time.Now(); ctx.Err() == nil; time.Sleep(life / 10) {
		var asked atomic.Int64
		var calls sync.WaitGroup
		parked := make(chan struct{})
		for i := range maxParked {
			calls.Go(func() {
				call := r.clients[i%clients].NewCall(ctx, &Order{ID: fmt.Sprint("room ", time.Now().UnixNano(), i), Asks: 1})
				if call.Go() && asked.Add(1) == maxParked {
					close(parked)
				}
				select {
				case <-parked:
					call.Go()
				case <-time.After(life):
				}
				if r.Client.Era == mcp.Legacy {
					call.Go()
				}
			})
		}
		calls.Wait()
		if asked.Load() == maxParked {
			return nil
		}
		if time.Since(began) > patience {
			r.problem(-1, "%d calls can be parked, not %d: some are left", asked.Load(), maxParked)
			return nil
		}
		// A call that was left may have ended the server after the last round.
		if err := r.revive(); err != nil {
			return err
		}
	}
	return nil
}

// audit compares how calls ended with what was executed.
func (r *run) audit() error {
	executed, err := r.backend.Executed()
	if err != nil {
		return err
	}
	for id, e := range r.ended {
		n := executed[id]
		if n > 1 {
			r.figures.Twice++
			r.problem(-1, "the call %s was executed %d times: %v", id, n, e.err)
		}
		switch {
		case e.err == nil && n == 0:
			r.problem(-1, "the call %s has a result and was not executed", id)
		case e.err != nil && outcomeOf(e.err) == mcp.NotSent && !e.retry && n > 0:
			r.problem(-1, "the call %s was executed: %v", id, e.err)
		}
	}
	return nil
}
