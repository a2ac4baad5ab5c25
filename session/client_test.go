package session_test

import (
	"context"
	"errors"
	"fmt"
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

func TestHandshake_B040(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, asksEverything)
	want := []string{
		`initialize {"protocolVersion":"2025-11-25","capabilities":` + asksEverything + `,"clientInfo":{"name":"mcpsplice","version":"0"}}`,
		`notifications/initialized `,
	}
	if got := w.all(""); !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
	if r := c.Revision(); r != mcp.Revision20250618 {
		t.Errorf("revision %s", r)
	}
	result, err := c.Handle(t.Context(), &mcp.Request{Method: mcp.MethodDiscover}, mcp.NoCaller{})
	if err != nil || !strings.Contains(string(result.Raw()), `"supportedVersions":["2025-06-18"]`) {
		t.Errorf("discover: %s, %v", result.Raw(), err)
	}
	if got := w.all(""); len(got) != 2 {
		t.Errorf("discover went to the server: %q", got)
	}
}

// TestErrorsNameFewRevisions: a server may list as many and as long ones as it likes.
func TestErrorsNameFewRevisions(t *testing.T) {
	for _, tt := range []struct {
		supported []mcp.Revision
		want      string
	}{
		{nil, "[]"},
		{[]mcp.Revision{"2031-01-01", "2032-01-01"}, "[2031-01-01 2032-01-01]"},
		{slices.Repeat([]mcp.Revision{"a"}, 10), "[a a a a a a a a a a]"},
		{slices.Repeat([]mcp.Revision{"a"}, 1<<20), "[a a a a a a a a a a] and 1048566 more"},
		{[]mcp.Revision{mcp.Revision(strings.Repeat("a", 1<<20))}, "[" + strings.Repeat("a", 40) + "]"},
	} {
		err := session.NoCommonRevision(tt.supported)
		if got, _ := strings.CutPrefix(err.Error(), "no common protocol revision: the server supports "); got != tt.want || !errors.Is(err, session.ErrRevision) {
			t.Errorf("%d revisions: %.300v, want %s", len(tt.supported), err, tt.want)
		}
	}
}

func TestHandshakeWithUnknownRevision_B115(t *testing.T) {
	for _, version := range []string{`"1999-01-01"`, `"2026-07-28"`, `5`, `null`, `""`, ``} {
		t.Run(version, func(t *testing.T) {
			w := newWire(func(call *inflight.Call, _, _ string) {
				if version == "" {
					answer(call, `{"capabilities":{}}`)
					return
				}
				answer(call, `{"protocolVersion":`+version+`,"capabilities":{}}`)
			})
			c := session.NewClient(w, &w.calls, session.ClientOptions{})
			err := c.Initialize(t.Context())
			if !errors.Is(err, session.ErrRevision) || !strings.Contains(err.Error(), version) {
				t.Errorf("err %v", err)
			}
			if sent := w.all(mcp.NotificationInitialized); len(sent) != 0 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

func TestLogLevelIsRaisedAndNeverLowered(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, "{}")
	for _, level := range []mcp.Level{"", "warning", "error", "warning", "debug", "emergency", "debug"} {
		if _, err := c.Handle(t.Context(), toolCall(legacyMeta("a", level)), mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`logging/setLevel {"level":"warning"}`, `logging/setLevel {"level":"debug"}`}
	if got := w.all(mcp.MethodSetLevel); !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
}

func TestRefusedLogLevelIsNotAskedForAgain(t *testing.T) {
	w := newWire(func(call *inflight.Call, method, _ string) {
		if method == mcp.MethodSetLevel {
			refuse(call, jsonrpc.CodeMethodNotFound)
			return
		}
		answer(call, "{}")
	})
	c := connected(t, w, "{}")
	for range 3 {
		if _, err := c.Handle(t.Context(), toolCall(legacyMeta("a", "info")), mcp.NoCaller{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.all(mcp.MethodSetLevel); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
}

// TestSilentSetLevelHoldsNoCall_R18: a server that does not answer logging/setLevel
// delays a call by a bound, and no call past its own deadline.
func TestSilentSetLevelHoldsNoCall_R18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(func(call *inflight.Call, method, _ string) {
			if method != mcp.MethodSetLevel {
				answer(call, "{}")
			}
		})
		c := connected(t, w, "{}")
		began := time.Now()
		first := handle(t, c, toolCall(legacyMeta("a", "info")), mcp.NoCaller{})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// The second waits behind the first, but not longer than it may.
		_, err := c.Handle(ctx, toolCall(legacyMeta("a", "info")), mcp.NoCaller{})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) && err != nil || took != time.Second {
			t.Errorf("second: %v after %v", err, took)
		}
		<-first.done
		if took := time.Since(began); first.err != nil || took != session.LevelTimeout {
			t.Errorf("first: %v after %v", first.err, took)
		}
		if _, err := c.Handle(t.Context(), toolCall(legacyMeta("a", "info")), mcp.NoCaller{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != session.LevelTimeout {
			t.Errorf("the third took until %v", took)
		}
	})
}

func TestLogMessagesReachTheirReceiver(t *testing.T) {
	log := func(level string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`
	}
	for _, tt := range []struct {
		name    string
		calls   []mcp.Metadata // of tool calls in flight
		listens []mcp.Metadata // of sessions that listen
		level   string
		want    []int // indexes of receivers: calls first, then listens
	}{
		{"one call", []mcp.Metadata{legacyMeta("a", "info")}, nil, "warning", []int{0}},
		{"below its level", []mcp.Metadata{legacyMeta("a", "error")}, nil, "warning", nil},
		{"a legacy client without a level leaves it to the server", []mcp.Metadata{legacyMeta("a", "")}, nil, "debug", []int{0}},
		{"a modern client without a level wants none", []mcp.Metadata{{Revision: mcp.Revision20260728}}, nil, "emergency", nil},
		{"an unknown level", []mcp.Metadata{legacyMeta("a", "error")}, nil, "loud", []int{0}},
		{"two calls of one client, one of which wants it", []mcp.Metadata{legacyMeta("a", "error"), legacyMeta("a", "debug")}, nil, "info", []int{1}},
		{"calls of two clients: nobody guesses", []mcp.Metadata{legacyMeta("a", "debug"), legacyMeta("b", "debug")}, nil, "error", nil},
		{"no call, one session", nil, []mcp.Metadata{legacyMeta("a", "")}, "info", []int{0}},
		{"no call, two sessions: nobody guesses", nil, []mcp.Metadata{legacyMeta("a", ""), legacyMeta("b", "")}, "info", nil},
		{"a session that replaces its listen call hears it once", nil, []mcp.Metadata{legacyMeta("a", ""), legacyMeta("a", "")}, "info", []int{1}},
		{"a call before its session", []mcp.Metadata{legacyMeta("a", "")}, []mcp.Metadata{legacyMeta("a", "")}, "info", []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reached(t, log(tt.level), tt.calls, tt.listens)
			if !slices.Equal(got, tt.want) {
				t.Errorf("receivers %v, want %v", got, tt.want)
			}
		})
	}
}

// reached returns whom a notification reaches that came outside any stream, as
// indexes of calls of tools in flight and, after them, sessions that listen.
func reached(t *testing.T, message string, calls, listens []mcp.Metadata) (got []int) {
	started := make(chan *inflight.Call, 10)
	w := newWire(func(call *inflight.Call, method, _ string) {
		if method == mcp.MethodCallTool {
			started <- call
			return
		}
		answer(call, "{}")
	})
	c := connected(t, w, "{}")
	var receivers []*listener
	var inFlight []*running
	for _, meta := range calls {
		l := newListener()
		receivers = append(receivers, l)
		inFlight = append(inFlight, handle(t, c, toolCall(meta), l))
		receive(t, "the call", started)
	}
	for _, meta := range listens {
		l, r := listen(t, c, meta, mcp.Filter{Session: true})
		receivers = append(receivers, l)
		inFlight = append(inFlight, r)
	}
	c.Notified(scan(t, message), nil)
	w.calls.Fail(errors.New("over"), true)
	for _, r := range inFlight {
		<-r.done
	}
	for i, l := range receivers {
		for range l.told() {
			got = append(got, i)
		}
	}
	return got
}

// TestLogMessageBehindItsResponse: over HTTP a server may send it on the GET
// stream, where the response that it came before does not wait for it.
func TestLogMessageBehindItsResponse_B151(t *testing.T) {
	for _, tt := range []struct {
		name    string
		listens []string // clients
		want    int      // messages to each
	}{
		{"a session that listens", []string{"a"}, 1},
		{"two sessions that listen: nobody guesses", []string{"a", "b"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c *session.Client
			message := scan(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
			w := newWire(func(call *inflight.Call, method, _ string) {
				answer(call, "{}")
				if method == mcp.MethodCallTool {
					c.Notified(message, nil)
				}
			})
			c = connected(t, w, "{}")
			var receivers []*listener
			var inFlight []*running
			for _, client := range tt.listens {
				l, r := listen(t, c, legacyMeta(client, ""), mcp.Filter{Session: true})
				receivers, inFlight = append(receivers, l), append(inFlight, r)
			}
			caller := newListener()
			if _, err := c.Handle(t.Context(), toolCall(legacyMeta("a", "debug")), caller); err != nil {
				t.Fatal(err)
			}
			w.calls.Fail(errors.New("over"), true)
			for _, r := range inFlight {
				<-r.done
			}
			for i, l := range receivers {
				if got := l.told(); len(got) != tt.want {
					t.Errorf("session %s got %q", tt.listens[i], got)
				}
			}
			if got := caller.told(); len(got) != 0 {
				t.Errorf("the call got %q after its response", got)
			}
		})
	}
}

func TestResourcesAreCountedPerURI_B152(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, "{}")
	watch := func(client string, uris ...string) (*listener, *running) {
		return listen(t, c, legacyMeta(client, ""), mcp.Filter{ResourceSubscriptions: uris})
	}
	a, aRuns := watch("a", "u:1", "u:2")
	b, bRuns := watch("b", "u:1")
	if got := w.all(mcp.MethodSubscribe); !slices.Equal(got, []string{`resources/subscribe {"uri":"u:1"}`, `resources/subscribe {"uri":"u:2"}`}) {
		t.Errorf("sent %q", got)
	}
	update := func(uri string) {
		c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`), nil)
	}
	update("u:1")
	update("u:2")
	update("u:2/part")
	update("u:3")
	for _, l := range []*listener{a, b} {
		if got := receive(t, "the update", l.got); got != `notifications/resources/updated {"uri":"u:1"}` {
			t.Errorf("got %s", got)
		}
	}
	if got := receive(t, "the update", a.got); !strings.Contains(got, `"u:2"`) {
		t.Errorf("got %s", got)
	}
	if got := receive(t, "the update of a part", a.got); !strings.Contains(got, `"u:2/part"`) {
		t.Errorf("got %s", got)
	}
	aRuns.stop()
	if got := w.all(mcp.MethodUnsubscribe); !slices.Equal(got, []string{`resources/unsubscribe {"uri":"u:2"}`}) {
		t.Errorf("sent %q", got)
	}
	update("u:1")
	receive(t, "an update for b alone", b.got)
	bRuns.stop()
	if got := w.all(mcp.MethodUnsubscribe); len(got) != 2 {
		t.Errorf("sent %q", got)
	}
	if more := append(a.told(), b.told()...); len(more) != 0 {
		t.Errorf("more came: %q", more)
	}
}

func TestRefusedResourceIsNotAcknowledged(t *testing.T) {
	w := newWire(func(call *inflight.Call, _, params string) {
		if strings.Contains(params, "bad") {
			refuse(call, jsonrpc.CodeInvalidParams)
			return
		}
		answer(call, "{}")
	})
	c := connected(t, w, "{}")
	l := newListener()
	filter := mcp.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"u:good", "u:bad"}}
	r := handle(t, c, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params(), Meta: legacyMeta("a", "")}, l)
	ack := receive(t, "the acknowledgement", l.acked)
	if want := `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["u:good"]}}`; ack != want {
		t.Errorf("acknowledged %s", ack)
	}
	r.stop()
	if got := w.all(mcp.MethodUnsubscribe); !slices.Equal(got, []string{`resources/unsubscribe {"uri":"u:good"}`}) {
		t.Errorf("sent %q", got)
	}
}

// TestSilentSubscribeHoldsOnlyItsOwn_R18: of several who want one resource of a
// server that does not answer, each waits no longer than it wants to.
func TestSilentSubscribeHoldsOnlyItsOwn_R18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		silent.Store(true)
		w := newWire(func(call *inflight.Call, method, _ string) {
			if method != mcp.MethodSubscribe && method != mcp.MethodUnsubscribe || !silent.Load() {
				answer(call, "{}")
			}
		})
		c := connected(t, w, "{}")
		params := mcp.Filter{ResourceSubscriptions: []string{"u:1"}}.Params()
		req := &mcp.Request{Method: mcp.MethodListen, Params: params, Meta: legacyMeta("a", "")}
		first := handle(t, c, req, newListener())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Handle(ctx, req, newListener())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
		first.stop()
		// And one whose server falls silent later ends within a bound.
		silent.Store(false)
		_, third := listen(t, c, legacyMeta("a", ""), mcp.Filter{ResourceSubscriptions: []string{"u:1"}})
		silent.Store(true)
		began = time.Now()
		third.stop()
		if took := time.Since(began); took != session.UnsubscribeTimeout {
			t.Errorf("ending took %v", took)
		}
	})
}

func TestListChangesGoToThoseWhoWantThem(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, "{}")
	tools, toolsRuns := listen(t, c, legacyMeta("a", ""), mcp.Filter{ToolsListChanged: true})
	prompts, promptsRuns := listen(t, c, legacyMeta("b", ""), mcp.Filter{PromptsListChanged: true, ResourcesListChanged: true})
	for _, what := range []string{"tools", "prompts", "resources"} {
		c.Notified(scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, what)), nil)
	}
	if got := receive(t, "tools", tools.got); got != "notifications/tools/list_changed " {
		t.Errorf("got %q", got)
	}
	receive(t, "prompts", prompts.got)
	receive(t, "resources", prompts.got)
	toolsRuns.stop()
	promptsRuns.stop()
	if more := append(tools.told(), prompts.told()...); len(more) != 0 {
		t.Errorf("more came: %q", more)
	}
}

// TestUndeclaredListChangesArePassedOn: they are not promised, and come all the
// same to who has asked for them.
func TestUndeclaredListChangesArePassedOn(t *testing.T) {
	w := newWire(func(call *inflight.Call, _, _ string) {
		answer(call, `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{"listChanged":false}}}`)
	})
	c := session.NewClient(w, &w.calls, session.ClientOptions{})
	if err := c.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := newListener()
	filter := mcp.Filter{ToolsListChanged: true}
	r := handle(t, c, &mcp.Request{Method: mcp.MethodListen, Params: filter.Params(), Meta: legacyMeta("a", "")}, l)
	if ack := receive(t, "the acknowledgement", l.acked); ack != `{"notifications":{}}` {
		t.Errorf("acknowledged %s", ack)
	}
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`), nil)
	c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), nil)
	if got := receive(t, "tools", l.got); got != "notifications/tools/list_changed " {
		t.Errorf("got %q", got)
	}
	r.stop()
}

// TestOtherNotificationsReachOneClientOnly: what names neither call nor resource
// is nobody's among several clients.
func TestOtherNotificationsReachOneClientOnly(t *testing.T) {
	a, b, modern := legacyMeta("a", ""), legacyMeta("b", ""), mcp.Metadata{Revision: mcp.Revision20260728, Session: "m"}
	for _, tt := range []struct {
		name           string
		calls, listens []mcp.Metadata
		want           []int
	}{
		{"one session", nil, []mcp.Metadata{a}, []int{0}},
		{"two sessions: nobody guesses", nil, []mcp.Metadata{a, b}, nil},
		{"a session before its call", []mcp.Metadata{a}, []mcp.Metadata{a}, []int{1}},
		{"a call of a modern client", []mcp.Metadata{modern}, nil, []int{0}},
		{"two of them", []mcp.Metadata{modern, modern}, nil, []int{1}},
		{"calls of two clients: nobody guesses", []mcp.Metadata{modern, b}, nil, nil},
		{"two sessions and a call: nobody guesses", []mcp.Metadata{a}, []mcp.Metadata{a, b}, nil},
		{"a session and another client's call: nobody guesses", []mcp.Metadata{modern}, []mcp.Metadata{a}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reached(t, `{"jsonrpc":"2.0","method":"notifications/vendor/x","params":{}}`, tt.calls, tt.listens)
			if !slices.Equal(got, tt.want) {
				t.Errorf("receivers %v, want %v", got, tt.want)
			}
		})
	}
}

// TestOtherNotificationOfACallThatWasLeftIsNobodyElses, as a log message is not.
func TestOtherNotificationOfACallThatWasLeftIsNobodyElses_B151(t *testing.T) {
	for _, other := range []string{"a call", "a session that listens"} {
		t.Run(other, func(t *testing.T) {
			w, started := held()
			c := connected(t, w, asksEverything)
			left := handle(t, c, toolCall(modernMeta("a")), newListener())
			receive(t, "the call", started)
			var l *listener
			var r *running
			if other == "a call" {
				l = newListener()
				r = handle(t, c, toolCall(modernMeta("b")), l)
				receive(t, "the other call", started)
			} else {
				l, r = listen(t, c, legacyMeta("b", ""), mcp.Filter{Session: true})
			}
			left.stop()
			c.Notified(scan(t, `{"jsonrpc":"2.0","method":"notifications/vendor/x","params":{"secret":1}}`), nil)
			w.calls.Fail(errors.New("over"), true)
			<-r.done
			if got := l.told(); len(got) > 0 {
				t.Errorf("another client was told %q", got)
			}
		})
	}
}

// A cutWire is a server to which nothing can be sent for a client.
type cutWire struct {
	*wire
	client string
}

func (w cutWire) Call(ctx context.Context, call *inflight.Call, params *jsonrpc.Value, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error) {
	if call.Request.Meta.Session == w.client {
		return mcp.Result{}, &mcp.CallError{Kind: mcp.Cancelled, Outcome: mcp.NotSent}
	}
	return w.wire.Call(ctx, call, params, caller, edits...)
}

// TestCallThatWasNotSentIsNotLeft: the server cannot mean it.
func TestCallThatWasNotSentIsNotLeft_B151(t *testing.T) {
	w, started := held()
	c := session.NewClient(cutWire{w, "a"}, &w.calls, session.ClientOptions{Capabilities: []byte(asksEverything)})
	if _, err := c.Handle(t.Context(), toolCall(legacyMeta("a", "")), mcp.NoCaller{}); mcp.OutcomeOf(err) != mcp.NotSent {
		t.Fatal(err)
	}
	r := handle(t, c, toolCall(legacyMeta("b", "")), answering("b"))
	receive(t, "the call", started)
	c.Asked(t.Context(), ask(t, "1", mcp.MethodCreateMessage), nil)
	if got := w.await(t, 1, "reply"); !slices.Equal(got, []string{`reply 1 {"from":"b"}`}) {
		t.Errorf("answered %q", got)
	}
	r.stop()
}

// A slowPrompt takes its time with the acknowledgement.
type slowPrompt struct {
	mcp.NoCaller
	acked func()

	mu  sync.Mutex
	got []string
}

func (p *slowPrompt) Notify(_ context.Context, n *mcp.Notification) error {
	p.mu.Lock()
	p.got = append(p.got, n.Method)
	p.mu.Unlock()
	if n.Method == mcp.NotificationAcknowledged {
		p.acked()
	}
	return nil
}

func (p *slowPrompt) Missed() {}

// TestWhoListensMissesNothingAtTheBeginning_P5: what comes right after the
// acknowledgement has arrived before the reader goes on.
func TestWhoListensMissesNothingAtTheBeginning_P5(t *testing.T) {
	c := connected(t, newWire(nil), "{}")
	p := &slowPrompt{}
	read := make(chan []string, 1)
	p.acked = func() {
		go func() {
			c.Notified(&jsonrpc.Message{Kind: jsonrpc.Notification, Method: []byte(mcp.NotificationToolsListChanged)}, nil)
			p.mu.Lock()
			defer p.mu.Unlock()
			read <- p.got
		}()
		select {
		case got := <-read:
			read <- got
		case <-time.After(50 * time.Millisecond): // it waits for its turn
		}
	}
	r := handle(t, c, &mcp.Request{Method: mcp.MethodListen, Params: mcp.Filter{ToolsListChanged: true}.Params(), Meta: legacyMeta("a", "")}, p)
	if got := <-read; fmt.Sprint(got) != fmt.Sprint([]string{mcp.NotificationAcknowledged, mcp.NotificationToolsListChanged}) {
		t.Errorf("the reader went on at %q", got)
	}
	r.stop()
}

func TestListenTellsThatTheConnectionWasLost(t *testing.T) {
	w := newWire(nil)
	c := connected(t, w, "{}")
	_, r := listen(t, c, legacyMeta("a", ""), mcp.Filter{Session: true})
	w.calls.Fail(&mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("gone")}, true)
	<-r.done
	if e, ok := errors.AsType[*mcp.CallError](r.err); !ok || e.Kind != mcp.ConnectionLost || e.Method != mcp.MethodListen {
		t.Errorf("err %v", r.err)
	}
}
