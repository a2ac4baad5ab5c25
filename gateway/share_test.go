package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// of returns what a modern client of a principal says of itself.
func of(principal string) mcp.Metadata {
	meta := modern
	meta.Principal = mcp.Principal{Issuer: "https://issuer.example", Subject: principal}
	return meta
}

// A crowd makes calls that do not end before they are cancelled.
type crowd struct {
	ctx   context.Context
	ended chan error // those that have ended; large enough
}

func newCrowd(t *testing.T) (c *crowd, cancel func()) {
	ctx, end := context.WithCancel(t.Context())
	return &crowd{ctx, make(chan error, 10_000)}, func() { end(); synctest.Wait() }
}

// start makes n calls and returns how many go on.
func (c *crowd) start(h mcp.Handler, meta mcp.Metadata, n int, method, params string) (going int) {
	before := len(c.ended)
	for range n {
		go func() {
			req := request(method, params)
			req.Meta = meta
			_, err := h.Handle(c.ctx, req, new(ear))
			c.ended <- err
		}()
	}
	synctest.Wait()
	return n - (len(c.ended) - before)
}

// refusal returns the error of the call that has ended last.
func (c *crowd) refusal(t *testing.T) *mcp.CallError {
	t.Helper()
	var last error
	for len(c.ended) > 0 {
		last = <-c.ended
	}
	e, ok := errors.AsType[*mcp.CallError](last)
	if !ok || e.Kind != mcp.LimitExceeded || e.Outcome != mcp.NotSent {
		t.Fatalf("a call is refused with %v", last)
	}
	return e
}

const callHung = `{"name":"x"}`

// newHung returns a gateway whose only backend does not answer calls.
func newHung(t *testing.T, maxCalls int) (g *gateway.Gateway, hung *fake) {
	hung = newFake("x")
	hung.hang(mcp.MethodCallTool)
	g = newGateway(t, hurried, nil)
	if err := g.Add("hung", hung, &gateway.BackendOptions{MaxCalls: maxCalls}); err != nil {
		t.Fatal(err)
	}
	return g, hung
}

func TestOnePrincipalLeavesCallsToOthers_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hung := newHung(t, 0)
		calls, cancel := newCrowd(t)
		defer cancel()
		if n := calls.start(g, of("greedy"), 200, mcp.MethodCallTool, callHung); n != 96 {
			t.Errorf("%d calls of one principal are in flight", n)
		}
		e := calls.refusal(t)
		const want = `96 calls of backend "hung" are in flight, 96 of them for this principal; the limit is 128, and one principal may have 3 times as many as are left (MaxShare)`
		if e.Limit != "MaxShare" || e.Public != want {
			t.Errorf("a call over the share: %q, %s", e.Limit, e.Public)
		}
		for i := range 16 { // whoever comes
			if n := calls.start(g, of(fmt.Sprint(i)), 1, mcp.MethodCallTool, callHung); n != 1 {
				t.Errorf("the call of principal %d is refused: %v", i, calls.refusal(t))
			}
		}
		if n := calls.start(g, of("greedy"), 1, mcp.MethodCallTool, callHung); n != 0 {
			t.Error("the greedy one gets what is left")
		}
		if s := statusOf(t, g, "hung"); s.Calls != 96+16 || s.Refused != 200-96+1 {
			t.Errorf("status %v", s)
		}
		cancel()
		if s := statusOf(t, g, "hung"); s.Calls != 0 {
			t.Errorf("afterwards: %v", s)
		}
		hung.answer(mcp.MethodCallTool, `{}`)
		doAs(t, g, of("greedy"), mcp.MethodCallTool, callHung)
		if n := g.Principals(); n != 0 {
			t.Errorf("%d principals are remembered", n)
		}
	})
}

func TestPrincipalsShareCalls(t *testing.T) {
	for _, tt := range []struct {
		principals, max, each int
	}{
		{1, 1, 1}, {1, 4, 3}, {1, 128, 96}, {2, 128, 54}, {3, 128, 38}, {10, 128, 12}, {40, 128, 3},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.principals, tt.max), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := newHung(t, tt.max)
				calls, cancel := newCrowd(t)
				defer cancel()
				going := make([]int, tt.principals)
				for range tt.max {
					for i := range going {
						going[i] += calls.start(g, of(fmt.Sprint(i)), 1, mcp.MethodCallTool, callHung)
					}
				}
				for i, n := range going {
					if n < tt.each || n > tt.each+1 {
						t.Errorf("principal %d has %d calls in flight, want %d", i, n, tt.each)
					}
				}
				if n := calls.start(g, of("late"), 1, mcp.MethodCallTool, callHung); n != 1 && tt.max > 1 {
					t.Errorf("none is left: %v", calls.refusal(t))
				}
			})
		})
	}
}

// TestCallsWithoutPrincipalHaveNoShare: nobody can tell whose they are.
func TestCallsWithoutPrincipalHaveNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newHung(t, 8)
		calls, cancel := newCrowd(t)
		defer cancel()
		if n := calls.start(g, modern, 20, mcp.MethodCallTool, callHung); n != 8 {
			t.Errorf("%d calls are in flight", n)
		}
		if e := calls.refusal(t); e.Limit != "MaxCalls" || e.Public != `8 calls of backend "hung" are in flight, the limit is 8` {
			t.Errorf("one more: %q, %s", e.Limit, e.Public)
		}
		if n := calls.start(g, of("somebody"), 1, mcp.MethodCallTool, callHung); n != 0 {
			t.Error("there is a ninth")
		}
	})
}

// TestCallThatAsksSeveralAtOnceIsOneCall, which does not count until all are answered.
func TestCallThatAsksSeveralAtOnceIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hung := newHung(t, 4)
		hung.handle(mcp.MethodCallTool, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			var asking sync.WaitGroup
			for range 3 {
				asking.Go(func() { _, _ = caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit}) })
			}
			asking.Wait()
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answers, ended := make(chan mcp.Result), make(chan error, 2)
		for range cap(ended) {
			go func() {
				req := request(mcp.MethodCallTool, callHung)
				req.Meta.Capabilities = []byte(`{"elicitation":{}}`)
				_, err := g.Handle(ctx, req, slowUser{answer: answers})
				ended <- err
			}()
		}
		for answered, want := range []int64{0, 0, 0, -1, -1, -1, 2} {
			synctest.Wait()
			// Whose question is answered is anybody's guess, but for the first two and the last.
			if s := statusOf(t, g, "hung"); want >= 0 && int64(s.Calls) != want || s.Calls < 0 {
				t.Errorf("with %d of 6 questions answered: %v", answered, s)
			}
			if answered < 6 {
				answers <- mcp.RawResult([]byte(`{"action":"accept"}`))
			}
		}
		cancel()
		for range cap(ended) {
			<-ended
		}
		if s := statusOf(t, g, "hung"); s.Calls != 0 {
			t.Errorf("at the end: %v", s)
		}
	})
}

// TestCallThatWaitsForItsUserIsNotInItsShare.
func TestCallThatWaitsForItsUserIsNotInItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hung := newHung(t, 4)
		hung.handle(mcp.MethodCallTool, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if _, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit}); err != nil {
				return mcp.Result{}, err
			}
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		answers, ended := make(chan mcp.Result), make(chan error, 6)
		meta := of("asked")
		meta.Capabilities = []byte(`{"elicitation":{}}`)
		for range cap(ended) {
			go func() {
				req := request(mcp.MethodCallTool, callHung)
				req.Meta = meta
				_, err := g.Handle(ctx, req, slowUser{answer: answers})
				ended <- err
			}()
			synctest.Wait()
		}
		if s := statusOf(t, g, "hung"); s.Calls != 0 || s.Refused != 0 {
			t.Errorf("while the user thinks: %v", s)
		}
		for range 3 {
			answers <- mcp.RawResult([]byte(`{"action":"accept"}`))
		}
		synctest.Wait()
		calls, stop := newCrowd(t)
		defer stop()
		if n := calls.start(g, meta, 1, mcp.MethodCallTool, callHung); n != 0 {
			t.Error("what was answered is not counted again")
		} else if e := calls.refusal(t); e.Limit != "MaxShare" {
			t.Errorf("one more: %v", e)
		}
		for range 3 { // they go on, over the limit
			answers <- mcp.RawResult([]byte(`{"action":"accept"}`))
		}
		synctest.Wait()
		if s := statusOf(t, g, "hung"); s.Calls != 6 {
			t.Errorf("when all are answered: %v", s)
		}
		cancel()
		for range cap(ended) {
			<-ended
		}
		if s := statusOf(t, g, "hung"); s.Calls != 0 {
			t.Errorf("afterwards: %v", s)
		}
	})
}

func TestOnePrincipalLeavesListenCallsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, &gateway.Options{MaxListens: 8}, nil)
		calls, cancel := newCrowd(t)
		defer cancel()
		const filter = `{"notifications":{"toolsListChanged":true}}`
		if n := calls.start(g, of("greedy"), 20, mcp.MethodListen, filter); n != 6 {
			t.Errorf("%d listen calls of one principal are open", n)
		}
		const want = `6 listen calls are open, 6 of them for this principal; the limit is 8, and one principal may have 3 times as many as are left (MaxShare)`
		if e := calls.refusal(t); e.Limit != "MaxShare" || e.Public != want {
			t.Errorf("one more: %q, %s", e.Limit, e.Public)
		}
		_, stop := listen(t, g, of("late"), `{"toolsListChanged":true}`)
		stop()
		cancel()
		if n := calls.start(g, of("greedy"), 1, mcp.MethodListen, filter); n != 0 {
			t.Error("a call that is cancelled goes on")
		}
		for len(calls.ended) > 0 {
			if err := <-calls.ended; err != nil && strings.Contains(err.Error(), "Max") {
				t.Errorf("what has ended is counted: %v", err)
			}
		}
	})
}

// TestOnePrincipalLeavesListsToOthers: under as many access tokens as it likes.
func TestOnePrincipalLeavesListsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake("x")
		hung.hang(mcp.MethodDiscover)
		hung.hang(mcp.MethodListTools)
		g := newGateway(t, &gateway.Options{ListBudget: patience, KeptBudget: patience, MaxViews: 10_000}, map[string]mcp.Handler{"hung": hung})
		lists, cancel := newCrowd(t)
		defer cancel()
		for i := range 2 * gateway.MaxWaitingListings {
			meta := of("greedy")
			meta.Grant = fmt.Sprint(i)
			lists.start(g, meta, 1, mcp.MethodListTools, `{}`)
		}
		// A call tells why there is no list of its backend.
		meta := of("greedy")
		meta.Grant = "one more"
		if n := lists.start(g, meta, 1, mcp.MethodCallTool, callHung); n != 0 {
			t.Error("a call of the greedy one waits for a list")
		}
		if n := lists.start(g, of("late"), 1, mcp.MethodCallTool, callHung); n != 1 {
			t.Error("nobody else is given a list")
		}
	})
}
