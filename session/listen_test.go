package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// An opened is a listen call that a backend got.
type opened struct {
	req    *mcp.Request
	caller mcp.Caller
	ended  chan struct{}
	fail   chan error
}

func (o *opened) notify(t *testing.T, method, params string) {
	t.Helper()
	if err := o.caller.Notify(t.Context(), &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(params))}); err != nil {
		t.Error(err)
	}
}

// listening returns a backend that acknowledges what filter leaves of each
// listen call, nil for all, and gives the calls to the channel.
func listening(filter func(mcp.Filter) mcp.Filter) (*backend, chan *opened) {
	calls := make(chan *opened, 2*mcp.MaxResourceSubscriptions)
	return &backend{serve: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return mcp.Result{}, nil
		}
		o := &opened{req: req, caller: caller, ended: make(chan struct{}), fail: make(chan error, 1)}
		defer close(o.ended)
		granted, err := mcp.ReadFilter(&req.Params)
		if err != nil {
			return mcp.Result{}, err
		}
		if filter != nil {
			granted = filter(granted)
		}
		if err := caller.Notify(ctx, granted.Acknowledge()); err != nil {
			return mcp.Result{}, err
		}
		calls <- o
		select {
		case <-ctx.Done():
			return mcp.Result{}, ctx.Err()
		case err := <-o.fail:
			return mcp.Result{}, err
		}
	}}, calls
}

func request(t *testing.T, s *session.Server, method, params string) error {
	t.Helper()
	_, err := s.Handle(t.Context(), scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)), nil)
	return err
}

// own returns the session's own listen calls: for lists, and for what comes
// outside calls.
func own(t *testing.T, calls chan *opened) (lists, outside *opened) {
	t.Helper()
	for range 2 {
		switch o := receive(t, "an own listen call", calls); string(o.req.Params.Raw()) {
		case `{"notifications":{"toolsListChanged":true}}`:
			lists = o
		case `{"notifications":{"session":true}}`:
			outside = o
		default:
			t.Fatalf("filter %s", o.req.Params.Raw())
		}
	}
	if lists == nil || outside == nil {
		t.Fatal("one was opened twice")
	}
	return lists, outside
}

func TestOwnListensOpenWithTheOutlet(t *testing.T) {
	b, calls := listening(nil)
	s := serving(t, b)
	out := make(outlet, 10)
	s.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if b.count(mcp.MethodListen) != 0 {
		t.Error("it listens although there is nowhere to deliver to")
	}
	s.SetOutlet(out)
	lists, outside := own(t, calls)
	lists.notify(t, mcp.NotificationToolsListChanged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":9}}`)
	if got := receive(t, "the change", out); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}` {
		t.Errorf("sent %s", got)
	}
	s.SetOutlet(nil) // as when a GET stream ends
	lists.notify(t, mcp.NotificationToolsListChanged, `{}`)
	if _, err := outside.caller.Ask(t.Context(), &mcp.Request{Method: mcp.MethodElicit}); err == nil {
		t.Error("a question was taken although there is nowhere to deliver it")
	}
	s.SetOutlet(out)
	if len(calls) != 0 {
		t.Error("they were opened again")
	}
	s.Close()
	receive(t, "the end", lists.ended)
	receive(t, "the end", outside.ended)
	if len(out) != 0 {
		t.Errorf("sent %s", <-out)
	}
}

// TestInitializedWaitsUntilTheSessionListens, so that no change which the client's
// first request makes goes untold; but not for a handler that is slow.
func TestInitializedWaitsUntilTheSessionListens(t *testing.T) {
	for _, tt := range []struct{ acknowledged, want time.Duration }{
		{0, 0}, {100 * time.Millisecond, 100 * time.Millisecond}, {time.Hour, 250 * time.Millisecond},
	} {
		t.Run(tt.acknowledged.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					if req.Method != mcp.MethodListen {
						return mcp.RawResult([]byte(`{"capabilities":{"tools":{"listChanged":true}}}`)), nil
					}
					select {
					case <-time.After(tt.acknowledged):
					case <-ctx.Done():
						return mcp.Result{}, ctx.Err()
					}
					if err := caller.Notify(ctx, mcp.Filter{}.Acknowledge()); err != nil {
						return mcp.Result{}, err
					}
					<-ctx.Done()
					return mcp.Result{}, nil
				})
				s := session.NewServer(slow, session.ServerOptions{})
				defer s.Close()
				s.SetOutlet(make(outlet, 10))
				initialize := scan(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
				if _, err := s.Initialize(t.Context(), initialize); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				s.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
				if took := time.Since(began); took != tt.want {
					t.Errorf("it took %v, not %v", took, tt.want)
				}
			})
		})
	}
}

// TestListsThatAreListenedFor: a legacy server may tell of changes that it does not
// promise to tell of.
func TestListsThatAreListenedFor(t *testing.T) {
	for _, tt := range []struct{ name, discover, want string }{
		{"modern", `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{"listChanged":true}}}`, `{"promptsListChanged":true}`},
		{"both", `{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true}}}`, `{"toolsListChanged":true}`},
		{"legacy", `{"supportedVersions":["2025-11-25"],"capabilities":{"tools":{"listChanged":false}}}`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, calls := listening(nil)
			b.discover = tt.discover
			s := serving(t, b)
			s.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			s.SetOutlet(make(outlet, 10))
			var got []string
			for range 2 {
				got = append(got, string(receive(t, "an own listen call", calls).req.Params.Raw()))
			}
			if want := `{"notifications":` + tt.want + `}`; !slices.Contains(got, want) {
				t.Errorf("it listens for %q, want %s", got, want)
			}
		})
	}
}

// deaf is an outlet to a client that cannot be asked now. It calls asked before it
// says so.
type deaf struct{ asked func() }

func (d deaf) Send(context.Context, []byte) error {
	d.asked()
	return mcp.ErrCannotAsk
}

// TestRootsAreAskedForAgainWhenTheClientListens: a listen call that is opened
// again has a server told to ask once more. A client may have begun to listen
// while it was found out that it does not.
func TestRootsAreAskedForAgainWhenTheClientListens_B041(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprintf("meanwhile %t", meanwhile), func(t *testing.T) {
			b, calls := listening(nil)
			s := serving(t, b)
			out := make(outlet, 10)
			s.SetOutlet(deaf{func() {
				if meanwhile {
					s.SetOutlet(out)
				}
			}})
			_, first := own(t, calls)
			if _, err := first.caller.Ask(t.Context(), &mcp.Request{Method: mcp.MethodListRoots}); !errors.Is(err, mcp.ErrCannotAsk) {
				t.Errorf("err %v", err)
			}
			if !meanwhile {
				s.SetOutlet(out)
			}
			second := receive(t, "the second", calls)
			if got := string(second.req.Params.Raw()); got != `{"notifications":{"session":true}}` {
				t.Errorf("filter %s", got)
			}
			receive(t, "the end of the first", first.ended)
			s.SetOutlet(out)
			if len(calls) != 0 {
				t.Error("it was opened once more")
			}
		})
	}
}

func TestLogLevelReopensTheListenOutsideCalls(t *testing.T) {
	b, calls := listening(nil)
	s := serving(t, b)
	s.SetOutlet(make(outlet, 10))
	_, first := own(t, calls)
	if err := request(t, s, mcp.MethodSetLevel, `{"level":"error"}`); err != nil {
		t.Fatal(err)
	}
	second := receive(t, "the second", calls)
	if second.req.Meta.LogLevel != "error" || string(second.req.Params.Raw()) != `{"notifications":{"session":true}}` {
		t.Errorf("level %q, filter %s", second.req.Meta.LogLevel, second.req.Params.Raw())
	}
	receive(t, "the end of the first", first.ended)
	if err := request(t, s, mcp.MethodCallTool, `{}`); err != nil {
		t.Fatal(err)
	}
	if level := b.last(t, mcp.MethodCallTool).Meta.LogLevel; level != "error" {
		t.Errorf("a request has the level %q", level)
	}
	if len(calls) != 0 {
		t.Error("the lists are listened to again")
	}
}

// TestReplacedListenCallStillDelivers: what it was told before it was replaced may
// be on its way to the client when it ends.
func TestReplacedListenCallStillDelivers(t *testing.T) {
	b, calls := listening(nil)
	s := serving(t, b)
	out := make(outlet) // nobody reads yet
	s.SetOutlet(out)
	_, first := own(t, calls)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		sent <- first.caller.Notify(ctx, &mcp.Notification{
			Method: mcp.NotificationMessage, Params: jsonrpc.Trusted([]byte(`{"level":"error","data":1}`)),
		})
	}()
	if err := request(t, s, mcp.MethodSetLevel, `{"level":"error"}`); err != nil {
		t.Fatal(err)
	}
	receive(t, "the second", calls)
	receive(t, "the end of the first", first.ended)
	cancel()
	if got := receive(t, "the message", out); !strings.Contains(got, `"data":1`) {
		t.Errorf("got %s", got)
	}
	if err := receive(t, "the end of sending", sent); err != nil {
		t.Error(err)
	}
}

// TestLogLevelFlood: a backend that never acknowledges is asked to listen by no
// more than one call at a time.
func TestLogLevelFlood(t *testing.T) {
	running := make(chan int, 1)
	running <- 0
	started := make(chan struct{}, 100)
	b := &backend{serve: func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		n := <-running + 1
		running <- n
		started <- struct{}{}
		<-ctx.Done()
		running <- <-running - 1
		return mcp.Result{}, ctx.Err()
	}}
	s := serving(t, b)
	s.SetOutlet(make(outlet, 10))
	receive(t, "the listen call", started)
	receive(t, "the other", started)
	for range 20 {
		if err := request(t, s, mcp.MethodSetLevel, `{"level":"error"}`); err != nil {
			t.Fatal(err)
		}
		receive(t, "the next", started)
	}
	s.Close()
	if n := <-running; n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestSubscribe_B152(t *testing.T) {
	b, calls := listening(func(f mcp.Filter) mcp.Filter {
		if len(f.ResourceSubscriptions) > 0 && strings.HasPrefix(f.ResourceSubscriptions[0], "bad") {
			f.ResourceSubscriptions = nil
		}
		return f
	})
	s := serving(t, b)
	out := make(outlet, 10)
	s.SetOutlet(out)
	own(t, calls)
	for range 2 { // the second joins the first
		if err := request(t, s, mcp.MethodSubscribe, `{"uri":"u:1"}`); err != nil {
			t.Fatal(err)
		}
	}
	watch := receive(t, "the listen call", calls)
	if want := `{"notifications":{"resourceSubscriptions":["u:1"]}}`; string(watch.req.Params.Raw()) != want || len(calls) != 0 {
		t.Errorf("filter %s, %d more", watch.req.Params.Raw(), len(calls))
	}
	watch.notify(t, mcp.NotificationResourceUpdated, `{"uri":"u:1"}`)
	if got := receive(t, "the update", out); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:1"}}` {
		t.Errorf("sent %s", got)
	}
	if err := request(t, s, mcp.MethodSubscribe, `{"uri":"bad:1"}`); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("a refused subscription: %v", err)
	}
	receive(t, "its end", receive(t, "the refused one", calls).ended)
	if err := request(t, s, mcp.MethodUnsubscribe, `{"uri":"u:1"}`); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end", watch.ended)
}

func TestSubscribeWhenTheServerIsAway(t *testing.T) {
	b := &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return mcp.Result{}, &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent}
	}}
	s := serving(t, b)
	if err := request(t, s, mcp.MethodSubscribe, `{"uri":"u:1"}`); codeOf(err) != jsonrpc.CodeInternalError {
		t.Errorf("err %v", err)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	b, _ := listening(nil)
	s := serving(t, b)
	s.SetOutlet(make(outlet, 10)) // its own listen calls do not count
	subscribe := func(i int) error { return request(t, s, mcp.MethodSubscribe, fmt.Sprintf(`{"uri":"u:%d"}`, i)) }
	for i := range mcp.MaxResourceSubscriptions {
		if err := subscribe(i); err != nil {
			t.Fatalf("the %dth: %v", i+1, err)
		}
	}
	err := subscribe(mcp.MaxResourceSubscriptions)
	if codeOf(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "MaxResourceSubscriptions") {
		t.Errorf("one more: %v", err)
	}
	if err := subscribe(0); err != nil {
		t.Errorf("one that there is already: %v", err)
	}
}

// TestListensAgain_B154 when the connection to the server was lost.
func TestListensAgain_B154(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := listening(nil)
		s := serving(t, b)
		s.SetOutlet(make(outlet, 10))
		lists, outside := own(t, calls)
		began := time.Now()
		for i, o := 0, lists; i < 10; i++ {
			o.fail <- &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted}
			<-o.ended
			o = <-calls
			if took := time.Since(began); i == 0 && took > 500*time.Millisecond {
				t.Errorf("the second attempt came after %v", took)
			}
		}
		select {
		case <-outside.ended:
			t.Error("the other call has ended as well")
		default:
		}
		if took := time.Since(began); took < 30*time.Second || took > 3*time.Minute {
			t.Errorf("ten attempts took %v", took)
		}
	})
}

// TestListensNotAgainWhenRefused: when the handler does not serve listen calls at all.
func TestListensNotAgainWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
			return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
		}}
		s := serving(t, b)
		s.SetOutlet(make(outlet, 10))
		time.Sleep(time.Hour)
		if n := b.count(mcp.MethodListen); n != 2 {
			t.Errorf("%d listen calls", n)
		}
	})
}
