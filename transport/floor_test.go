package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A stage is a farm whose tool calls last until they are told to end, and that
// notes whose calls come together.
type stage struct {
	farm
	mu       sync.Mutex
	inFlight []string
	began    []string // by clients' names, in order
	together bool     // calls of two clients were in flight
	end      chan string
}

func newStage(era mcp.Era) *stage {
	s := &stage{end: make(chan string)}
	s.era = era
	s.dialed = func(_ int, e *fakeEdge) error {
		e.handle = func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodListen:
				<-ctx.Done()
			case mcp.MethodCallTool:
				defer s.enter(req.Meta.ClientKey())()
				select {
				case <-s.end:
				case <-e.done:
					return mcp.Result{}, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}
				case <-ctx.Done():
					return mcp.Result{}, context.Cause(ctx)
				}
			}
			return mcp.Result{}, nil
		}
		return nil
	}
	return s
}

func (s *stage) enter(client string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.together = s.together || slices.ContainsFunc(s.inFlight, func(other string) bool { return other != client })
	s.inFlight = append(s.inFlight, client)
	s.began = append(s.began, client)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.inFlight, client)
		s.inFlight = slices.Delete(s.inFlight, i, i+1)
	}
}

func (s *stage) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.began, " ")
}

var serialized = transport.PoolOptions{Isolation: transport.Serialized, TurnWait: 10 * time.Second}

// TestSerializedCallsTakeTurns: one connection, on which a client's calls go
// together, and those of two clients never.
func TestSerializedCallsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(mcp.Legacy)
		p := newPool(t, &s.farm, serialized)
		var calls []*call
		for _, client := range []string{"a", "b", "c", "b", "a"} {
			calls = append(calls, start(t, p, toolCall(legacyMeta(client)), mcp.NoCaller{}))
			synctest.Wait()
		}
		for i, want := range []string{"a a", "a a", "a a b b", "a a b b", "a a b b c"} {
			if got := s.all(); got != want {
				t.Errorf("after %d ends %q have begun", i, got)
			}
			s.end <- ""
			synctest.Wait()
		}
		for _, c := range calls {
			if _, err := c.wait(t); err != nil {
				t.Error(err)
			}
		}
		if s.together || len(s.farm.all()) != 1 {
			t.Errorf("together: %v; %d connections", s.together, len(s.farm.all()))
		}
	})
}

func TestWaitingForATurnIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(mcp.Legacy)
		p := newPool(t, &s.farm, serialized)
		first := start(t, p, toolCall(legacyMeta("a")), mcp.NoCaller{})
		synctest.Wait()
		began := time.Now()
		e := start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{}).failure(t)
		if e.Kind != mcp.LimitExceeded || e.Limit != "TurnWait" || e.Outcome != mcp.NotSent || time.Since(began) != 10*time.Second {
			t.Errorf("failed with %v after %v", e, time.Since(began))
		}
		if want := "tools/call: limit exceeded (TurnWait), not sent: another client has had calls in flight for 10s, now 1 of them"; e.Error() != want {
			t.Errorf("failed with %q", e.Error())
		}
		// Who has given up takes no turn.
		given := start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{})
		next := start(t, p, toolCall(legacyMeta("c")), mcp.NoCaller{})
		synctest.Wait()
		given.cancel(context.Canceled)
		if e := given.failure(t); e.Kind != mcp.Cancelled || e.Outcome != mcp.NotSent {
			t.Errorf("failed with %v", e)
		}
		s.end <- ""
		s.end <- ""
		for _, c := range []*call{first, next} {
			if _, err := c.wait(t); err != nil {
				t.Error(err)
			}
		}
		if got := s.all(); got != "a c" {
			t.Errorf("%q have begun", got)
		}
	})
}

// TestTurnThatComesTooLate: a call is given up just before it gets the turn.
func TestTurnThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var giveUp context.CancelCauseFunc
		release := make(chan struct{})
		f := &farm{era: mcp.Legacy, dialed: func(_ int, e *fakeEdge) error {
			e.handle = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Meta.Session == "a" {
					<-release
					giveUp(context.Canceled) // and at once the turn is free
				}
				return mcp.Result{}, nil
			}
			return nil
		}}
		p := newPool(t, f, serialized)
		for range 30 {
			first := start(t, p, toolCall(legacyMeta("a")), mcp.NoCaller{})
			synctest.Wait()
			given := start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{})
			synctest.Wait()
			giveUp = given.cancel
			release <- struct{}{}
			for _, c := range []*call{first, given, start(t, p, toolCall(legacyMeta("c")), mcp.NoCaller{})} {
				if _, err := c.wait(t); err != nil && c != given {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestWhatTakesNoTurn goes to the server while another client's call is in flight.
func TestWhatTakesNoTurn(t *testing.T) {
	for _, tt := range []struct {
		name string
		era  mcp.Era // of the server
		opts transport.PoolOptions
		req  *mcp.Request
		goes bool
	}{
		{"a list", mcp.Legacy, serialized, &mcp.Request{Method: mcp.MethodListTools, Meta: legacyMeta("b")}, false},
		{"server/discover", mcp.Legacy, serialized, &mcp.Request{Method: mcp.MethodDiscover, Meta: legacyMeta("b")}, true},
		{"a listen call", mcp.Legacy, serialized, &mcp.Request{Method: mcp.MethodListen, Meta: legacyMeta("b")}, true},
		{"a notification", mcp.Legacy, serialized, &mcp.Request{Method: mcp.NotificationProgress, Notification: true, Meta: legacyMeta("b")}, true},
		{"a client that has declared other capabilities", mcp.Legacy, serialized, toolCall(asking(legacyMeta("b"), "x")), true},
		{"a modern server", mcp.Modern, serialized, toolCall(legacyMeta("b")), true},
		{"shared", mcp.Legacy, transport.PoolOptions{Isolation: transport.Shared}, toolCall(legacyMeta("b")), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(tt.era)
				p := newPool(t, &s.farm, tt.opts)
				start(t, p, toolCall(legacyMeta("a")), mcp.NoCaller{})
				synctest.Wait()
				start(t, p, tt.req, mcp.NoCaller{})
				synctest.Wait()
				var sent int32
				for _, e := range s.farm.all() {
					sent += e.calls.Load()
				}
				if goes := sent == 2; goes != tt.goes {
					t.Errorf("%d requests were sent", sent)
				}
			})
		})
	}
}

// TestListensHoldNoTurn: calls of others do not wait for them.
func TestListensHoldNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(mcp.Legacy)
		p := newPool(t, &s.farm, serialized)
		start(t, p, &mcp.Request{Method: mcp.MethodListen, Meta: legacyMeta("a")}, mcp.NoCaller{})
		synctest.Wait()
		start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{})
		synctest.Wait()
		if got := s.all(); got != "b" {
			t.Errorf("%q have begun", got)
		}
	})
}

// TestTurnEndsWithTheConnection: who waits for it is served by the next one.
func TestTurnEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(mcp.Legacy)
		p := newPool(t, &s.farm, serialized)
		first := start(t, p, toolCall(legacyMeta("a")), mcp.NoCaller{})
		synctest.Wait()
		second := start(t, p, toolCall(legacyMeta("b")), mcp.NoCaller{})
		synctest.Wait()
		s.farm.all()[0].die()
		if e := first.failure(t); e.Kind != mcp.ConnectionLost {
			t.Errorf("failed with %v", e)
		}
		synctest.Wait()
		if got := s.all(); got != "a b" {
			t.Fatalf("%q have begun", got)
		}
		s.end <- ""
		if _, err := second.wait(t); err != nil {
			t.Error(err)
		}
	})
}

// TestParkedCallKeepsItsTurn until its client has answered.
func TestParkedCallKeepsItsTurn_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edge := &askingEdge{fakeEdge: fakeEdge{era: mcp.Legacy, done: make(chan struct{})}}
		pool := transport.NewPool(func(context.Context, *mcp.Metadata) (transport.Edge, error) { return edge, nil }, serialized)
		defer func() { _ = pool.Close() }()
		lot := park.New(pool, park.Options{})
		defer lot.Close()
		a, b := asking(modernMeta("a"), "elicitation"), asking(modernMeta("b"), "elicitation")
		result, err := lot.Handle(t.Context(), toolCall(a), mcp.NoCaller{})
		if err != nil || result.Type() != mcp.InputRequired {
			t.Fatalf("%s, %v", result.Raw(), err)
		}
		e := start(t, lot, toolCall(b), mcp.NoCaller{}).failure(t)
		if e.Limit != "TurnWait" {
			t.Errorf("failed with %v", e)
		}
		waiting := start(t, lot, toolCall(b), mcp.NoCaller{})
		synctest.Wait()
		state, _ := result.Lookup("requestState")
		retry := toolCall(a)
		retry.Params = jsonrpc.Edited(&retry.Params, jsonrpc.Edit{Name: "requestState", Value: state},
			jsonrpc.Edit{Name: "inputResponses", Value: []byte(`{"q1":{"action":"accept"}}`)})
		if result, err := lot.Handle(t.Context(), retry, mcp.NoCaller{}); err != nil || result.Type() != mcp.Complete {
			t.Errorf("%s, %v", result.Raw(), err)
		}
		if got, err := waiting.wait(t); err != nil || !strings.Contains(got, mcp.InputRequired) {
			t.Errorf("%s, %v", got, err)
		}
	})
}

// An askingEdge asks in each call.
type askingEdge struct{ fakeEdge }

func (e *askingEdge) Handle(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	return caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(`{"message":"?"}`))})
}

// TestSerializedCallsNeverMeet has many clients call, leave and fail at random.
func TestSerializedCallsNeverMeet_P1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(mcp.Legacy)
		p := newPool(t, &s.farm, serialized)
		over := make(chan struct{})
		var ending sync.WaitGroup
		ending.Go(func() {
			for {
				select {
				case s.end <- "":
					time.Sleep(time.Millisecond)
				case <-over:
					return
				}
			}
		})
		var clients sync.WaitGroup
		for i := range 20 {
			clients.Go(func() {
				for j := range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*7+j*3)%20)*10*time.Millisecond)
					_, err := p.Handle(ctx, toolCall(legacyMeta(fmt.Sprint(i%7))), mcp.NoCaller{})
					if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		clients.Wait()
		close(over)
		ending.Wait()
		if s.together || len(s.inFlight) != 0 {
			t.Errorf("together: %v, in flight: %v", s.together, s.inFlight)
		}
		// Nobody has kept the turn.
		last := start(t, p, toolCall(legacyMeta("last")), mcp.NoCaller{})
		s.end <- ""
		if _, err := last.wait(t); err != nil {
			t.Error(err)
		}
	})
}
