package gateway_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// A radio is what listens at a backend: it has what is sent go to all who listen there.
type radio struct {
	take    func(mcp.Filter) mcp.Filter // what is acknowledged; nil for everything
	calls   chan *hearing
	refusal error
}

// A hearing is one listen call at a backend.
type hearing struct {
	filter mcp.Filter
	caller mcp.Caller
	meta   mcp.Metadata
	ctx    context.Context // of the call
	end    chan error
}

func newRadio(f *fake) *radio {
	r := &radio{calls: make(chan *hearing, 100)}
	f.handle(mcp.MethodListen, r.handle)
	return r
}

func (r *radio) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	filter, err := mcp.ReadFilter(&req.Params)
	if err == nil {
		err = r.refusal
	}
	if err != nil {
		return mcp.Result{}, err
	}
	if r.take != nil {
		filter = r.take(filter)
	}
	if err := caller.Notify(ctx, filter.Acknowledge()); err != nil {
		return mcp.Result{}, err
	}
	h := &hearing{filter, caller, req.Meta, ctx, make(chan error, 1)}
	select {
	case r.calls <- h:
	case <-ctx.Done():
	}
	select {
	case <-ctx.Done():
		return mcp.Result{}, nil
	case err := <-h.end:
		return mcp.Result{}, err
	}
}

func (h *hearing) tell(t *testing.T, n *mcp.Notification) {
	t.Helper()
	if err := h.caller.Notify(h.ctx, n); err != nil {
		t.Errorf("telling of %s: %v", n.Method, err)
	}
}

// listed gives a backend one resource.
func listed(uri string) *fake {
	f := newFake()
	f.answer(mcp.MethodListResources, `{"resources":[{"uri":"`+uri+`","name":"r"}]}`)
	return f
}

func TestListenIsSplitByRoute_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, deaf := listed("x:1"), listed("x:2"), newFake()
		ones, twos := newRadio(one), newRadio(two)
		deaf.fail(mcp.MethodListen, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found"))
		ones.take = func(f mcp.Filter) mcp.Filter { // it refuses the one that it does not list
			f.ResourceSubscriptions = f.ResourceSubscriptions[:1]
			return f
		}
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "two": two, "deaf": deaf})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true,"resourceSubscriptions":["x:1","x:2","x:3"]}`)
		other, stopOther := listen(t, g, modern, `{"resourceSubscriptions":["x:2"]}`)
		first, second := <-ones.calls, <-twos.calls
		if diff := cmp.Diff([]string{"x:1"}, first.filter.ResourceSubscriptions); diff != "" || !first.filter.ToolsListChanged {
			t.Errorf("the first backend listens for %+v", first.filter)
		}
		if diff := cmp.Diff([]string{"x:2", "x:3"}, second.filter.ResourceSubscriptions); diff != "" {
			t.Errorf("the second backend listens for (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"x:1", "x:2", "x:3"}, events.ack.ResourceSubscriptions); diff != "" || !events.ack.ToolsListChanged {
			t.Errorf("acknowledged: %+v", events.ack)
		}
		time.Sleep(time.Hour)
		if n := deaf.times(mcp.MethodListen); n != 1 { // the other call wants nothing of it
			t.Errorf("the backend that serves no listen calls was asked %d times", n)
		}
		first.tell(t, updated("x:1"))
		events.want(t, mcp.NotificationResourceUpdated+" x:1")
		other.none(t)
		theirs := <-twos.calls
		theirs.tell(t, updated("x:2"))
		other.want(t, mcp.NotificationResourceUpdated+" x:2")
		events.none(t)
		first.tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
		events.want(t, mcp.NotificationToolsListChanged)
		stop()
		stopOther()
		for _, h := range []*hearing{first, second, theirs} {
			<-h.ctx.Done() // nobody listens there any more
		}
	})
}

// TestListenIsMadeAgain: what may have been missed meanwhile is told.
func TestListenIsMadeAgain_B152_B154(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := listed("x:1")
		ones := newRadio(one)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "two": newFake()})
		events, stop := listen(t, g, modern, `{"promptsListChanged":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		(<-ones.calls).end <- errCrashed
		synctest.Wait()
		if len(ones.calls) != 0 {
			t.Error("it listens again at once")
		}
		again := <-ones.calls
		events.want(t, mcp.NotificationPromptsListChanged, mcp.NotificationResourceUpdated+" x:1")
		again.tell(t, updated("x:1"))
		events.want(t, mcp.NotificationResourceUpdated+" x:1")
		one.fail(mcp.MethodListen, errCrashed)
		before := one.times(mcp.MethodListen)
		again.end <- nil
		time.Sleep(time.Hour)
		if n := one.times(mcp.MethodListen) - before; n < 60 || n > 300 {
			t.Errorf("in an hour %d attempts are made", n)
		}
		events.none(t)
	})
}

// TestBackendsComeAndGoForListeners: clients are told, and hear of what comes.
func TestBackendsComeAndGoForListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newFake(), newFake()
		ones, twos := newRadio(one), newRadio(two)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true,"resourcesListChanged":true}`)
		defer stop()
		all := []string{mcp.NotificationToolsListChanged, mcp.NotificationResourcesListChanged}
		add(t, g, "two", two)
		second := <-twos.calls
		events.wantOf(t, all...) // since it has come, and since it has been heard of late
		second.tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
		events.want(t, mcp.NotificationToolsListChanged)
		first := <-ones.calls
		g.Remove("one")
		events.want(t, all...)
		<-first.ctx.Done()
	})
}

// TestResourceThatMovesIsListenedTo: from one backend to another, which is listened to for
// other reasons already.
func TestResourceThatMovesIsListenedTo_B152(t *testing.T) {
	move := map[string]func(t *testing.T, g *gateway.Gateway, one, two *fake){
		"listed elsewhere": func(t *testing.T, g *gateway.Gateway, one, two *fake) {
			one.answer(mcp.MethodListResources, `{"resources":[]}`)
			two.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
			list(t, g, mcp.MethodListResources, "resources", "uri")
		},
		"its backend is removed": func(t *testing.T, g *gateway.Gateway, _, two *fake) {
			two.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
			list(t, g, mcp.MethodListResources, "resources", "uri")
			g.Remove("one")
		},
	}
	for name, move := range move {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := listed("x:1"), newFake()
				twos := newRadio(two)
				newRadio(one)
				g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "two": two})
				events, stop := listen(t, g, modern, `{"resourceSubscriptions":["x:1"],"promptsListChanged":true,"taskIds":["1"]}`)
				defer stop()
				before := <-twos.calls
				move(t, g, one, two)
				after := <-twos.calls
				if diff := cmp.Diff([]string{"x:1"}, after.filter.ResourceSubscriptions); diff != "" {
					t.Errorf("it is listened to for (-want +got):\n%s", diff)
				}
				if len(after.filter.TaskIDs)+len(events.ack.TaskIDs) > 0 {
					t.Error("tasks are listened for, which do not pass")
				}
				<-before.ctx.Done()
				events.wantOf(t, mcp.NotificationPromptsListChanged, mcp.NotificationResourceUpdated+" x:1")
				after.tell(t, updated("x:1"))
				events.want(t, mcp.NotificationResourceUpdated+" x:1")
				list(t, g, mcp.MethodListResources, "resources", "uri")
				events.none(t)
				if len(twos.calls) != 0 {
					t.Error("it is listened to anew for nothing")
				}
			})
		})
	}
}

// TestResourcesAreWatchedWhereTheyMayBe: of those that nobody lists only at backends that
// tell of changes, and they are granted if one of these takes them, or the one that lists
// them is late.
func TestResourcesAreWatchedWhereTheyMayBe_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, still, late := newFake(), newFake(), listed("x:late")
		ones, stills := newRadio(one), newRadio(still)
		ones.take = func(f mcp.Filter) mcp.Filter {
			f.ResourceSubscriptions = slices.DeleteFunc(f.ResourceSubscriptions, func(uri string) bool { return uri != "x:1" })
			return f
		}
		still.answer(mcp.MethodDiscover, `{"capabilities":{"resources":{}}}`)
		late.hang(mcp.MethodListen)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "still": still, "late": late})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true,"resourceSubscriptions":["x:1","x:2","x:late"]}`)
		defer stop()
		if got := (<-stills.calls).filter.ResourceSubscriptions; len(got) != 0 {
			t.Errorf("the backend that does not tell of changes listens for %q", got)
		}
		if diff := cmp.Diff([]string{"x:1", "x:late"}, events.ack.ResourceSubscriptions); diff != "" {
			t.Errorf("acknowledged (-want +got):\n%s", diff)
		}
	})
}

// TestHungBackendDelaysNoAcknowledgement: not for longer than a legacy client waits.
func TestHungBackendDelaysNoAcknowledgement_B149(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, hung := newFake(), newFake()
		newRadio(one)
		hung.hang(mcp.MethodListen)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "hung": hung})
		began := time.Now()
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		if took := time.Since(began); took > gateway.DefaultKeptBudget+time.Millisecond || !events.ack.ToolsListChanged {
			t.Errorf("after %v it is acknowledged: %+v", took, events.ack)
		}
	})
}

// TestAcknowledgementComesFirst: what backends tell before it waits for it.
func TestAcknowledgementComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, hung := newFake(), newFake()
		ones := newRadio(one)
		hung.hang(mcp.MethodListen)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "hung": hung})
		e := new(ear)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			if _, err := g.Handle(ctx, request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`), e); err != nil {
				t.Error(err)
			}
		}()
		(<-ones.calls).tell(t, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
		e.want(t, mcp.NotificationAcknowledged, mcp.NotificationToolsListChanged)
	})
}

// TestRemovedBackendEndsNoListenCall: not even while the client is being told something
// of it.
func TestRemovedBackendEndsNoListenCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newFake()
		ones := newRadio(one)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
		e := &slowEar{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := g.Handle(ctx, request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`), e)
			ended <- err
		}()
		h := <-ones.calls
		synctest.Wait() // for the acknowledgement
		told := make(chan error)
		e.slow.Store(true)
		go func() { told <- h.caller.Notify(h.ctx, &mcp.Notification{Method: mcp.NotificationToolsListChanged}) }()
		synctest.Wait()
		e.slow.Store(false)
		g.Remove("one")
		if err := <-told; err == nil {
			t.Error("the backend is told that the client was")
		}
		e.want(t, mcp.NotificationAcknowledged, mcp.NotificationToolsListChanged)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the listen call ended with %v", err)
		}
	})
}

// A slowEar takes nothing while it is slow.
type slowEar struct {
	ear
	slow atomic.Bool
}

func (e *slowEar) Notify(ctx context.Context, n *mcp.Notification) error {
	if e.slow.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return e.ear.Notify(ctx, n)
}

func TestSessionListen_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newFake()
		ones := newRadio(one)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
		legacy := mcp.Metadata{Revision: mcp.NewestLegacy, Session: "s", LogLevel: "debug"}
		events, stop := listen(t, g, legacy, `{"session":true}`)
		defer stop()
		h := <-ones.calls
		if !h.filter.Session || h.meta.LogLevel != "debug" || h.meta.Session != "s" {
			t.Errorf("the backend is listened to for %+v by %+v", h.filter, h.meta)
		}
		if events.ack.Session {
			t.Error("the legacy member of the filter is acknowledged")
		}
		h.tell(t, &mcp.Notification{Method: mcp.NotificationMessage})
		events.want(t, mcp.NotificationMessage)
		roots, err := h.caller.Ask(h.ctx, request(mcp.MethodListRoots, `{}`))
		if err != nil || string(roots.Raw()) != `{"roots":[]}` {
			t.Errorf("the client answers %s, %v", roots.Raw(), err)
		}
	})
}

func TestListenEnds(t *testing.T) {
	newCall := func(g *gateway.Gateway, caller mcp.Caller) chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := g.Handle(context.Background(), request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`), caller)
			ended <- err
		}()
		return ended
	}
	t.Run("with the gateway", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			one := newFake()
			newRadio(one)
			g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
			ended := newCall(g, mcp.NoCaller{})
			synctest.Wait()
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	})
	t.Run("when the client cannot be told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			one := newFake()
			ones := newRadio(one)
			g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
			ended := newCall(g, new(deaf))
			h := <-ones.calls
			if err := h.caller.Notify(h.ctx, &mcp.Notification{Method: mcp.NotificationToolsListChanged}); !errors.Is(err, errDeaf) {
				t.Errorf("the backend is told %v", err)
			}
			if err := <-ended; !errors.Is(err, errDeaf) {
				t.Errorf("it ends with %v", err)
			}
		})
	})
	t.Run("over the limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGateway(t, &gateway.Options{MaxListens: 1}, nil)
			_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
			defer stop()
			e, ok := errors.AsType[*mcp.CallError](<-newCall(g, mcp.NoCaller{}))
			if !ok || e.Limit != "MaxListens" || e.Public != "1 listen calls are open, the limit is 1" {
				t.Errorf("a second one: %v", e)
			}
		})
	})
}

var errDeaf = errors.New("gone")

// deaf hears nothing but the acknowledgement.
type deaf struct{ mcp.NoCaller }

func (*deaf) Notify(_ context.Context, n *mcp.Notification) error {
	if n.Method == mcp.NotificationAcknowledged {
		return nil
	}
	return errDeaf
}

func TestRootsAreToldAllBackends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, hung := newFake(), newFake()
		hung.hang(mcp.NotificationRootsListChanged)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "hung": hung})
		for _, method := range []string{mcp.NotificationRootsListChanged, "notifications/progress"} {
			req := request(method, `{"x":1}`)
			req.Notification = true
			if _, err := g.Handle(t.Context(), req, mcp.NoCaller{}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		for _, b := range []*fake{one, hung} {
			if last := b.lastRequest(); last == nil || last.Method != mcp.NotificationRootsListChanged || string(last.Params.Raw()) != `{"x":1}` {
				t.Errorf("a backend was told %+v", last)
			}
		}
	})
}
