package session_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// TestLateLogMessageReachesNoOtherClient: where a response may overtake log messages, what
// comes just behind that of one client is not another client's.
func TestLateLogMessageReachesNoOtherClient_B151_SEC104(t *testing.T) {
	const soon = session.LateStep / 10
	one := mcp.Metadata{Revision: mcp.Revision20260728, Session: "one", LogLevel: ""}
	for _, tt := range []struct {
		name   string
		answer mcp.Metadata // of the client whose call is answered
		after  bool         // the other client's call begins then, and not before
		listen bool         // the other client only listens
		order  bool         // one stream for all
		late   time.Duration
		want   bool // it is the other client's
	}{
		{name: "beside", answer: one, late: soon},
		{name: "beside, at last", answer: one, late: session.LateWait - soon},
		{name: "beside, later", answer: one, late: session.LateWait, want: true},
		{name: "then", answer: one, after: true, late: soon},
		{name: "then, later", answer: one, after: true, late: session.LateStep, want: true},
		{name: "of who listens", answer: one, listen: true, late: soon},
		{name: "of who listens, later", answer: one, listen: true, late: session.LateWait, want: true},
		{name: "of the same client", answer: logMeta("other", ""), late: soon, want: true},
		{name: "on one stream for all", answer: one, order: true, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				overtaken := always
				if tt.order {
					overtaken = nil
				}
				calls := make(chan *inflight.Call, 2)
				r := newRacer(t, everything, overtaken, func(call *inflight.Call, method, _ string) {
					if method != mcp.MethodCallTool {
						answer(call, "{}")
						return
					}
					calls <- call
				})
				other := newListener()
				begin := func() {
					if tt.listen {
						l, listening := listen(t, r, mcp.Metadata{Revision: legacyRev, Session: "other"}, mcp.Filter{Session: true})
						other = l
						t.Cleanup(func() { listening.stop() })
						return
					}
					handle(t, r, toolCall(logMeta("other", "debug")), other)
					call := <-calls
					t.Cleanup(func() { answer(call, "{}") })
				}
				if !tt.after {
					begin()
				}
				answered := handle(t, r, toolCall(tt.answer), newListener())
				answer(<-calls, "{}")
				<-answered.done
				if tt.after {
					begin()
				}
				time.Sleep(tt.late)
				r.log("error", 1)
				synctest.Wait()
				want := []string{}
				if tt.want {
					want = append(want, logged("error", 1))
				}
				if got := other.told(); !slices.Equal(got, want) && len(got)+len(want) > 0 {
					t.Errorf("the other client was told %q, want %q", got, want)
				}
			})
		})
	}
}

// TestCallWaitsForNoLogMessageThatMayBeAnothers: nor is it given one.
func TestCallWaitsForNoLogMessageThatMayBeAnothers_B151(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan *inflight.Call, 2)
		r := newRacer(t, everything, always, func(call *inflight.Call, method, _ string) {
			if method != mcp.MethodCallTool {
				answer(call, "{}")
				return
			}
			calls <- call
		})
		wanting := newListener()
		waiting := handle(t, r, toolCall(logMeta("m", "debug")), wanting)
		call := <-calls
		other := handle(t, r, toolCall(logMeta("other", "")), newListener())
		answer(<-calls, "{}")
		<-other.done
		began := time.Now()
		answer(call, "{}")
		<-waiting.done
		r.log("error", 1)
		if got := wanting.told(); len(got) > 0 || time.Since(began) != 0 {
			t.Errorf("after %v %q has come", time.Since(began), got)
		}
	})
}
