package session_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

func modernMeta(client string) mcp.Metadata {
	return mcp.Metadata{Revision: mcp.Revision20260728, Session: client}
}

// A rooted is a client's call whose Caller answers roots/list, and counts.
type rooted struct {
	*listener
	asked atomic.Int32
}

func newRooted(answer string) *rooted {
	r := &rooted{listener: newListener()}
	r.ask = func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		r.asked.Add(1)
		if req.Method != mcp.MethodListRoots || answer == "" {
			return mcp.Result{}, mcp.ErrCannotAsk
		}
		return mcp.RawResult([]byte(answer)), nil
	}
	return r
}

const (
	rootsA = `{"roots":[{"uri":"file:///a"}]}`
	rootsB = `{"roots":[{"uri":"file:///b"}]}`
)

// untilTold starts a call and plays a server that asks for the roots when it is
// told that they have changed. It returns what was sent since, up to the call.
func untilTold(t *testing.T, w *wire, c *session.Client, req *mcp.Request, caller mcp.Caller) (*running, []string) {
	t.Helper()
	before, told := len(w.all("")), len(w.all(mcp.NotificationRootsListChanged))
	r := handle(t, c, req, caller)
	w.await(t, told+1, mcp.NotificationRootsListChanged)
	c.Asked(t.Context(), ask(t, `"again"`, mcp.MethodListRoots), nil)
	<-r.done
	if r.err != nil {
		t.Error(r.err)
	}
	return r, w.all("")[before:]
}

// TestRootsAreLearntBeforeTheFirstCall: the question of a server that asks right
// after its handshake is put with the first call, before that is sent.
func TestRootsAreLearntBeforeTheFirstCall_B041_B151(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	c.Asked(t.Context(), ask(t, `"first"`, mcp.MethodListRoots), nil)
	if got := w.all("reply"); !slices.Equal(got, []string{`reply "first" error -32603`}) {
		t.Fatalf("answered %q", got)
	}
	if _, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Meta: modernMeta("m")}, newRooted(rootsA)); err != nil {
		t.Fatal(err)
	}
	caller := newRooted(rootsA)
	_, got := untilTold(t, w, c, toolCall(modernMeta("m")), caller)
	want := []string{
		mcp.NotificationRootsListChanged + " ", `reply "again" ` + rootsA,
		mcp.MethodPing + " {}", mcp.MethodCallTool + ` {"name":"x"}`,
	}
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], "ping ", "ping {}")
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
	// From now on they are known: with a call in flight or without.
	if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), caller); err != nil || caller.asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, caller.asked.Load())
	}
	c.Asked(t.Context(), ask(t, `"later"`, mcp.MethodListRoots), nil)
	if got := w.all(`reply "later"`); !slices.Equal(got, []string{`reply "later" ` + rootsA}) {
		t.Errorf("answered %q", got)
	}
}

// TestWhoIsAskedForRootsBefore: nobody for a server that does not want them, or who
// can be asked at any time.
func TestWhoIsAskedForRootsBefore(t *testing.T) {
	missed := func(t *testing.T, w *wire, c *session.Client) {
		n := len(w.all("reply"))
		c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		w.await(t, n+1, "reply")
	}
	for _, tt := range []struct {
		name         string
		capabilities string
		before       func(*testing.T, *wire, *session.Client)
		req          *mcp.Request
		asked        int32
		pings        int
	}{
		{"a server that has asked", asksEverything, missed, toolCall(modernMeta("m")), 1, 1},
		{"under prompts/get", asksEverything, missed, &mcp.Request{Method: mcp.MethodGetPrompt, Meta: modernMeta("m")}, 1, 1},
		{"under resources/read", asksEverything, missed, &mcp.Request{Method: mcp.MethodReadResource, Meta: modernMeta("m")}, 1, 1},
		{"under a list", asksEverything, missed, &mcp.Request{Method: mcp.MethodListTools, Meta: modernMeta("m")}, 0, 0},
		{"a server that has not", asksEverything, nil, toolCall(modernMeta("m")), 0, 1},
		{"a server that has asked something else", asksEverything, func(t *testing.T, w *wire, c *session.Client) {
			c.Asked(t.Context(), ask(t, "1", mcp.MethodElicit), nil)
		}, toolCall(modernMeta("m")), 0, 1},
		{"a client without roots", `{"elicitation":{}}`, missed, toolCall(modernMeta("m")), 0, 0},
		{"a legacy client", asksEverything, missed, toolCall(legacyMeta("m", "")), 0, 0},
		{"a session that listens", asksEverything, func(t *testing.T, w *wire, c *session.Client) {
			listen(t, c, legacyMeta("m", ""), mcp.Filter{Session: true})
			missed(t, w, c)
		}, toolCall(mcp.Metadata{Session: "m"}), 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(nil)
			c := connected(t, w, tt.capabilities)
			if tt.before != nil {
				tt.before(t, w, c)
			}
			caller := newRooted("") // cannot be asked: the call goes on without
			for range 2 {
				if _, err := c.Handle(t.Context(), tt.req, caller); err != nil {
					t.Error(err)
				}
			}
			if got := caller.asked.Load(); got != 2*tt.asked { // with each call, since it was in vain
				t.Errorf("asked %d times", got)
			}
			if got := w.all(mcp.MethodPing); len(got) != tt.pings {
				t.Errorf("%d pings", len(got))
			}
			if got := w.all(tt.req.Method); len(got) != 2 {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// TestFirstCallWaitsForWhatTheServerAsks: its first answer comes after the
// question that it has at once.
func TestFirstCallWaitsForWhatTheServerAsks_B041(t *testing.T) {
	var c *session.Client
	w := newWire(nil)
	w.serve = func(call *inflight.Call, method, _ string) {
		if method == mcp.MethodPing && len(w.all("reply")) == 0 {
			c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		}
		answer(call, "{}")
	}
	c = connected(t, w, asksEverything)
	caller := newRooted(rootsA)
	_, got := untilTold(t, w, c, toolCall(modernMeta("m")), caller)
	var methods []string
	for _, s := range got {
		method, _, _ := strings.Cut(s, " ")
		methods = append(methods, method)
	}
	want := []string{mcp.MethodPing, "reply", mcp.NotificationRootsListChanged, "reply", mcp.MethodPing, mcp.MethodCallTool}
	if !slices.Equal(methods, want) || caller.asked.Load() != 1 {
		t.Errorf("sent %q, asked %d times", got, caller.asked.Load())
	}
}

// TestServerThatDoesNotTakeRoots holds the first call for RootsWait, and no other.
func TestServerThatDoesNotTakeRoots_R18(t *testing.T) {
	for _, silent := range []string{mcp.MethodListRoots, mcp.MethodPing} {
		t.Run(silent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(nil)
				pings := make(chan *inflight.Call, 10)
				w.serve = func(call *inflight.Call, method, _ string) {
					if method == silent {
						pings <- call
						return
					}
					answer(call, "{}")
				}
				c := connected(t, w, asksEverything)
				c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
				started := time.Now()
				if silent == mcp.MethodPing {
					untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsA))
				} else if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), newRooted(rootsA)); err != nil {
					t.Error(err)
				}
				most := session.RootsWait
				if silent == mcp.MethodPing {
					most = 2 * session.RootsWait // before the question and after it
				}
				if waited := time.Since(started); waited < session.RootsWait || waited > most {
					t.Errorf("waited for %v", waited)
				}
				started = time.Now()
				if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), newRooted(rootsA)); err != nil || time.Since(started) != 0 {
					t.Errorf("%v after %v", err, time.Since(started))
				}
			})
		})
	}
}

// TestRootsThatChange: the client's next answer counts, and the server is told of
// it if it differs.
func TestRootsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight *inflight.Call
		w := newWire(nil)
		w.serve = func(call *inflight.Call, method, _ string) {
			if method == mcp.MethodGetPrompt {
				inFlight = call
				return
			}
			answer(call, "{}")
		}
		c := connected(t, w, asksEverything)
		known := func(want string) {
			t.Helper()
			c.Asked(t.Context(), ask(t, `"k"`, mcp.MethodListRoots), nil)
			if got := w.all(`reply "k"`); got[len(got)-1] != `reply "k" `+want {
				t.Errorf("answered %s", got[len(got)-1])
			}
		}
		c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsA))
		known(rootsA)
		// Asked for in a call, they come from the client.
		prompt := handle(t, c, &mcp.Request{Method: mcp.MethodGetPrompt, Meta: modernMeta("m")}, newRooted(rootsB))
		synctest.Wait()
		c.Asked(t.Context(), ask(t, `"in a call"`, mcp.MethodListRoots), nil)
		if got := w.await(t, 1, `reply "in a call"`); got[0] != `reply "in a call" `+rootsB {
			t.Errorf("answered %q", got)
		}
		answer(inFlight, "{}")
		<-prompt.done
		known(rootsB)
		// Old ones are asked for with a call, and told if they are others.
		time.Sleep(session.RootsLife)
		same := newRooted(rootsB)
		if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), same); err != nil || same.asked.Load() != 1 {
			t.Errorf("%v, asked %d times", err, same.asked.Load())
		}
		time.Sleep(session.RootsLife)
		untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsA))
		known(rootsA)
		if got := w.all(mcp.NotificationRootsListChanged); len(got) != 2 {
			t.Errorf("%d changes were told", len(got))
		}
	})
}

// TestRootsOfSeveralClients: on a connection that clients share nobody knows whose
// roots are meant.
func TestRootsOfSeveralClients(t *testing.T) {
	client := func(name, subject string) mcp.Metadata {
		return mcp.Metadata{Revision: mcp.Revision20260728, Client: []byte(`{"name":"` + name + `"}`), Principal: mcp.Principal{Subject: subject}}
	}
	for _, tt := range []struct {
		name    string
		another mcp.Metadata
		want    string
	}{
		{"the same", client("m", "s"), rootsA},
		{"another client", client("n", "s"), "error -32603"},
		{"another principal", client("m", "t"), "error -32603"},
		{"a session", legacyMeta("l", ""), "error -32603"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(nil)
			c := connected(t, w, asksEverything)
			c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
			untilTold(t, w, c, toolCall(client("m", "s")), newRooted(rootsA))
			for _, meta := range []mcp.Metadata{tt.another, client("m", "s")} {
				caller := newRooted(rootsB)
				if _, err := c.Handle(t.Context(), toolCall(meta), caller); err != nil || caller.asked.Load() != 0 {
					t.Errorf("%v, asked %d times", err, caller.asked.Load())
				}
				c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
			}
			if got := w.all("reply 2"); !slices.Equal(got, []string{"reply 2 " + tt.want, "reply 2 " + tt.want}) {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestRootsSurviveTheirMessage, whose memory is used again.
func TestRootsSurviveTheirMessage(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
	caller, raw := newRooted(""), []byte(rootsA)
	caller.ask = func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult(raw), nil }
	untilTold(t, w, c, toolCall(modernMeta("m")), caller)
	clear(raw)
	c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
	if got := w.all("reply 2"); !slices.Equal(got, []string{"reply 2 " + rootsA}) {
		t.Errorf("answered %q", got)
	}
}

// TestAnotherClientComesWhileTheServerIsToldOfRoots: whose are meant cannot be told any
// more, and the first client's call waits no longer.
func TestAnotherClientComesWhileTheServerIsToldOfRoots_B041(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(nil)
		c := connected(t, w, asksEverything)
		c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		began := time.Now()
		first := handle(t, c, toolCall(modernMeta("m")), newRooted(rootsA))
		w.await(t, 1, mcp.NotificationRootsListChanged)
		if _, err := c.Handle(t.Context(), toolCall(modernMeta("n")), newRooted(rootsB)); err != nil {
			t.Error(err)
		}
		c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
		if got := w.all("reply 2"); !slices.Equal(got, []string{"reply 2 error -32603"}) {
			t.Errorf("answered %q", got)
		}
		if <-first.done; first.err != nil || time.Since(began) >= session.RootsWait {
			t.Errorf("%v after %v", first.err, time.Since(began))
		}
	})
}

// TestAnswersThatAreNoRoots are not kept, and hold no call.
func TestAnswersThatAreNoRoots(t *testing.T) {
	for _, answer := range []string{`{}`, `{"roots":null}`, `{"roots":{}}`, `{"roots":"file:///a"}`} {
		t.Run(answer, func(t *testing.T) {
			w := newWire(nil)
			c := connected(t, w, asksEverything)
			c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
			if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), newRooted(answer)); err != nil {
				t.Error(err)
			}
			c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
			if got := w.all("reply 2"); !slices.Equal(got, []string{"reply 2 error -32603"}) {
				t.Errorf("answered %q", got)
			}
			if got := w.all(mcp.NotificationRootsListChanged); len(got) != 0 {
				t.Errorf("told %q", got)
			}
		})
	}
}

// TestCallsThatComeTogether all wait until the server has the roots, which it is
// told of once, also while another call of the client is in flight.
func TestCallsThatComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(nil)
		prompts := make(chan *inflight.Call, 1)
		w.serve = func(call *inflight.Call, method, _ string) {
			if method == mcp.MethodGetPrompt {
				prompts <- call
				return
			}
			answer(call, "{}")
		}
		c := connected(t, w, asksEverything)
		earlier := newRooted(rootsB)
		prompt := handle(t, c, &mcp.Request{Method: mcp.MethodGetPrompt, Meta: modernMeta("m")}, earlier)
		synctest.Wait()
		refusing := newRooted("")
		earlier.ask, refusing.ask = refusing.ask, earlier.ask // it cannot be asked
		c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		w.await(t, 1, "reply 1 error")
		var calls sync.WaitGroup
		call := func() {
			if _, err := c.Handle(t.Context(), toolCall(modernMeta("m")), newRooted(rootsA)); err != nil {
				t.Error(err)
			}
		}
		for range 5 {
			calls.Go(call)
		}
		synctest.Wait()
		for range 2 {
			calls.Go(call) // while the server is being told
		}
		synctest.Wait()
		if got := w.all(mcp.MethodCallTool); len(got) != 0 {
			t.Errorf("sent %q", got)
		}
		c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
		c.Asked(t.Context(), ask(t, "3", mcp.MethodListRoots), nil) // some ask twice
		calls.Wait()
		if got := w.all("reply"); !slices.Equal(got[1:], []string{"reply 2 " + rootsA, "reply 3 " + rootsA}) {
			t.Errorf("answered %q", got)
		}
		if got := w.all(mcp.NotificationRootsListChanged); len(got) != 1 {
			t.Errorf("%d changes were told", len(got))
		}
		answer(<-prompts, "{}")
		<-prompt.done
		// And later it can be told again.
		time.Sleep(session.RootsLife)
		untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsB))
	})
}

// TestRootsOutliveTheCallThatIsAsked: a call that ends takes no question for the
// roots with it.
func TestRootsOutliveTheCallThatIsAsked(t *testing.T) {
	for _, known := range []bool{false, true} {
		w, started := held()
		c := connected(t, w, asksEverything)
		if known {
			c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
			go func() { answer(<-started, "{}") }()
			untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsA))
		}
		asking := make(chan struct{})
		caller := newListener()
		caller.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			close(asking)
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		}
		r := handle(t, c, toolCall(modernMeta("m")), caller)
		call := receive(t, "the call", started)
		c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
		<-asking
		answer(call, "{}")
		<-r.done
		want := "reply 2 error -32603"
		if known {
			want = "reply 2 " + rootsA
		}
		if got := w.await(t, 1, "reply 2"); got[0] != want {
			t.Errorf("answered %q", got)
		}
		if known {
			continue
		}
		go func() { answer(<-started, "{}") }()
		untilTold(t, w, c, toolCall(modernMeta("m")), newRooted(rootsA)) // the next call is asked
	}
}

// TestRootsOfLegacyClientsAreNotKept: they are asked each time, and when they have
// gone nobody is.
func TestRootsOfLegacyClientsAreNotKept(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	for _, want := range []string{rootsA, rootsB} {
		l, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
		l.ask = newRooted(want).ask
		c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
		w.await(t, 1, "reply 1 "+want)
		r.stop()
	}
	c.Asked(t.Context(), ask(t, "2", mcp.MethodListRoots), nil)
	if got := w.all("reply 2"); !slices.Equal(got, []string{"reply 2 error -32603"}) {
		t.Errorf("answered %q", got)
	}
}

// TestUnattributedQuestionsAreCounted, refused whatever they ask, and not guessed.
func TestUnattributedQuestionsAreCounted_B151(t *testing.T) {
	for _, method := range []string{mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots, "vendor/x"} {
		t.Run(method, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			var calls []*running
			for _, client := range []string{"a", "b"} {
				l := newListener()
				l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
					t.Errorf("%s was asked", client)
					return mcp.Result{}, &jsonrpc.Error{}
				}
				calls = append(calls, handle(t, c, toolCall(legacyMeta(client, "")), l))
				receive(t, "the call", started)
			}
			c.Asked(t.Context(), ask(t, "7", method), nil)
			if got := w.all("reply"); !slices.Equal(got, []string{"reply 7 error -32603"}) || c.Unattributed() != 1 {
				t.Errorf("answered %q, %d counted", got, c.Unattributed())
			}
			for _, r := range calls {
				r.stop()
			}
		})
	}
}

// TestSeveralSessionsThatListen: a question outside calls may be meant for either.
func TestSeveralSessionsThatListen_B151(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	for _, client := range []string{"a", "b"} {
		listen(t, c, legacyMeta(client, ""), mcp.Filter{Session: true})
	}
	c.Asked(t.Context(), ask(t, "7", mcp.MethodElicit), nil)
	if got := w.all("reply"); !slices.Equal(got, []string{"reply 7 error -32603"}) || c.Unattributed() != 1 {
		t.Errorf("answered %q, %d counted", got, c.Unattributed())
	}
}
