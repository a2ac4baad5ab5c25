package rounds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Kind is a sort of server and what happens to it.
type Kind struct {
	Era    mcp.Era
	HTTP   bool // over HTTP, else over stdio
	Faulty bool // the line to it has faults; else the server is killed
}

// Kinds are all there are.
var Kinds = []Kind{
	{Era: mcp.Legacy}, {Era: mcp.Modern},
	{Era: mcp.Legacy, HTTP: true}, {Era: mcp.Modern, HTTP: true},
	{Era: mcp.Legacy, HTTP: true, Faulty: true}, {Era: mcp.Modern, HTTP: true, Faulty: true},
}

// String describes a kind.
func (k Kind) String() string {
	text := "stdio"
	if k.HTTP {
		text = "HTTP"
	}
	text += " " + k.Era.String()
	if k.Faulty {
		return text + ", faulty line"
	}
	return text + ", killed"
}

// Deadlines of calls.
const (
	usual = 10 * time.Second       // of calls whose end the death of the server brings
	short = 300 * time.Millisecond // of calls that nothing else may end
)

// A run is rounds of one kind.
type run struct {
	kind    Kind
	seed    uint64
	server  server
	client  *client.Client
	figures *Figures
	calls   sync.WaitGroup

	mu    sync.Mutex
	ended map[string]error // by the id of the call; guarded by mu, like figures
}

// A Series says which rounds are made.
type Series struct {
	Kind     Kind
	Seed     uint64
	Rounds   int
	Dir      string // an empty directory
	Progress func() // called after each round; nil for nobody
}

// Run makes rounds, fewer if ctx ends before, and returns what came of them. The
// program must begin with [faulttest.RunChild].
func Run(ctx context.Context, s Series) (*Figures, error) {
	before := faulttest.Count(s.Dir)
	r := &run{kind: s.Kind, seed: s.Seed, figures: newFigures(s.Kind), ended: make(map[string]error)}
	if err := r.all(ctx, &s); err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", s.Kind, s.Seed, err)
	}
	r.figures.Left = faulttest.Since(before, s.Dir)
	if !r.figures.Left.None() {
		r.problem(-1, "%v are left", r.figures.Left)
	}
	return r.figures, nil
}

func (r *run) all(ctx context.Context, s *Series) (err error) {
	child := &faulttest.Child{Dir: s.Dir, Era: r.kind.Era}
	if r.server, err = newServer(r.kind, child, r.seed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.server.close()) }()
	connecting, cancel := context.WithTimeout(ctx, usual)
	defer cancel()
	r.client, err = client.Connect(connecting, r.server.target(), &client.Options{
		Healing: client.Healing{Crashes: 1 << 30}, // it is to go on after all of them
	})
	if err != nil {
		return err
	}
	for i := 0; i < s.Rounds && ctx.Err() == nil; i++ {
		if err := r.round(i); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if s.Progress != nil {
			s.Progress()
		}
	}
	if err := r.client.Close(); err != nil {
		r.problem(-1, "closing the client: %v", err)
	}
	return r.audit(child.Ledger())
}

// problem notes what does not hold.
func (r *run) problem(round int, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures.Problems = append(r.figures.Problems,
		fmt.Sprintf("%v, seed %d, round %d: %s", r.kind, r.seed, round, fmt.Sprintf(format, args...)))
}

// fates are how a server of each sort can die in a call.
var fates = []faulttest.Fate{
	faulttest.Unread, faulttest.Executed, faulttest.Notified, faulttest.Half, faulttest.Cut, faulttest.Answered,
}

// round makes some calls at once, in which the server dies or the line fails, and
// then one that must succeed.
func (r *run) round(n int) error {
	random := rand.New(rand.NewPCG(r.seed, uint64(n)))
	r.server.disturb()
	killed := new(atomic.Int64) // when, in nanoseconds
	deadline := usual
	if r.kind.Faulty {
		deadline = short
	}
	orders := make([]faulttest.Order, 1+random.IntN(4))
	for i := range orders {
		orders[i] = faulttest.Order{
			ID: fmt.Sprintf("%d-%d", n, i), Wait: random.IntN(4), Stream: random.IntN(2) == 0, Size: sizes[random.IntN(len(sizes))],
		}
	}
	fromOutside := r.kind.Faulty || random.IntN(3) == 0
	if !fromOutside {
		last := &orders[random.IntN(len(orders))]
		last.Fate, last.At = fates[random.IntN(len(fates))], random.IntN(200)
	}
	for i := range orders {
		r.calls.Go(func() {
			if r.call(n, &orders[i], deadline, killed) == nil || r.kind.Faulty {
				return
			}
			// Who does not wait until the server is back meets it being healed.
			r.call(n, &faulttest.Order{ID: fmt.Sprintf("%d-%d-next", n, i)}, deadline, new(atomic.Int64))
		})
	}
	if fromOutside && !r.kind.Faulty {
		time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
		killed.Store(time.Now().UnixNano())
		r.server.kill()
	}
	r.calls.Wait()
	return r.recover(n)
}

// sizes are how many bytes results have besides what they must: some fill a
// packet, some the buffers of a pipe.
var sizes = []int{0, 0, 0, 2000, 100_000}

// call makes one call, and looks at its end.
func (r *run) call(round int, o *faulttest.Order, limit time.Duration, killed *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	result, err := r.client.CallTool(ctx, "work", o, nil)
	now := time.Now()
	if err == nil && (len(result.Content) != 1 || textOf(result) != o.ID) {
		r.problem(round, "the call %s has the result of another one: %q", o.ID, textOf(result))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[o.ID] = err
	r.figures.count(err, now.Sub(began)-limit)
	if at := killed.Load(); at != 0 && err != nil {
		r.figures.AfterKill = max(r.figures.AfterKill, now.Sub(time.Unix(0, at)))
	}
	return err
}

func textOf(r *mcp.CallToolResult) string {
	for _, content := range r.Content {
		if text, ok := content.(*mcp.Text); ok {
			return text.Text
		}
	}
	return ""
}

// recover calls until a call succeeds.
func (r *run) recover(round int) error {
	since, err := r.server.restored()
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		o := &faulttest.Order{ID: fmt.Sprintf("%d-again%d", round, i)}
		limit := usual
		if r.kind.Faulty {
			limit = short
		}
		err := r.call(round, o, limit, new(atomic.Int64))
		took := time.Since(since)
		if err == nil {
			r.mu.Lock()
			r.figures.Recovery = append(r.figures.Recovery, took)
			r.mu.Unlock()
			return nil
		}
		if took > 2*usual {
			return fmt.Errorf("no call succeeds any more, for %v: %w", took, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// audit compares how calls ended with what was executed.
func (r *run) audit(ledger faulttest.Ledger) error {
	executed, err := ledger.Executed()
	if err != nil {
		return err
	}
	for id, err := range r.ended {
		n := executed[id]
		delete(executed, id)
		if n > 1 {
			r.figures.Twice++
			r.problem(-1, "the call %s was executed %d times: %v", id, n, err)
		}
		switch {
		case err == nil && n == 0:
			r.problem(-1, "the call %s has a result and was not executed", id)
		case err != nil && mcp.OutcomeOf(err) == mcp.NotSent && n > 0:
			r.problem(-1, "the call %s was executed: %v", id, err)
		}
	}
	for id := range executed {
		r.problem(-1, "the call %s was executed and never made", id)
	}
	_, err = os.Stat(string(ledger))
	return err
}
