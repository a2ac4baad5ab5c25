package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestBackendThatIsHeardLateIsToldOf: what it told nobody before may have changed.
func TestBackendThatIsHeardLateIsToldOf_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newFake()
		radio := newRadio(slow)
		slow.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			time.Sleep(time.Minute)
			return radio.handle(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"slow": slow})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		events.none(t)
		time.Sleep(time.Minute)
		events.want(t, mcp.NotificationToolsListChanged)
	})
}

// TestListenCallThatWasAcknowledgedIsMadeAgain whatever error it ends with.
func TestListenCallThatWasAcknowledgedIsMadeAgain_B154(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		(<-radio.calls).end <- jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "not any more")
		<-radio.calls
		events.want(t, mcp.NotificationToolsListChanged)
	})
}

// TestBackendThatEndsAtOnceIsListenedToLessOften, and as soon as before when a call has
// lasted.
func TestBackendThatEndsAtOnceIsListenedToLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		h := <-radio.calls
		for range 10 {
			h.end <- errCrashed
			h = <-radio.calls
		}
		began := time.Now()
		h.end <- errCrashed
		h = <-radio.calls
		if waited := time.Since(began); waited < 15*time.Second || waited > 30*time.Second {
			t.Errorf("after many calls that ended at once it waits %v", waited)
		}
		time.Sleep(time.Minute)
		began = time.Now()
		h.end <- errCrashed
		<-radio.calls
		if waited := time.Since(began); waited > 500*time.Millisecond {
			t.Errorf("after a call that has lasted it waits %v", waited)
		}
	})
}

// TestStrictBackendIsHeardOutsideCalls: a legacy session that watches resources, too.
func TestStrictBackendIsHeardOutsideCalls_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		b.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if filter, _ := mcp.ReadFilter(&req.Params); len(filter.ResourceSubscriptions) > 0 {
				return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource")
			}
			return radio.handle(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"session":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		if n := len(events.ack.ResourceSubscriptions); n != 0 {
			t.Errorf("%d resources are granted", n)
		}
		(<-radio.calls).tell(t, &mcp.Notification{Method: mcp.NotificationMessage})
		events.want(t, mcp.NotificationMessage)
	})
}

// TestWhatWasToldIsNotToldAgain with the next change.
func TestWhatWasToldIsNotToldAgain_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := listed("x:1")
		ones := newRadio(one)
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one})
		events, stop := listen(t, g, modern, `{"promptsListChanged":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		(<-ones.calls).end <- errCrashed
		<-ones.calls
		events.want(t, mcp.NotificationPromptsListChanged, mcp.NotificationResourceUpdated+" x:1")
		add(t, g, "deaf", newFake())
		events.want(t, mcp.NotificationPromptsListChanged)
	})
}

// TestResourcesAreWatchedAtABackendThatHasNotSaidWhatItCanDo.
func TestResourcesAreWatchedAtABackendThatHasNotSaidWhatItCanDo_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		b.hang(mcp.MethodDiscover)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"resourceSubscriptions":["x:1"]}`)
		defer stop()
		if len(events.ack.ResourceSubscriptions) != 1 || len(radio.calls) != 1 {
			t.Errorf("acknowledged: %+v", events.ack)
		}
	})
}

// TestListenCallsThatHaveEndedDoNotCount: the limit is of those that are open.
func TestListenCallsThatHaveEndedDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, &gateway.Options{MaxListens: 1}, nil)
		for range 3 {
			_, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
			_, err := g.Handle(t.Context(), request(mcp.MethodListen, `{"notifications":{}}`), new(ear))
			if wire := jsonrpc.ToWire(err); !strings.Contains(wire.Message, "1 listen calls are open, the limit is 1") {
				t.Errorf("a second one: %v", err)
			}
			stop()
		}
	})
}

// TestStrictBackendIsWatchedForWhatItLists: what it refuses is not that.
func TestStrictBackendIsWatchedForWhatItLists_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, strict := newFake(), listed("x:1")
		newRadio(one)
		radio := newRadio(strict)
		strict.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if filter, _ := mcp.ReadFilter(&req.Params); len(filter.ResourceSubscriptions) > 1 {
				return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource")
			}
			return radio.handle(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "strict": strict})
		events, stop := listen(t, g, modern, `{"resourceSubscriptions":["x:1","x:2"]}`)
		defer stop()
		(<-radio.calls).tell(t, updated("x:1"))
		events.want(t, mcp.NotificationResourceUpdated+" x:1")
		if n := strict.times(mcp.MethodListen); n != 2 {
			t.Errorf("it is asked %d times", n)
		}
	})
}

// TestSecondAcknowledgementMeansNothing: a backend confirms a call once.
func TestSecondAcknowledgementMeansNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"toolsListChanged":true}`)
		defer stop()
		h := <-radio.calls
		h.tell(t, h.filter.Acknowledge())
		events.none(t)
	})
}

// TestStrictBackendIsWatchedForWhatItListsLater: it has refused that before.
func TestStrictBackendIsWatchedForWhatItListsLater_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, strict := newFake(), newFake()
		newRadio(one)
		radio := newRadio(strict)
		has := false
		strict.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if filter, _ := mcp.ReadFilter(&req.Params); len(filter.ResourceSubscriptions) > 0 && !has {
				return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource")
			}
			return radio.handle(ctx, req, caller)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "strict": strict})
		events, stop := listen(t, g, modern, `{"promptsListChanged":true,"resourceSubscriptions":["x:1"]}`)
		defer stop()
		<-radio.calls
		has = true
		strict.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
		list(t, g, mcp.MethodListResources, "resources", "uri")
		synctest.Wait()
		if len(radio.calls) != 1 {
			t.Fatal("it is not listened to anew")
		}
		h := <-radio.calls
		events.wantOf(t, mcp.NotificationPromptsListChanged, mcp.NotificationResourceUpdated+" x:1")
		h.tell(t, updated("x:1"))
		events.want(t, mcp.NotificationResourceUpdated+" x:1")
		list(t, g, mcp.MethodListResources, "resources", "uri")
		synctest.Wait()
		if len(radio.calls) != 0 {
			t.Error("it is listened to anew for nothing")
		}
	})
}

// TestGapBeforeTheAcknowledgementIsToldOf: what a backend has told nobody while another
// one was waited for may have changed.
func TestGapBeforeTheAcknowledgementIsToldOf_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, slow := newFake(), newFake()
		radio := newRadio(one)
		slow.hang(mcp.MethodListen)
		var calls atomic.Int64
		one.handle(mcp.MethodListen, func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			if calls.Add(1) > 1 {
				return radio.handle(ctx, req, caller)
			}
			filter, _ := mcp.ReadFilter(&req.Params)
			return mcp.Result{}, errors.Join(caller.Notify(ctx, filter.Acknowledge()), errCrashed)
		})
		g := newGateway(t, hurried, map[string]mcp.Handler{"one": one, "slow": slow})
		e := new(ear)
		req := request(mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}}`)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := g.Handle(ctx, req, e)
			ended <- err
		}()
		time.Sleep(time.Minute)
		e.want(t, mcp.NotificationAcknowledged, mcp.NotificationToolsListChanged, mcp.NotificationResourceUpdated+" x:1")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestBackendThatBeginsToListAResourceIsNotListenedToAnew: it took that before.
func TestBackendThatBeginsToListAResourceIsNotListenedToAnew_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		radio := newRadio(b)
		g := newGateway(t, hurried, map[string]mcp.Handler{"b": b})
		events, stop := listen(t, g, modern, `{"resourceSubscriptions":["x:1"]}`)
		defer stop()
		h := <-radio.calls
		b.answer(mcp.MethodListResources, `{"resources":[{"uri":"x:1","name":"r"}]}`)
		list(t, g, mcp.MethodListResources, "resources", "uri")
		events.none(t)
		if n := b.times(mcp.MethodListen); n != 1 {
			t.Errorf("it is asked %d times", n)
		}
		h.tell(t, updated("x:1"))
		events.want(t, mcp.NotificationResourceUpdated+" x:1")
	})
}
