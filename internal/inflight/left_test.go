package inflight_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestCallsThatWereLeftCount: the peer may still work on a call that was given up, and
// what it says of it is not another client's.
func TestCallsThatWereLeftCount_B151(t *testing.T) {
	response := func(id int64) *jsonrpc.Message {
		return &jsonrpc.Message{Kind: jsonrpc.Response, ID: jsonrpc.IntID(id), Body: jsonrpc.Trusted([]byte("{}"))}
	}
	for _, tt := range []struct {
		name string
		// end ends a call of the client a, that of b goes on.
		end    func(calls *inflight.Calls, call *inflight.Call)
		client string // of the call that goes on
		want   bool
	}{
		{"given up", func(_ *inflight.Calls, call *inflight.Call) { call.End() }, "b", true},
		{"given up with an error", func(_ *inflight.Calls, call *inflight.Call) { call.Finish(errors.New("x")); call.End() }, "b", true},
		{"not sent", func(_ *inflight.Calls, call *inflight.Call) {
			call.Finish(&mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent})
			call.End()
		}, "b", false},
		{"answered by what is no answer", func(_ *inflight.Calls, call *inflight.Call) {
			call.Finish(&mcp.CallError{Kind: mcp.BadReply, Outcome: mcp.Answered})
			call.End()
		}, "b", false},
		{"lost", func(_ *inflight.Calls, call *inflight.Call) {
			call.Finish(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted})
			call.End()
		}, "b", true},
		{"by the same client", func(_ *inflight.Calls, call *inflight.Call) { call.End() }, "a", false},
		{"answered", func(calls *inflight.Calls, call *inflight.Call) { calls.Respond(response(call.ID)); call.End() }, "b", false},
		{"answered late", func(calls *inflight.Calls, call *inflight.Call) { call.End(); calls.Respond(response(call.ID)) }, "b", false},
		{"long ago", func(_ *inflight.Calls, call *inflight.Call) { call.End(); <-time.After(time.Minute) }, "b", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls inflight.Calls
				left, other := start(t, &calls, tool("a")), start(t, &calls, tool(tt.client))
				tt.end(&calls, left)
				if got := calls.LeftByOthers(other.Client()); got != tt.want {
					t.Errorf("LeftByOthers says %v", got)
				}
				if got := calls.Of(tt.client, func(*inflight.Call) bool { return true }); got != other {
					t.Errorf("the client's call is %v", got)
				}
			})
		})
	}
}

// TestWhatFollowsTheEnd: it waits until the peer has been told that the call was left.
func TestWhatFollowsTheEnd_B151(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(call *inflight.Call, note func(string))
		want []string
	}{
		{"after the end", func(call *inflight.Call, note func(string)) {
			call.Then(func() { note("then") })
			note("end")
			call.End()
		}, []string{"end", "then"}},
		{"after it was told of", func(call *inflight.Call, note func(string)) {
			told := call.Telling()
			call.Then(func() { note("then") })
			call.End()
			note("told")
			told()
		}, []string{"told", "then"}},
		{"told before the end", func(call *inflight.Call, note func(string)) {
			call.Then(func() { note("then") })
			call.Telling()()
			note("end")
			call.End()
		}, []string{"end", "then"}},
		{"wanted late", func(call *inflight.Call, note func(string)) {
			call.End()
			call.Then(func() { note("then") })
		}, []string{"then"}},
		{"by a question that was never put", func(call *inflight.Call, note func(string)) {
			call.Ask(1, func(context.Context, mcp.Caller) { call.Then(func() { note("then") }) })
			told := call.Telling()
			call.End()
			note("told")
			told()
		}, []string{"told", "then"}},
		{"once", func(call *inflight.Call, note func(string)) {
			call.Then(func() { note("then") })
			call.End()
			call.End()
			call.Telling()()
		}, []string{"then"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls inflight.Calls
			var got []string
			tt.do(start(t, &calls, tool("a")), func(what string) { got = append(got, what) })
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCallsThatAreNobodysAreNotLeft: what this process asks for itself, and listen calls,
// for which the peer does nothing.
func TestCallsThatAreNobodysAreNotLeft_B151(t *testing.T) {
	var calls inflight.Calls
	own, err := calls.StartOwn(&mcp.Request{Method: mcp.MethodPing})
	if err != nil {
		t.Fatal(err)
	}
	own.End()
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "a"}}).End()
	if calls.LeftByOthers("b") {
		t.Error("one of them counts")
	}
	calls.Fail(errors.New("over"), true) // ends what follows
	if calls.LeftByOthers("b") {
		t.Error("the end of the connection counts")
	}
}

// TestClientOutlivesTheMemoryOfItsCall: who has found the owner of a message may ask for
// its client when the call is over.
func TestClientOutlivesTheMemoryOfItsCall(t *testing.T) {
	var calls inflight.Calls
	name := []byte(`{"name":"a"}`)
	call := start(t, &calls, &mcp.Request{Method: mcp.MethodCallTool, Meta: mcp.Metadata{Client: name}})
	want := call.Request.Meta.ClientKey()
	owner, _ := calls.Owner(always)
	call.Reply(&jsonrpc.Message{})
	call.End()
	clear(name)
	if got := owner.Client(); got != want {
		t.Errorf("the client is %q", got)
	}
}

// TestCallsOfAClientAreInFlight: one that is over carries nothing.
func TestCallsOfAClientAreInFlight_B151(t *testing.T) {
	var calls inflight.Calls
	first, second := start(t, &calls, tool("a")), start(t, &calls, tool("a"))
	second.Finish(errors.New("x"))
	if got := calls.Of("a", func(*inflight.Call) bool { return true }); got != first {
		t.Errorf("got %v", got)
	}
}

// TestWhatFollowsTheEndDoesNotWaitForEachOther: one answer may take as long as a peer that
// does not read.
func TestWhatFollowsTheEndDoesNotWaitForEachOther_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls inflight.Calls
		call := start(t, &calls, tool("a"))
		var done atomic.Int32
		for range 3 {
			call.Then(func() {
				time.Sleep(time.Second)
				done.Add(1)
			})
		}
		began := time.Now()
		call.End()
		if took := time.Since(began); took != time.Second || done.Load() != 3 {
			t.Errorf("after %v %d of 3 are done", took, done.Load())
		}
	})
}
