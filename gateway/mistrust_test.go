package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// TestBackendTellsOnlyWhatItWasAskedFor: neither of another one's resources nor of lists
// that the client does not want to hear of, and what it confirms besides counts for
// nothing.
func TestBackendTellsOnlyWhatItWasAskedFor_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := listed("x:1"), newFake()
		ones, twos := newRadio(one), newRadio(two)
		ones.take = func(f mcp.Filter) mcp.Filter { f.ResourceSubscriptions = nil; return f }
		twos.take = func(f mcp.Filter) mcp.Filter { f.ResourceSubscriptions = []string{"x:1"}; return f }
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "two": two})
		events, stop := listen(t, g, modern, `{"promptsListChanged":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		if got := events.ack.ResourceSubscriptions; len(got) != 0 {
			t.Errorf("a backend that lists it not has it granted: %q", got)
		}
		first, second := <-ones.calls, <-twos.calls
		for _, n := range []*mcp.Notification{
			updated("x:1"), {Method: mcp.NotificationToolsListChanged}, {Method: mcp.NotificationMessage}, {Method: "x/y"},
		} {
			second.tell(t, n)
		}
		events.none(t)
		second.tell(t, &mcp.Notification{Method: mcp.NotificationPromptsListChanged})
		first.tell(t, updated("x:1/part"))
		events.want(t, mcp.NotificationPromptsListChanged, mcp.NotificationResourceUpdated+" x:1/part")
	})
}

// TestRemovedBackendIsHeardNoMore: not even if it does not heed that nobody listens.
func TestRemovedBackendIsHeardNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newFake()
		removed, told := make(chan struct{}), make(chan error)
		one.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			filter, _ := mcp.ReadFilter(&req.Params)
			err := caller.Notify(ctx, filter.Acknowledge())
			<-removed
			for range 20 {
				err = errors.Join(err, caller.Notify(context.WithoutCancel(ctx), &mcp.Notification{Method: mcp.NotificationToolsListChanged}))
			}
			if _, err := caller.Ask(context.WithoutCancel(ctx), &mcp.Request{Method: mcp.MethodListRoots}); err == nil {
				t.Error("it has the client asked")
			}
			told <- err
			return mcp.Result{}, nil
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		g.Remove("one")
		events.want(t, mcp.NotificationToolsListChanged) // which the gateway tells
		close(removed)
		if err := <-told; err == nil {
			t.Error("the backend is told that the client was")
		}
		events.none(t)
	})
}

// TestBackendThatRefusesAResourceIsHeardOfItsLists: strict ones refuse the whole call for
// one URI that they do not know.
func TestBackendThatRefusesAResourceIsHeardOfItsLists_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, strict := newFake(), newFake()
		newRadio(one)
		stricts := newRadio(strict)
		strict.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if filter, _ := mcp.ReadFilter(&req.Params); len(filter.ResourceSubscriptions) > 0 {
				return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource")
			}
			return stricts.handle(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "strict": strict})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		time.Sleep(time.Minute)
		events.took()
		if n := strict.times(mcp.MethodListen); n != 2 {
			t.Fatalf("it was asked %d times", n)
		}
		(<-stricts.calls).tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
		events.want(t, mcp.NotificationToolsListChanged)
		_, stopOther := listen(t, g, modern, `{"resourceSubscriptions":["x:1"]}`)
		defer stopOther()
		time.Sleep(time.Minute)
		if n := strict.times(mcp.MethodListen); n != 3 {
			t.Errorf("it was asked %d times, of which one for a client that wants nothing else", n)
		}
	})
}

// TestListensWhereTheResourcesAreAfterItsViewIsForgotten: a client that listens for long
// may be forgotten meanwhile.
func TestListensWhereTheResourcesAreAfterItsViewIsForgotten_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := listed("x:1"), newFake()
		twos := newRadio(two)
		newRadio(one)
		g := newGateway(t, &gateway.Options{MaxViews: 3}, map[string]mcp.Handler{"one": one, "two": two})
		_, stop := listen(t, g, modern, `{"resourceSubscriptions":["x:1"],"promptsListChanged":true}`)
		defer stop()
		<-twos.calls
		for i := range 10 {
			listAs(t, g, as(fmt.Sprint(i), `{}`), mcp.MethodListTools, "tools", "name")
		}
		one.answer(mcp.MethodListResources, `{"resources":[]}`)
		two.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
		list(t, g, mcp.MethodListResources, "resources", "uri")
		synctest.Wait()
		select {
		case after := <-twos.calls:
			if diff := cmp.Diff([]string{"x:1"}, after.filter.ResourceSubscriptions); diff != "" {
				t.Errorf("it is listened to for (-want +got):\n%s", diff)
			}
		default:
			t.Error("it is not listened to where it is now")
		}
	})
}

// TestReadThatHasAskedIsMadeNowhereElse: a backend that has asked the user, or told
// something, has the time that it needs, and the last word.
func TestReadThatHasAskedIsMadeNowhereElse(t *testing.T) {
	for _, tt := range []struct {
		name string
		use  func(ctx context.Context, caller mcp.Caller) error
	}{
		{"a question", func(ctx context.Context, caller mcp.Caller) error {
			_, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit})
			return err
		}},
		{"progress", func(ctx context.Context, caller mcp.Caller) error {
			return caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := library("a", "q:/{name}"), library("b", "q:/{name}", "x:/1")
				a.handle(mcp.MethodReadResource, func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					if err := tt.use(ctx, caller); err != nil {
						return mcp.Result{}, err
					}
					select {
					case <-time.After(time.Minute):
					case <-ctx.Done():
						return mcp.Result{}, context.Cause(ctx)
					}
					return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "not for you")
				})
				g := newGateway(t, hurried, map[string]mcp.Handler{"a": a, "b": b})
				_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/1"}`), new(ear))
				if n := b.times(mcp.MethodReadResource); n != 0 || jsonrpc.ToWire(err).Message != "not for you" {
					t.Errorf("%v, and another backend is asked %d times", err, n)
				}
			})
		})
	}
}

// TestErrorOfAStrangerEndsNoSearch: many servers have an error of their own for what they
// do not know. It is told if nobody has the resource.
func TestErrorOfAStrangerEndsNoSearch(t *testing.T) {
	a, b := library("a", "q:/{name}"), library("b", "q:/{name}", "x:/1")
	a.fail(mcp.MethodReadResource, jsonrpc.Errorf(0, "Unknown resource"))
	g := newGateway(t, unhurried, map[string]mcp.Handler{"a": a, "b": b})
	result := do(t, g, mcp.MethodReadResource, `{"uri":"x:/1"}`)
	if from, _ := result.LookupString("from"); from != "b" {
		t.Errorf("it is read from %q", from)
	}
	_, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/2"}`), mcp.NoCaller{})
	if wire := jsonrpc.ToWire(err); wire.Message != "Unknown resource" {
		t.Errorf("what nobody has: %v", err)
	}
	b.fail(mcp.MethodReadResource, errCrashed)
	if _, err := g.Handle(t.Context(), request(mcp.MethodReadResource, `{"uri":"x:/2"}`), mcp.NoCaller{}); !errors.Is(err, errCrashed) {
		t.Errorf("what one that is dead may have: %v", err)
	}
}

// TestCancellationReachesItsBackendOnly and that at once.
func TestCancellationReachesItsBackendOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan string, 2)
		backends := make(map[string]mcp.Handler)
		for _, name := range []string{"a", "b"} {
			f := newFake("x")
			f.handle(mcp.MethodCallTool, func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				<-ctx.Done()
				left <- name + " " + context.Cause(ctx).Error()
				return mcp.Result{}, context.Cause(ctx)
			})
			backends[name] = f
		}
		g := newGateway(t, hurried, backends)
		listTools(t, g)
		var stop []context.CancelCauseFunc
		for _, name := range []string{"a__x", "b__x"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop = append(stop, cancel)
			go func() {
				_, _ = g.Handle(ctx, request(mcp.MethodCallTool, fmt.Sprintf(`{"name":%q}`, name)), mcp.NoCaller{})
			}()
		}
		synctest.Wait()
		stop[1](errors.New("enough"))
		synctest.Wait()
		if got := <-left; got != "b enough" || len(left) != 0 {
			t.Errorf("%s, and %d more", got, len(left))
		}
		stop[0](nil)
		<-left
	})
}

// TestCallThatWaitsForItsUserIsNotCounted: such calls have a limit of their own, and may
// wait for long.
func TestCallThatWaitsForItsUserIsNotCounted_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("ask", "x")
		b.handle(mcp.MethodCallTool, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if name, _ := req.Params.LookupString("name"); name == "ask" {
				return caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit})
			}
			return mcp.RawResult([]byte(`{}`)), nil
		})
		g := newGateway(t, hurried, nil)
		if err := g.Add("b", b, &gateway.BackendOptions{MaxCalls: 2}); err != nil {
			t.Fatal(err)
		}
		listTools(t, g)
		answers, ended := make(chan mcp.Result), make(chan mcp.Result, 5)
		for range 5 {
			go func() {
				req := request(mcp.MethodCallTool, `{"name":"ask"}`)
				req.Meta.Capabilities = []byte(`{"elicitation":{}}`)
				result, err := g.Handle(t.Context(), req, slowUser{answer: answers})
				if err != nil {
					t.Error(err)
				}
				ended <- result
			}()
			synctest.Wait()
		}
		do(t, g, mcp.MethodCallTool, `{"name":"x"}`)
		if s := statusOf(t, g, "b"); s.Calls != 0 || s.Refused != 0 {
			t.Errorf("while users think: %v", s)
		}
		for range 5 {
			answers <- mcp.RawResult([]byte(`{"action":"accept"}`))
			if result := <-ended; !strings.Contains(string(result.Raw()), "accept") {
				t.Errorf("a call ends with %s", result.Raw())
			}
		}
		if s := statusOf(t, g, "b"); s.Calls != 0 {
			t.Errorf("afterwards: %v", s)
		}
	})
}

// A slowUser takes time to answer.
type slowUser struct {
	mcp.NoCaller
	answer chan mcp.Result
}

func (u slowUser) Ask(context.Context, *mcp.Request) (mcp.Result, error) { return <-u.answer, nil }
