package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// errCrashed is how a child fails that has crashed once more.
var errCrashed = &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("exit status 1")}

// badCompany returns three good backends and three bad ones: one that never answers, one
// whose second page never comes, one that crashes again and again.
func badCompany() map[string]mcp.Handler {
	hung, half, crashing := newFake("hung"), newFake(), newFake()
	for _, method := range []string{mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodCallTool} {
		hung.hang(method)
		crashing.fail(method, errCrashed)
	}
	half.handle(mcp.MethodListTools, func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		if _, second := req.Params.Lookup("cursor"); second {
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		}
		return mcp.RawResult([]byte(`{"tools":[{"name":"first"}],"nextCursor":"2"}`)), nil
	})
	return map[string]mcp.Handler{
		"a": newFake("x"), "b": newFake("x"), "c": newFake("x"), "hung": hung, "half": half, "crashing": crashing,
	}
}

func TestBadBackendsHarmNoOthers_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		logger := slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
		g := newGateway(t, &gateway.Options{Logger: logger}, badCompany())
		want := []string{"a__x", "b__x", "c__x"}
		for i, most := range []time.Duration{gateway.DefaultListBudget, gateway.DefaultKeptBudget, gateway.DefaultKeptBudget} {
			began := time.Now()
			if diff := cmp.Diff(want, listTools(t, g)); diff != "" {
				t.Errorf("list %d (-want +got):\n%s", i, diff)
			}
			if took := time.Since(began); took > most {
				t.Errorf("list %d took %v, more than %v", i, took, most)
			}
		}
		for name, reason := range map[string]string{
			"hung": "tools/list: no answer within 250ms", "half": "tools/list: no answer within 250ms",
			"crashing": "tools/list: connection lost, maybe executed: exit status 1", "a": "", "b": "", "c": "",
		} {
			s := statusOf(t, g, name)
			if (reason == "") != (s.State == gateway.Good) || s.Reason != reason {
				t.Errorf("status: %v, want the reason %q", s, reason)
			}
			mu.Lock()
			if logged := strings.Count(log.String(), "backend="+name+" "); logged != min(len(reason), 1) {
				t.Errorf("%d lines about %s in the log:\n%s", logged, name, &log)
			}
			mu.Unlock()
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// TestHungCallsHarmNoOthers: 200 clients call a backend that does not answer. As many as
// the limit wait for it, the others are told; calls of good backends take no time.
func TestHungCallsHarmNoOthers_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake("x")
		hung.hang(mcp.MethodCallTool)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "hung": hung})
		listTools(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 200)
		for range cap(ended) {
			go func() {
				_, err := g.Handle(ctx, request(mcp.MethodCallTool, `{"name":"hung__x"}`), mcp.NoCaller{})
				ended <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		for range 200 {
			callTool(t, g, "a__x")
			listTools(t, g)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("good calls took %v", took)
		}
		s := statusOf(t, g, "hung")
		const over = 200 - gateway.DefaultMaxCalls
		if s.Calls != gateway.DefaultMaxCalls || s.Refused != over || len(ended) != over {
			t.Errorf("status %v, and %d calls have ended", s, len(ended))
		}
		for range over {
			e, ok := errors.AsType[*mcp.CallError](<-ended)
			if !ok || e.Kind != mcp.LimitExceeded || e.Limit != "MaxCalls" || e.Outcome != mcp.NotSent ||
				e.Public != `128 calls of backend "hung" are in flight, the limit is 128` {
				t.Fatalf("a call over the limit: %v", e)
			}
		}
		time.Sleep(time.Hour) // no clock of ours runs
		if s := statusOf(t, g, "hung"); s.Calls != gateway.DefaultMaxCalls {
			t.Errorf("an hour later: %v", s)
		}
		cancel()
		for range gateway.DefaultMaxCalls {
			<-ended
		}
	})
}

// TestLateListIsAnnounced: the list that came too late is told of, and is there then.
func TestLateListIsAnnounced_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newFake("x")
		slow.handle(mcp.MethodListTools, after(5*time.Second, newFake("x", "y")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "slow": slow})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		if diff := cmp.Diff([]string{"a__x"}, listTools(t, g)); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}
		events.none(t)
		time.Sleep(5 * time.Second)
		events.want(t, mcp.NotificationToolsListChanged)
		began := time.Now()
		if diff := cmp.Diff([]string{"a__x", "slow__x", "slow__y"}, listTools(t, g)); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took > gateway.DefaultKeptBudget {
			t.Errorf("with a list from before it takes %v", took)
		}
		time.Sleep(10 * time.Second)
		events.none(t) // it is late again, and the same
		if s := statusOf(t, g, "slow"); s.State != gateway.Good {
			t.Errorf("when everything has come: %v", s)
		}
		if diff := cmp.Diff("y", callTool(t, g, "slow__y")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestCallsOfABackendThatNeverListedAreBounded: they wait for its list, and count.
func TestCallsOfABackendThatNeverListedAreBounded_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake("x")
		hung.hang(mcp.MethodDiscover)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "hung": hung})
		ended := make(chan error, 200)
		for range cap(ended) {
			go func() {
				_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"hung__x"}`), mcp.NoCaller{})
				ended <- err
			}()
		}
		time.Sleep(gateway.DefaultListBudget + time.Second)
		if s := statusOf(t, g, "hung"); s.Calls != gateway.DefaultMaxCalls || len(ended) != 200-gateway.DefaultMaxCalls {
			t.Errorf("%v, and %d calls have ended", s, len(ended))
		}
		e, ok := errors.AsType[*mcp.CallError](<-ended)
		if !ok || e.Limit != "MaxCalls" || e.Outcome != mcp.NotSent {
			t.Errorf("a call over the limit: %v", e)
		}
		for range cap(ended) - 1 {
			<-ended
		}
		if s := statusOf(t, g, "hung"); s.Calls != 0 {
			t.Errorf("afterwards: %v", s)
		}
	})
}

// after answers as another backend does, some time later.
func after(d time.Duration, f *fake) mcp.HandlerFunc {
	return func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		}
		return f.Handle(ctx, req, caller)
	}
}

// TestLastKnownListIsShown: a backend that has died takes its tools away from nobody.
func TestLastKnownListIsShown_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("x")
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "b": b})
		want := listTools(t, g)
		b.fail(mcp.MethodListTools, errCrashed)
		if diff := cmp.Diff(want, listTools(t, g)); diff != "" {
			t.Errorf("when it is dead (-want +got):\n%s", diff)
		}
		if s := statusOf(t, g, "b"); s.State != gateway.Degraded {
			t.Errorf("status %v", s)
		}
		b.hang(mcp.MethodListTools)
		began := time.Now()
		if diff := cmp.Diff(want, listTools(t, g)); diff != "" {
			t.Errorf("when it hangs (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != gateway.DefaultKeptBudget {
			t.Errorf("the list took %v", took)
		}
		time.Sleep(gateway.DefaultLateLimit)
		b.setTools("y")
		if diff := cmp.Diff([]string{"a__x", "b__y"}, listTools(t, g)); diff != "" {
			t.Errorf("when it is back (-want +got):\n%s", diff)
		}
		if s := statusOf(t, g, "b"); s.State != gateway.Good || s.Reason != "" {
			t.Errorf("status %v", s)
		}
	})
}

// TestRemovedBackendIsWaitedForByNobody: not by those either whose turn had not come.
func TestRemovedBackendIsWaitedForByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake()
		hung.hang(mcp.MethodListTools)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "hung": hung})
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { listTools(t, g) })
		}
		time.Sleep(time.Second)
		g.Remove("hung")
		wg.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("lists took %v", took)
		}
	})
}

// TestWhatIsLateStaysLate: also if the backend answers something else.
func TestWhatIsLateStaysLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.hang(mcp.MethodListTools)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		listTools(t, g)
		list(t, g, mcp.MethodListPrompts, "prompts", "name")
		if s := statusOf(t, g, "b"); s.State != gateway.Degraded || !strings.Contains(s.Reason, "no answer within 2s") {
			t.Errorf("status %v", s)
		}
	})
}

// TestBackendWithoutDiscovery may have everything.
func TestBackendWithoutDiscovery(t *testing.T) {
	b := newFake("x")
	b.handle(mcp.MethodDiscover, nil)
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	if diff := cmp.Diff([]string{"x"}, listTools(t, g)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// TestCallsShowHowABackendIs: one that cannot be reached, and then can be.
func TestCallsShowHowABackendIs(t *testing.T) {
	b := newFake("x")
	g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
	listTools(t, g)
	for _, tt := range []struct {
		err  error
		want gateway.State
	}{
		{jsonrpc.Errorf(jsonrpc.CodeInternalError, "its own"), gateway.Good},
		{&mcp.CallError{Kind: mcp.Cancelled}, gateway.Good},
		{errCrashed, gateway.Degraded},
		{&mcp.CallError{Kind: mcp.Cancelled}, gateway.Degraded},
		{nil, gateway.Good},
		{&mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent}, gateway.Degraded},
	} {
		b.fail(mcp.MethodCallTool, tt.err)
		_, err := g.Handle(t.Context(), request(mcp.MethodCallTool, `{"name":"x"}`), mcp.NoCaller{})
		if s := statusOf(t, g, "b"); s.State != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("after %v (%v): %v", tt.err, err, s)
		}
	}
}

// TestAnswersAreNoOlderThanTheirQuestions: who asks while a list is under way gets a
// later one.
func TestAnswersAreNoOlderThanTheirQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		b.handle(mcp.MethodListTools, after(time.Second, newFake("old")))
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		old := make(chan []string)
		go func() { old <- listTools(t, g) }()
		time.Sleep(100 * time.Millisecond)
		b.setTools("new")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if diff := cmp.Diff([]string{"new"}, listTools(t, g)); diff != "" {
					t.Errorf("meanwhile (-want +got):\n%s", diff)
				}
			})
		}
		if diff := cmp.Diff([]string{"old"}, <-old); diff != "" {
			t.Errorf("the first one (-want +got):\n%s", diff)
		}
		wg.Wait()
		if n := b.times(mcp.MethodListTools); n != 2 {
			t.Errorf("the backend was asked %d times", n)
		}
	})
}

func TestListsThatAreNone(t *testing.T) {
	endless := func(next func(n int) string) mcp.HandlerFunc {
		n := 0
		return func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			n++
			return mcp.RawResult(fmt.Appendf(nil, `{"tools":[{"name":"t%d"}],"nextCursor":%s}`, n, next(n))), nil
		}
	}
	for _, tt := range []struct {
		name   string
		handle mcp.HandlerFunc
		want   []string // tools
		reason string
	}{
		{"empty string goes on once", func() mcp.HandlerFunc {
			return func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if _, ok := req.Params.Lookup("cursor"); ok {
					return mcp.RawResult([]byte(`{"tools":[{"name":"second"}]}`)), nil
				}
				return mcp.RawResult([]byte(`{"tools":[{"name":"first"}],"nextCursor":""}`)), nil
			}
		}(), []string{"first", "second"}, ""},
		{"empty string always", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"tools":[{"name":"one"}],"nextCursor":""}`)), nil
		}, []string{"one"}, ""},
		{"null", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"tools":[{"name":"one"}],"nextCursor":null}`)), nil
		}, []string{"one"}, ""},
		{"a cursor comes again", endless(func(n int) string { return fmt.Sprintf(`"%d"`, n%3) }), nil, "a cursor comes again"},
		{"no end", endless(func(n int) string { return fmt.Sprintf(`"%d"`, n) }), nil, "MaxPages"},
		{"no objects, no names", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"tools":[1,{},{"name":2},{"name":"one"},{"name":"one","x":1}]}`)), nil
		}, []string{"one"}, ""},
		{"too many", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"tools":[` + strings.Repeat(`{"name":"t"},`, gateway.MaxItems) + `{"name":"u"}]}`)), nil
		}, nil, "MaxItems"},
		{"too large", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"tools":[{"name":"t","x":"` + strings.Repeat("x", gateway.MaxListBytes) + `"}]}`)), nil
		}, nil, "MaxListBytes"},
		{"null", answering(`{"tools":null}`), nil, ""},
		{"nothing", answering(`{}`), nil, ""},
		{"no array", answering(`{"tools":{"name":"one"}}`), nil, "no list"},
		{"a question", answering(`{"resultType":"input_required","requestState":"s","inputRequests":{}}`), nil, "no list"},
		{"a panic", func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) { panic("oh") }, nil, "panicked: oh"},
		{"no method", nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFake()
			b.handle(mcp.MethodListTools, tt.handle)
			g := newGateway(t, unhurried, map[string]mcp.Handler{"b": b})
			if diff := cmp.Diff(tt.want, listTools(t, g)); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			s := statusOf(t, g, "b")
			if (tt.reason == "") != (s.State == gateway.Good) || !strings.Contains(s.Reason, tt.reason) {
				t.Errorf("status %v", s)
			}
			if strings.Contains(s.String(), "\n") {
				t.Errorf("a status of several lines: %v", s)
			}
		})
	}
}

// TestListingsAreBounded: so many clients ask for lists that the backend does not give.
func TestListingsAreBounded_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := newFake("x")
		hung.hang(mcp.MethodListTools)
		g := newGateway(t, hurried, map[string]mcp.Handler{"a": newFake("x"), "hung": hung})
		var wg sync.WaitGroup
		for i := range 2 * gateway.MaxListings {
			wg.Go(func() {
				if diff := cmp.Diff([]string{"a__x"}, listAs(t, g, as(fmt.Sprint(i), `{}`), mcp.MethodListTools, "tools", "name")); diff != "" {
					t.Errorf("client %d (-want +got):\n%s", i, diff)
				}
			})
		}
		wg.Wait()
		if n := hung.times(mcp.MethodListTools); n != gateway.MaxListings {
			t.Errorf("the backend was asked for %d lists", n)
		}
		for i := range 2 * gateway.MaxWaitingListings {
			wg.Go(func() { listAs(t, g, as(fmt.Sprint("more", i), `{}`), mcp.MethodListTools, "tools", "name") })
		}
		wg.Wait()
		if s := statusOf(t, g, "hung"); !strings.Contains(s.Reason, "no answer within") && !strings.Contains(s.Reason, "MaxWaitingListings") {
			t.Errorf("status %v", s)
		}
		time.Sleep(gateway.DefaultLateLimit)
		before := hung.times(mcp.MethodListTools)
		listAs(t, g, as("again", `{}`), mcp.MethodListTools, "tools", "name")
		if n := hung.times(mcp.MethodListTools); n != before+1 {
			t.Errorf("when they have ended: %d lists", n-before)
		}
	})
}
