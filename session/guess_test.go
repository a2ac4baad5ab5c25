package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// waiting is a caller that does not answer until the question's context ends.
func waiting(asking chan<- string, name string) *listener {
	l := newListener()
	l.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		asking <- name
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	return l
}

func answering(name string) *listener {
	l := newListener()
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"from":"` + name + `"}`)), nil
	}
	return l
}

// TestQuestionMovesToAnotherCallOfItsClient: which call it belongs to was guessed, and
// the one that carried it ends.
func TestQuestionMovesToAnotherCallOfItsClient_B151(t *testing.T) {
	modern := mcp.Metadata{Revision: mcp.Revision20260728, Session: "a"}
	for _, tt := range []struct {
		name   string
		second *mcp.Request
		end    func(call *inflight.Call, r *running)
		want   string
	}{
		{"answered", toolCall(legacyMeta("a", "")), func(call *inflight.Call, _ *running) { answer(call, "{}") }, `{"from":"second"}`},
		{"left", toolCall(legacyMeta("a", "")), func(_ *inflight.Call, r *running) { r.stop() }, `{"from":"second"}`},
		{"no call that can carry it", &mcp.Request{Method: mcp.MethodListTools, Meta: modern},
			func(call *inflight.Call, _ *running) { answer(call, "{}") }, `error -32603`},
		{"another client's call", toolCall(legacyMeta("b", "")), func(call *inflight.Call, _ *running) { answer(call, "{}") }, `error -32603`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			asking := make(chan string, 1)
			first := toolCall(legacyMeta("a", ""))
			if tt.second.Meta.Revision.Era() == mcp.Modern {
				first = toolCall(modern)
			}
			r := handle(t, c, first, waiting(asking, "first"))
			call := receive(t, "the first call", started)
			c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
			receive(t, "the question", asking)
			handle(t, c, tt.second, answering("second"))
			receive(t, "the second call", started)
			tt.end(call, r)
			if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 " + tt.want}) {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestQuestionMovesWithTheErrorOfAClientThatLeaves: a client may answer with an error
// what makes it leave its call, and cancel that a moment later.
func TestQuestionMovesWithTheErrorOfAClientThatLeaves_B151(t *testing.T) {
	const never = time.Hour
	for _, tt := range []struct {
		name   string
		code   int
		leaves time.Duration // after the error
		ends   time.Duration
		want   string
	}{
		{"at once", -32603, 0, never, `{"from":"second"}`},
		{"a moment later", -32603, 400 * time.Millisecond, never, `{"from":"second"}`},
		{"much later", -32603, time.Second, never, `error -32603`},
		{"never", -32603, never, never, `error -32603`},
		{"its call is answered", -32603, never, 100 * time.Millisecond, `error -32603`},
		{"its user says no", -1, 0, never, `error -1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, started := held()
				c := connected(t, w, asksEverything)
				handle(t, c, toolCall(legacyMeta("a", "")), answering("second"))
				receive(t, "the second call", started)
				refusing := newListener()
				refusing.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
					return mcp.Result{}, &jsonrpc.Error{Code: tt.code}
				}
				first := handle(t, c, toolCall(legacyMeta("a", "")), refusing)
				call := receive(t, "the first call", started)
				c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
				leaving := time.AfterFunc(tt.leaves, first.cancel)
				defer leaving.Stop()
				ending := time.AfterFunc(tt.ends, func() { answer(call, "{}") })
				defer ending.Stop()
				if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 " + tt.want}) {
					t.Errorf("answered %q", got)
				}
			})
		})
	}
}

// TestQuestionMovesToTheListenCallThatReplacesItsOwn: as when a client sets its log
// level.
func TestQuestionMovesToTheListenCallThatReplacesItsOwn_B151(t *testing.T) {
	for _, method := range []string{mcp.MethodListRoots, mcp.MethodElicit, mcp.MethodCreateMessage} {
		t.Run(method, func(t *testing.T) {
			w, _ := held()
			c := connected(t, w, asksEverything)
			asking := make(chan string, 1)
			old, replaced := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
			old.ask = waiting(asking, "old").ask
			c.Asked(t.Context(), ask(t, "1", method), nil)
			receive(t, "the question", asking)
			next, _ := listen(t, c, legacyMeta("a", "debug"), mcp.Filter{Session: true})
			next.ask = answering("next").ask
			replaced.stop()
			if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{`reply 1 {"from":"next"}`}) {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestErrorThatIsTheAnswerWaitsForNothing: of a user, or of the only call that can have
// been meant.
func TestErrorThatIsTheAnswerWaitsForNothing_B151(t *testing.T) {
	for _, tt := range []struct {
		name   string
		code   int
		others int // calls of the same client
		wait   time.Duration
	}{
		{"the only call", -32603, 0, 0},
		{"a user says no", -1, 1, 0},
		{"one of two calls", -32603, 1, 500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, started := held()
				c := connected(t, w, asksEverything)
				for range tt.others {
					handle(t, c, toolCall(legacyMeta("a", "")), answering("another"))
					receive(t, "another call", started)
				}
				refusing := newListener()
				refusing.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
					return mcp.Result{}, &jsonrpc.Error{Code: tt.code}
				}
				handle(t, c, toolCall(legacyMeta("a", "")), refusing)
				receive(t, "the call", started)
				began := time.Now()
				c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
				w.await(t, 1, "reply")
				if took := time.Since(began); took != tt.wait {
					t.Errorf("the answer takes %v, want %v", took, tt.wait)
				}
			})
		})
	}
}

// TestQuestionThatCameOnItsCallDoesNotMove: it is that call's for certain.
func TestQuestionThatCameOnItsCallDoesNotMove(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	asking := make(chan string, 1)
	handle(t, c, toolCall(legacyMeta("a", "")), waiting(asking, "first"))
	call := receive(t, "the first call", started)
	handle(t, c, toolCall(legacyMeta("a", "")), answering("second"))
	receive(t, "the second call", started)
	c.Asked(t.Context(), ask(t, "1", mcp.MethodElicit), call)
	receive(t, "the question", asking)
	answer(call, "{}")
	if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 error -32603"}) {
		t.Errorf("answered %q", got)
	}
}

// TestQuestionOfACallThatWasLeftIsNobodyElses: the server may not know yet that its
// client has gone.
func TestQuestionOfACallThatWasLeftIsNobodyElses_B151(t *testing.T) {
	for _, other := range []string{"a call", "a session that listens"} {
		t.Run(other, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			left := handle(t, c, toolCall(legacyMeta("a", "")), answering("a"))
			receive(t, "the call", started)
			if other == "a call" {
				handle(t, c, toolCall(legacyMeta("b", "")), answering("b"))
				receive(t, "the other call", started)
			} else {
				l, r := listen(t, c, legacyMeta("b", ""), mcp.Filter{Session: true})
				l.ask = answering("b").ask
				defer r.stop()
			}
			left.stop()
			c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
			if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 error -32603"}) {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestLogMessageOfACallThatWasLeftIsNobodyElses: neither a call's nor a session's.
func TestLogMessageOfACallThatWasLeftIsNobodyElses_B151(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	left := handle(t, c, toolCall(legacyMeta("a", "")), newListener())
	receive(t, "the call", started)
	session, r := listen(t, c, legacyMeta("b", ""), mcp.Filter{Session: true})
	defer r.stop()
	left.stop()
	log := scan(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"secret"}}`)
	c.Notified(log, nil)
	other := newListener()
	call := handle(t, c, toolCall(legacyMeta("b", "")), other)
	receive(t, "the other call", started)
	c.Notified(log, nil)
	call.stop()
	if got := append(session.told(), other.told()...); len(got) > 0 {
		t.Errorf("another client was told %q", got)
	}
}
