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

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// held returns a wire whose tool calls stay open and are sent to the channel.
func held() (*wire, chan *inflight.Call) {
	started := make(chan *inflight.Call, 100)
	return newWire(func(call *inflight.Call, method, _ string) {
		if method == mcp.MethodCallTool || method == mcp.MethodListTools {
			started <- call
			return
		}
		answer(call, "{}")
	}), started
}

func ask(t *testing.T, id, method string) *jsonrpc.Message {
	t.Helper()
	return scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":{}}`, id, method))
}

// TestQuestionsNobodyCanAnswer_B044_D14: they are answered at once.
func TestQuestionsNobodyCanAnswer_B044_D14(t *testing.T) {
	for _, tt := range []struct{ capabilities, method, want string }{
		{"{}", "ping", `{}`},
		{asksEverything, "ping", `{}`},
		{"{}", mcp.MethodListRoots, `error -32601`},
		{"{}", mcp.MethodCreateMessage, `error -32601`},
		{"{}", mcp.MethodElicit, `error -32601`},
		{"{}", "vendor/x", `error -32601`},
		{asksEverything, "vendor/x", `error -32601`},
		{asksEverything, mcp.MethodListRoots, `error -32603`},
		{asksEverything, mcp.MethodCreateMessage, `error -32603`},
		{asksEverything, mcp.MethodElicit, `{"action":"cancel"}`},
	} {
		t.Run(tt.method+" "+tt.capabilities, func(t *testing.T) {
			w := newWire(nil)
			c := connected(t, w, tt.capabilities)
			c.Asked(t.Context(), ask(t, `"s1"`, tt.method), nil)
			if got := w.all("reply"); !slices.Equal(got, []string{`reply "s1" ` + tt.want}) {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestUndeclaredModeIsToldTheServer_SEC108: the reason why a client is not asked
// is the answer, rather than that nobody is there.
func TestUndeclaredModeIsToldTheServer_SEC108(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	l := newListener()
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.Result{}, fmt.Errorf("%w: %w", mcp.ErrCannotAsk, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "mode"))
	}
	defer handle(t, c, toolCall(legacyMeta("a", "")), l).stop()
	receive(t, "the call", started)
	c.Asked(t.Context(), ask(t, `"s1"`, mcp.MethodElicit), nil)
	if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{`reply "s1" error -32602`}) {
		t.Errorf("answered %q", got)
	}
}

// TestQuestionsReachTheirClient_B151, or nobody (docs/eras.md, "Which questions, to whom").
func TestQuestionsReachTheirClient_B151(t *testing.T) {
	answers := func(client string) func(context.Context, *mcp.Request) (mcp.Result, error) {
		return func(context.Context, *mcp.Request) (mcp.Result, error) {
			return mcp.RawResult([]byte(`{"from":"` + client + `"}`)), nil
		}
	}
	modern := mcp.Metadata{Revision: mcp.Revision20260728, Session: "m"}
	list := func(meta mcp.Metadata) *mcp.Request { return &mcp.Request{Method: mcp.MethodListTools, Meta: meta} }
	for _, tt := range []struct {
		name    string
		calls   []*mcp.Request
		listens []string // clients
		want    string
	}{
		{"its call", []*mcp.Request{toolCall(legacyMeta("a", ""))}, nil, `{"from":"a"}`},
		{"two calls of one client", []*mcp.Request{toolCall(legacyMeta("a", "")), toolCall(legacyMeta("a", ""))}, nil, `{"from":"a"}`},
		{"two clients: nobody guesses", []*mcp.Request{toolCall(legacyMeta("a", "")), toolCall(legacyMeta("b", ""))}, nil, `error -32603`},
		{"two clients that listen as well", []*mcp.Request{toolCall(legacyMeta("a", "")), toolCall(legacyMeta("b", ""))}, []string{"a"}, `error -32603`},
		{"a legacy client under any method", []*mcp.Request{list(legacyMeta("a", ""))}, nil, `{"from":"a"}`},
		{"a modern client under tools/call", []*mcp.Request{toolCall(modern)}, nil, `{"from":"m"}`},
		{"a modern client under a list", []*mcp.Request{list(modern)}, nil, `error -32603`},
		{"a session that listens", nil, []string{"a"}, `{"from":"a"}`},
		{"two sessions that listen", nil, []string{"a", "b"}, `error -32603`},
		{"a call beside another one's session", []*mcp.Request{toolCall(legacyMeta("a", ""))}, []string{"b"}, `{"from":"a"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			var inFlight []*running
			for _, req := range tt.calls {
				l := newListener()
				l.ask = answers(req.Meta.Session)
				inFlight = append(inFlight, handle(t, c, req, l))
				receive(t, "the call", started)
			}
			for _, client := range tt.listens {
				l, r := listen(t, c, legacyMeta(client, ""), mcp.Filter{Session: true})
				l.ask = answers(client)
				inFlight = append(inFlight, r)
			}
			c.Asked(t.Context(), ask(t, "7", mcp.MethodCreateMessage), nil)
			if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 7 " + tt.want}) {
				t.Errorf("answered %q", got)
			}
			for _, r := range inFlight {
				r.stop()
			}
		})
	}
}

// TestRootsAreAskedOfTheSession: a server asks for them on its own account, and
// the call in flight may be over before the answer is there.
func TestRootsAreAskedOfTheSession(t *testing.T) {
	for _, sessions := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			asked := func(who string) *listener {
				l := newListener()
				l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
					return mcp.RawResult([]byte(`{"from":"` + who + `"}`)), nil
				}
				return l
			}
			r := handle(t, c, toolCall(legacyMeta("0", "")), asked("call"))
			receive(t, "the call", started)
			for i := range sessions {
				l, _ := listen(t, c, legacyMeta(fmt.Sprint(i), ""), mcp.Filter{Session: true})
				l.ask = asked("session").ask
			}
			c.Asked(t.Context(), ask(t, "7", mcp.MethodListRoots), nil)
			want := []string{"call", "session", "call"}[sessions]
			if got := w.await(t, 1, "reply"); got[0] != `reply 7 {"from":"`+want+`"}` {
				t.Errorf("answered %q", got)
			}
			r.stop()
		})
	}
}

// TestRootsOfWhomCannotBeTold_B151: the session that listens is one client's, and what
// the server asks may be about the call of another.
func TestRootsOfWhomCannotBeTold_B151(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls []string // clients
		leave bool
		want  string
	}{
		{"its own call", []string{"a", "a"}, false, `{"from":"a"}`},
		{"another client's call", []string{"b"}, false, "error -32603"},
		{"calls of two", []string{"a", "b"}, false, "error -32603"},
		{"a call that another has left", []string{"b"}, true, "error -32603"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			session, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
			defer r.stop()
			session.ask = answering("a").ask
			for _, client := range tt.calls {
				call := handle(t, c, toolCall(legacyMeta(client, "")), answering("a call"))
				receive(t, "the call", started)
				if tt.leave {
					call.stop()
				} else {
					defer call.stop()
				}
			}
			c.Asked(t.Context(), ask(t, "7", mcp.MethodListRoots), nil)
			if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 7 " + tt.want}) {
				t.Errorf("answered %q", got)
			}
			if refused := strings.HasPrefix(tt.want, "error"); (c.Unattributed() == 1) != refused {
				t.Errorf("%d were refused", c.Unattributed())
			}
		})
	}
}

// TestRootsThatWereRefusedAreOffered_B041: to the server, once somebody can be asked.
func TestRootsThatWereRefusedAreOffered_B041(t *testing.T) {
	for method, offered := range map[string]int{mcp.MethodListRoots: 1, mcp.MethodElicit: 0} {
		w, started := held()
		c := connected(t, w, asksEverything)
		for _, client := range []string{"a", "b"} {
			defer handle(t, c, toolCall(legacyMeta(client, "")), answering(client)).stop()
			receive(t, "the call", started)
		}
		c.Asked(t.Context(), ask(t, "7", method), nil)
		w.await(t, 1, "reply 7 error -32603")
		_, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
		r.stop()
		if got := w.all(mcp.NotificationRootsListChanged); len(got) != offered {
			t.Errorf("%s: told %q", method, got)
		}
	}
}

// TestQuestionAfterTheAnswer_B151: on the stream of a call that has its response it is
// nobody's, whoever else could be asked.
func TestQuestionAfterTheAnswer_B151(t *testing.T) {
	for method, want := range map[string]string{
		mcp.MethodElicit: `{"action":"cancel"}`, mcp.MethodCreateMessage: "error -32603", mcp.MethodListRoots: "error -32603", "vendor/x": "error -32601",
	} {
		w, started := held()
		c := connected(t, w, asksEverything)
		other := handle(t, c, toolCall(legacyMeta("a", "")), answering("another call"))
		receive(t, "another call", started)
		r := handle(t, c, toolCall(legacyMeta("a", "")), answering("the call"))
		call := receive(t, "the call", started)
		answer(call, "{}")
		<-r.done
		c.Asked(t.Context(), ask(t, "1", method), call)
		if got := w.all("reply"); !slices.Equal(got, []string{"reply 1 " + want}) {
			t.Errorf("%s: answered %q", method, got)
		}
		other.stop()
	}
}

// TestQuestionsThatShareAnID: a server must not use one twice at a time. Each question is
// answered, and a cancellation means the last one.
func TestQuestionsThatShareAnID(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	asking, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	l := newListener()
	l.ask = func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		asking <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return mcp.Result{}, ctx.Err()
	}
	r := handle(t, c, toolCall(legacyMeta("a", "")), l)
	call := receive(t, "the call", started)
	for range 2 {
		c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
		receive(t, "a question", asking)
	}
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), nil)
	receive(t, "the end of one", ended)
	answer(call, "{}")
	<-r.done
	if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 error -32603"}) {
		t.Errorf("answered %q", got)
	}
}

func TestAnswersPassAsTheyCame(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result string
		err    error
		want   string
	}{
		{"result", `{"action":"accept","content":{"n":9007199254740993}}`, nil, `{"action":"accept","content":{"n":9007199254740993}}`},
		{"error", "", &jsonrpc.Error{Code: 12345, Message: "no"}, "error 12345"},
		{"cannot be asked after all", "", mcp.ErrCannotAsk, `{"action":"cancel"}`},
		{"our own failure", "", errors.New("secret"), "error -32603"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			l := newListener()
			l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
				return mcp.RawResult([]byte(tt.result)), tt.err
			}
			r := handle(t, c, toolCall(legacyMeta("a", "")), l)
			receive(t, "the call", started)
			c.Asked(t.Context(), ask(t, "1", mcp.MethodElicit), nil)
			if got := w.await(t, 1, "reply"); got[0] != "reply 1 "+tt.want {
				t.Errorf("answered %q", got)
			}
			r.stop()
		})
	}
}

func TestQuestionsThatOutliveTheirCallAreAnswered(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	l := newListener()
	asking := make(chan struct{})
	l.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		close(asking)
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	r := handle(t, c, toolCall(legacyMeta("a", "")), l)
	call := receive(t, "the call", started)
	c.Asked(t.Context(), ask(t, "1", mcp.MethodElicit), nil)
	<-asking
	answer(call, "{}")
	<-r.done
	if got := w.all("reply"); !slices.Equal(got, []string{"reply 1 error -32603"}) {
		t.Errorf("answered %q", got)
	}
}

// TestQuestionsOfLongMethodsAreBounded: a method counts as the params do.
func TestQuestionsOfLongMethodsAreBounded(t *testing.T) {
	w, started := held()
	c := connected(t, w, asksEverything)
	l := newListener()
	l.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}
	r := handle(t, c, toolCall(legacyMeta("a", "")), l)
	receive(t, "the call", started)
	for _, id := range []string{"1", "2", "3"} {
		c.Asked(t.Context(), ask(t, id, "vendor/"+strings.Repeat("x", inflight.MaxQueuedBytes*2/5)), nil)
	}
	if got := w.all("reply"); !slices.Equal(got, []string{"reply 3 error -32601"}) {
		t.Errorf("answered %q", got)
	}
	r.stop()
}

func TestWithdrawnQuestionIsNotAnswered(t *testing.T) {
	withdrawal := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`
	for _, when := range []string{"before it was put", "while it is open", "when it has just come"} {
		t.Run(when, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			l := newListener()
			asking := make(chan struct{}, 1)
			l.ask = func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
				asking <- struct{}{}
				<-ctx.Done()
				return mcp.Result{}, ctx.Err()
			}
			req := toolCall(legacyMeta("a", ""))
			switch when {
			case "when it has just come":
				put := c.TakeUp(ask(t, `"q"`, mcp.MethodElicit))
				c.Notified(scan(t, withdrawal), nil)
				put(t.Context(), nil)
			case "while it is open":
				r := handle(t, c, req, l)
				receive(t, "the call", started)
				c.Asked(t.Context(), ask(t, `"q"`, mcp.MethodElicit), nil)
				<-asking
				c.Notified(scan(t, withdrawal), nil)
				r.stop()
			default:
				// Nobody waits for the call yet: the question stays in its inbox.
				call, err := w.calls.Start(req)
				if err != nil {
					t.Fatal(err)
				}
				c.Asked(t.Context(), ask(t, `"q"`, mcp.MethodElicit), nil)
				c.Notified(scan(t, withdrawal), nil)
				answer(call, "{}")
				if _, err := call.Wait(t.Context(), l, 0); err != nil {
					t.Fatal(err)
				}
				call.End()
				if len(asking) != 0 {
					t.Error("it was put")
				}
			}
			if got := w.all("reply"); len(got) != 0 {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestRootsAreOfferedToWhoListensMeanwhile: a client listens anew while it turns
// out that it could not be asked before.
func TestRootsAreOfferedToWhoListensMeanwhile_B041(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	asked, refused := make(chan struct{}), make(chan struct{})
	first := newListener()
	first.ask = func(context.Context, *mcp.Request) (mcp.Result, error) {
		close(asked)
		<-refused
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	filter := mcp.Filter{Session: true}
	handle(t, c, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params(), Meta: legacyMeta("a", "")}, first)
	receive(t, "the acknowledgement", first.acked)
	c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
	receive(t, "the question", asked)
	_, r := listen(t, c, legacyMeta("a", ""), filter)
	close(refused)
	w.await(t, 1, mcp.NotificationRootsListChanged)
	r.stop()
	if got := w.all(mcp.NotificationRootsListChanged); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
}

// TestRootsAreNotOfferedForNothing_B041: nobody has begun to listen since the server asked,
// and it would ask again for ever.
func TestRootsAreNotOfferedForNothing_B041(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	l, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
	l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.Result{}, mcp.ErrCannotAsk }
	c.Asked(t.Context(), ask(t, "1", mcp.MethodListRoots), nil)
	if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{"reply 1 error -32603"}) {
		t.Errorf("answered %q", got)
	}
	r.stop()
	if got := w.all(mcp.NotificationRootsListChanged); len(got) > 0 {
		t.Errorf("sent %q", got)
	}
}

// TestRootsAreOfferedAgain_B041: many servers ask for the roots right after the
// handshake, when the client cannot be asked yet, and never again unless told.
func TestRootsAreOfferedAgain_B041(t *testing.T) {
	for _, tt := range []struct {
		capabilities, method string
		offered              int
	}{
		{asksEverything, mcp.MethodListRoots, 1},
		{asksEverything, mcp.MethodElicit, 0},
		{"{}", mcp.MethodListRoots, 0},
	} {
		t.Run(tt.method+" "+tt.capabilities, func(t *testing.T) {
			w := newWire(nil)
			c := connected(t, w, tt.capabilities)
			c.Asked(t.Context(), ask(t, "1", tt.method), nil)
			for range 2 {
				_, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
				r.stop()
			}
			if got := w.all(mcp.NotificationRootsListChanged); len(got) != tt.offered {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// A slowWire is a server that does not read for a time.
type slowWire struct {
	*wire
	wait time.Duration
}

func (w slowWire) Reply(ctx context.Context, id jsonrpc.ID, result mcp.Result, err error) error {
	select {
	case <-time.After(w.wait):
		return w.wire.Reply(ctx, id, result, err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestAnswersWaitForSlowServers: an answer that is lost leaves the server waiting,
// and one that waits for ever the reader, or the call.
func TestAnswersWaitForSlowServers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		method  string
		slow    time.Duration
		took    time.Duration
		arrives bool
	}{
		{"the reader's answer", mcp.MethodPing, 500 * time.Millisecond, 500 * time.Millisecond, true},
		{"the reader's answer, too late", mcp.MethodPing, time.Hour, time.Second, false},
		{"the user's answer", mcp.MethodElicit, 4 * time.Second, 4 * time.Second, true},
		{"the user's answer, too late", mcp.MethodElicit, time.Hour, 5 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, started := held()
				c := session.NewClient(slowWire{w, tt.slow}, &w.calls, session.ClientOptions{Capabilities: []byte(asksEverything)})
				l := newListener()
				l.ask = func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult([]byte(`{}`)), nil }
				r := handle(t, c, toolCall(legacyMeta("a", "")), l)
				<-started
				began := time.Now()
				c.Asked(t.Context(), ask(t, "7", tt.method), nil)
				if tt.method == mcp.MethodElicit && time.Since(began) > 0 {
					t.Errorf("the reader was held up for %v", time.Since(began))
				}
				synctest.Wait()
				r.stop()
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if got := w.all("reply"); (len(got) == 1) != tt.arrives {
					t.Errorf("answered %q", got)
				}
			})
		})
	}
}
