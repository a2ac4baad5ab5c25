package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func start(t *testing.T, calls *inflight.Calls, req *mcp.Request) *inflight.Call {
	t.Helper()
	call, err := calls.Start(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(call.End)
	return call
}

func tool(session string) *mcp.Request {
	return &mcp.Request{Method: mcp.MethodCallTool, Meta: mcp.Metadata{Session: session}}
}

func message(t *testing.T, text string) *jsonrpc.Message {
	t.Helper()
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestIDsAreSmallAndUnused_B019(t *testing.T) {
	var calls inflight.Calls
	seen := make(map[int64]bool)
	for range 10_000 {
		call, err := calls.Start(tool("a"))
		if err != nil {
			t.Fatal(err)
		}
		if call.ID < 0 || call.ID >= 1<<31 || seen[call.ID] {
			t.Fatalf("id %d", call.ID)
		}
		seen[call.ID] = true
		call.End()
	}
	if n := calls.Len(); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

func TestRespond(t *testing.T) {
	for _, tt := range []struct {
		name, reply      string
		inFlight         int
		answers, loosely bool
	}{
		{"exact", `{"jsonrpc":"2.0","id":1,"result":{}}`, 2, true, false},
		{"B020 D1.8d as a string", `{"jsonrpc":"2.0","id":"1","result":{}}`, 2, true, true},
		{"B020 as 1.0", `{"jsonrpc":"2.0","id":1.0,"result":{}}`, 2, true, true},
		{"B137 S1.36 unknown", `{"jsonrpc":"2.0","id":999,"result":{}}`, 2, false, false},
		{"B023 fraction", `{"jsonrpc":"2.0","id":1.5,"result":{}}`, 2, false, false},
		{"B023 beyond float64", `{"jsonrpc":"2.0","id":1e400,"result":{}}`, 2, false, false},
		{"another string", `{"jsonrpc":"2.0","id":"x","result":{}}`, 2, false, false},
		{"D1.8b B110 without id, one in flight", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, 1, true, true},
		{"D1.8b without id, two in flight", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, 2, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls inflight.Calls
			start(t, &calls, &mcp.Request{Method: mcp.MethodListen}).Finish(nil) // never counts
			first := start(t, &calls, tool("a"))
			for range tt.inFlight - 1 {
				start(t, &calls, tool("a"))
			}
			reply := strings.Replace(tt.reply, `"id":1`, fmt.Sprintf(`"id":%d`, first.ID), 1)
			reply = strings.Replace(reply, `"id":"1"`, fmt.Sprintf(`"id":"%d"`, first.ID), 1)
			call, loosely := calls.Respond(message(t, reply))
			if (call == first) != tt.answers || call != nil && call != first || call != nil && loosely != tt.loosely {
				t.Errorf("call %v, loosely %v", call, loosely)
			}
		})
	}
}

func TestFailEndsCalls(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, tool("a"))
	listen := start(t, &calls, &mcp.Request{Method: mcp.MethodListen})
	some := errors.New("some")
	calls.Fail(some, false)
	if _, err := call.Wait(t.Context(), mcp.NoCaller{}, 0); !errors.Is(err, some) {
		t.Errorf("err %v", err)
	}
	calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: some}, true)
	_, err := listen.Wait(t.Context(), mcp.NoCaller{}, 0)
	if mcp.OutcomeOf(err) != mcp.MaybeExecuted {
		t.Errorf("listen: %v", err)
	}
	_, err = calls.Start(tool("a"))
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Outcome != mcp.NotSent || e.Method != mcp.MethodCallTool {
		t.Errorf("a call after the end: %v", err)
	}
}

// always lets a message belong to any request.
func always(*mcp.Request) bool { return true }

// TestOwner_B151 is about what names no call (docs/eras.md, "Which questions, to whom").
func TestOwner_B151(t *testing.T) {
	listen := &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "b"}}
	list := func(session string) *mcp.Request {
		return &mcp.Request{Method: mcp.MethodListTools, Meta: mcp.Metadata{Session: session}}
	}
	carries := func(req *mcp.Request) bool { return mcp.MayNeedInput(req.Method) }
	for _, tt := range []struct {
		name    string
		reqs    []*mcp.Request
		own     *mcp.Request
		may     func(*mcp.Request) bool
		want    int // index, -1 for none
		several bool
	}{
		{"nothing in flight", nil, nil, always, -1, false},
		{"the newest of one client", []*mcp.Request{tool("a"), tool("a")}, nil, always, 1, false},
		{"the newest that can carry it", []*mcp.Request{tool("a"), tool("a"), list("a")}, nil, carries, 1, false},
		{"none that can carry it", []*mcp.Request{list("a")}, nil, carries, -1, false},
		{"two clients", []*mcp.Request{tool("a"), tool("b")}, nil, always, -1, true},
		{"two clients, one of which could", []*mcp.Request{tool("a"), list("b")}, nil, carries, -1, true},
		{"a listen call of another client", []*mcp.Request{tool("a"), listen}, nil, always, 0, false},
		{"a request of our own", []*mcp.Request{tool("a")}, &mcp.Request{Method: mcp.MethodSetLevel}, always, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls inflight.Calls
			var started []*inflight.Call
			for _, req := range tt.reqs {
				started = append(started, start(t, &calls, req))
			}
			if tt.own != nil {
				call, err := calls.StartOwn(tt.own)
				if err != nil {
					t.Fatal(err)
				}
				defer call.End()
			}
			owner, several := calls.Owner(tt.may)
			if several != tt.several || (owner == nil) != (tt.want < 0) || owner != nil && owner != started[tt.want] {
				t.Errorf("owner %v, several %v", owner, several)
			}
		})
	}
}

// TestOwnerIsNotWaiting: a call whose client has been asked may wait for long.
func TestOwnerIsNotWaiting_B151(t *testing.T) {
	var calls inflight.Calls
	first, second := start(t, &calls, tool("a")), start(t, &calls, tool("a"))
	ask := func(context.Context, mcp.Caller) {}
	second.Ask(1, ask)
	if owner, _ := calls.Owner(always); owner != first {
		t.Error("the call that waits owns the message")
	}
	first.Ask(1, ask)
	if owner, _ := calls.Owner(always); owner != second {
		t.Error("of two that wait the newest does not own it")
	}
}

// TestOwnerHasNoResponse: between its response and its end a call takes nothing
// any more, and nobody else is guessed at.
func TestOwnerHasNoResponse_B151(t *testing.T) {
	var calls inflight.Calls
	first, second := start(t, &calls, tool("a")), start(t, &calls, tool("a"))
	log := &mcp.Notification{Method: mcp.NotificationMessage}
	if !first.Notify(log) {
		t.Error("a call in flight did not take a message")
	}
	first.Finish(nil)
	if first.Notify(log) {
		t.Error("a call that has its response took a message")
	}
	if owner, several := calls.Owner(always); owner != second || several {
		t.Errorf("owner %v, several %v", owner, several)
	}
	second.Finish(nil)
	if owner, several := calls.Owner(always); owner != nil || several {
		t.Errorf("owner %v, several %v", owner, several)
	}
	start(t, &calls, tool("b"))
	if owner, several := calls.Owner(always); owner != nil || !several {
		t.Errorf("owner %v, several %v beside another client's call", owner, several)
	}
}

func TestListeningTellsSeveralClientsApart(t *testing.T) {
	var calls inflight.Calls
	all := func(*inflight.Call) bool { return true }
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "a"}})
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "a"}})
	start(t, &calls, tool("c"))
	if found, several := calls.Listening(all); len(found) != 2 || several {
		t.Errorf("%d found, several %v", len(found), several)
	}
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "b"}})
	if found, several := calls.Listening(all); len(found) != 3 || !several {
		t.Errorf("%d found, several %v", len(found), several)
	}
}

// TestTokenSurvivesItsMessage: the memory of a request is used again when it has
// ended, and whoever reads from the peer may look at the token just then.
func TestTokenSurvivesItsMessage(t *testing.T) {
	raw := []byte(`"tok"`)
	token, _ := jsonrpc.RawID(raw)
	req := tool("a")
	req.Meta.ProgressToken = token
	var calls inflight.Calls
	call := start(t, &calls, req)
	copy(raw, `"XXX"`)
	calls.Progress(&mcp.Notification{
		Method: mcp.NotificationProgress,
		Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"progressToken":%d,"progress":1}`, call.ID)),
	})
	call.Finish(nil)
	var got recorder
	if _, err := call.Wait(t.Context(), &got, 0); err != nil {
		t.Fatal(err)
	}
	if want := `{"progressToken":"tok","progress":1}`; len(got.all()) != 1 || got.all()[0] != want {
		t.Errorf("got %q", got.all())
	}
}

// TestProgressOfACallThatIsOver is nobody's, which whoever knows more than the call is told.
func TestProgressOfACallThatIsOver(t *testing.T) {
	var calls inflight.Calls
	req := tool("a")
	req.Meta.ProgressToken = jsonrpc.StringID("p")
	call := start(t, &calls, req)
	silent := start(t, &calls, tool("a"))
	progress := func(call *inflight.Call) bool {
		return calls.Progress(&mcp.Notification{
			Method: mcp.NotificationProgress,
			Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"progressToken":%d,"progress":1}`, call.ID)),
		})
	}
	if !progress(call) || !progress(silent) {
		t.Error("progress of a call in flight is refused")
	}
	call.Finish(nil)
	if progress(call) {
		t.Error("progress of a call that has its response is taken")
	}
	call.End()
	if progress(call) {
		t.Error("progress of a call that has ended is taken")
	}
}

func TestClientsWithCallsInFlight(t *testing.T) {
	var calls inflight.Calls
	start(t, &calls, tool("a"))
	start(t, &calls, &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "b"}})
	start(t, &calls, tool("c")).End()
	if _, err := calls.StartOwn(tool("d")); err != nil {
		t.Fatal(err)
	}
	if got := calls.Clients(); len(got) != 2 || !got["a"] || !got["b"] {
		t.Errorf("got %v", got)
	}
}

// TestWhetherSomethingHasComeForACall: before its response, which nobody waits to see
// delivered.
func TestWhetherSomethingHasComeForACall_P2(t *testing.T) {
	notify := func(call *inflight.Call) { call.Notify(&mcp.Notification{Method: mcp.NotificationMessage}) }
	respond := func(call *inflight.Call) { call.Reply(&jsonrpc.Message{}) }
	ask := func(call *inflight.Call) { call.Ask(1, func(context.Context, mcp.Caller) {}) }
	for name, tt := range map[string]struct {
		come []func(*inflight.Call)
		want bool
	}{
		"nothing":                       {nil, false},
		"its response":                  {[]func(*inflight.Call){respond}, false},
		"a notification":                {[]func(*inflight.Call){notify, respond}, true},
		"a question":                    {[]func(*inflight.Call){ask, respond}, true},
		"a notification after it ended": {[]func(*inflight.Call){respond, notify}, false},
		"a question after it ended":     {[]func(*inflight.Call){respond, ask}, false},
	} {
		var calls inflight.Calls
		call := start(t, &calls, tool("a"))
		for _, comes := range tt.come {
			comes(call)
		}
		if got := call.Heard(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestListenCallsOfARetiredConnection end, and none begins; other calls go on.
func TestListenCallsOfARetiredConnection(t *testing.T) {
	listen := &mcp.Request{Method: mcp.MethodListen, Meta: mcp.Metadata{Session: "a"}}
	var calls inflight.Calls
	listening, calling := start(t, &calls, listen), start(t, &calls, tool("a"))
	first := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("retired")}
	calls.EndListening(first)
	calls.EndListening(errors.New("again"))
	if _, err := listening.Wait(t.Context(), mcp.NoCaller{}, 0); err != error(first) {
		t.Errorf("the listen call ended with %v", err)
	}
	if calling.Over() {
		t.Error("another call has ended")
	}
	if _, err := calls.Start(listen); !errors.Is(err, first.Err) || mcp.OutcomeOf(err) != mcp.NotSent {
		t.Errorf("a later listen call ends with %v", err)
	}
	start(t, &calls, tool("a"))
}

// TestEveryCallEndsOnce_P1 has a peer answer, notify, ask and fall silent at
// random while callers give up at random.
func TestEveryCallEndsOnce_P1(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var calls inflight.Calls
	var ended, questions, answers atomic.Int64
	var wg sync.WaitGroup
	const callers, rounds = 16, 100
	peer, stop := context.WithCancel(t.Context())
	var peers sync.WaitGroup
	for i := range 2 {
		peers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for peer.Err() == nil {
				id := jsonrpc.IntID(rnd.Int64N(callers*rounds) + 1)
				switch rnd.IntN(4) {
				case 0, 1:
					calls.Respond(&jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Body: jsonrpc.Trusted([]byte("{}"))})
				case 2:
					if call, _ := calls.Find(id); call != nil {
						call.Notify(&mcp.Notification{Method: mcp.NotificationProgress})
					}
				case 3:
					if call, _ := calls.Find(id); call != nil && call.Ask(1, func(context.Context, mcp.Caller) { answers.Add(1) }) {
						questions.Add(1)
					}
				}
			}
		})
	}
	for i := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for range rounds {
				call, err := calls.Start(tool("a"))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rnd.IntN(2) == 0 {
					go cancel()
				}
				m, err := call.Wait(ctx, mcp.NoCaller{}, 0)
				if (m == nil) == (err == nil) {
					t.Errorf("m %v, err %v", m, err)
				}
				ended.Add(1)
				call.End()
				cancel()
			}
		})
	}
	wg.Wait()
	stop()
	peers.Wait()
	if ended.Load() != callers*rounds || calls.Len() != 0 {
		t.Errorf("%d calls ended, %d are left", ended.Load(), calls.Len())
	}
	if q, a := questions.Load(), answers.Load(); q != a {
		t.Errorf("%d questions were taken, %d answered", q, a)
	}
}

// TestOwnerIsNotOver: a call that has its response, or that was given up, may be in
// flight a moment longer on a busy machine. What comes then is not its.
func TestOwnerIsNotOver_B151(t *testing.T) {
	for name, end := range map[string]func(*inflight.Call){
		"answered": func(call *inflight.Call) { call.Reply(&jsonrpc.Message{}) },
		"failed":   func(call *inflight.Call) { call.Finish(errors.New("lost")) },
		"given up": func(call *inflight.Call) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := call.Wait(ctx, mcp.NoCaller{}, 0); err == nil {
				t.Error("it has a response")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls inflight.Calls
			over, second := start(t, &calls, tool("a")), start(t, &calls, tool("a"))
			end(over)
			if !over.Over() || second.Over() {
				t.Errorf("over: %t, %t", over.Over(), second.Over())
			}
			if owner, several := calls.Owner(always); owner != second || several {
				t.Errorf("the owner is %v, several %t", owner, several)
			}
			if over.Ask(1, func(context.Context, mcp.Caller) {}) {
				t.Error("a call that is over took a question")
			}
		})
	}
}
