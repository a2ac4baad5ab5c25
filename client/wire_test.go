package client_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A wire is a Target whose servers speak lines, in memory.
type wire struct {
	t *testing.T
	// answer returns the lines that answer a request; it is called by one
	// goroutine for each connection.
	answer func(m *jsonrpc.Message) []string
	// write writes what answers a request; nil for as it is.
	write func(conn net.Conn, m *jsonrpc.Message, text string) error

	mu    sync.Mutex
	lines []string // all that came, guarded by mu
	peers []net.Conn
	wrote chan struct{} // gets a value with each line, if there is room
}

func newWire(t *testing.T, answer func(m *jsonrpc.Message) []string) *wire {
	return &wire{t: t, answer: answer, wrote: make(chan struct{}, 1)}
}

func (w *wire) String() string { return "a wire" }

// Dial implements client.Target.
func (w *wire) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	ours, theirs := net.Pipe()
	w.mu.Lock()
	w.peers = append(w.peers, theirs)
	w.mu.Unlock()
	go w.serve(theirs)
	c, err := transport.Dial(ctx, transport.NewLineLink(ours, ours, ours.Close, transport.LineOptions{}), opts)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		w.mu.Lock()
		w.lines = append(w.lines, lines.Text())
		w.mu.Unlock()
		select {
		case w.wrote <- struct{}{}:
		default:
		}
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(lines.Text()), &m); err != nil {
			w.t.Errorf("the client wrote %s: %v", lines.Text(), err)
			return
		}
		if m.Kind != jsonrpc.Request {
			continue
		}
		answers := w.answer(&m)
		for i := range answers {
			answers[i] = strings.ReplaceAll(answers[i], "ID", string(m.ID.Raw()))
		}
		text := strings.Join(answers, "\n") + "\n"
		if w.write != nil {
			if w.write(conn, &m, text) != nil {
				return
			}
			continue
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			return
		}
	}
}

// hangUp ends the newest connection.
func (w *wire) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.peers[len(w.peers)-1].Close()
}

// found returns the lines that hold text.
func (w *wire) found(text string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// await waits until n lines hold text, and returns the nth.
func (w *wire) await(text string, n int) string {
	w.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if lines := w.found(text); len(lines) >= n {
			return lines[n-1]
		}
		select {
		case <-w.wrote:
		case <-late:
			w.t.Fatalf("%s did not come %d times: %q", text, n, w.lines)
		}
	}
}

const (
	aResult   = `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`
	aDiscover = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`
	anInit    = `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}`
	anAck     = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID},"notifications":{"toolsListChanged":true}}}`
)

// greet answers what comes at the beginning, nil if m is something else.
func greet(m *jsonrpc.Message) []string {
	switch mcp.MethodName(m.Method) {
	case mcp.MethodDiscover:
		return []string{aDiscover}
	case mcp.MethodInitialize:
		return []string{anInit}
	case mcp.MethodListen:
		return []string{anAck}
	}
	return nil
}

// eras runs a test for each era.
func eras(t *testing.T, test func(t *testing.T, era mcp.Era)) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) { test(t, era) })
	}
}

// TestNotificationsComeBeforeTheResponse_P5: what a server told before it answered
// has reached the subscriber when the call returns.
func TestNotificationsComeBeforeTheResponse_P5(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		w := newWire(t, func(m *jsonrpc.Message) []string {
			if hello := greet(m); hello != nil {
				return hello
			}
			return []string{changed, aResult}
		})
		c := connect(t, w, &client.Options{Era: era})
		s := listen(t, c, tools)
		// The listen call's own goroutine may not have got as far at first.
		listens := false
		for i := range 500 {
			if err := call(t, c); err != nil {
				t.Fatal(err)
			}
			got := come(s)
			if listens && len(got) != 1 {
				t.Fatalf("after call %d there came %q", i, got)
			}
			listens = listens || len(got) == 1
		}
		if !listens {
			t.Error("nothing came in time")
		}
	})
}

// TestEventsKeepTheirParams_P5 in the order in which they came, whatever has come
// since.
func TestEventsKeepTheirParams_P5(t *testing.T) {
	var uris, changes []string
	for i := range 100 {
		uris = append(uris, fmt.Sprintf("a:%02d", i))
		changes = append(changes, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+uris[i]+`"}}`)
	}
	w := newWire(t, func(m *jsonrpc.Message) []string {
		switch mcp.MethodName(m.Method) {
		case mcp.MethodDiscover:
			return []string{aDiscover}
		case mcp.MethodListen:
			return append([]string{strings.Replace(anAck, `"toolsListChanged":true`, `"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]`, 1)}, changes...)
		}
		return []string{aResult}
	})
	c := connect(t, w, &client.Options{Era: mcp.Modern})
	s := listen(t, c, mcp.Filter{ResourceSubscriptions: uris})
	if err := call(t, c); err != nil { // after which all has come
		t.Fatal(err)
	}
	for _, uri := range uris {
		e, err := s.Next(t.Context())
		if err != nil || e.URI() != uri || string(e.Params) != `{"uri":"`+uri+`"}` {
			t.Fatalf("there came %s, %v, want %s", e.Params, err, uri)
		}
	}
}

// TestCancelReachesTheServer_B136_S160: of a call that was given up and of one that
// took too long.
func TestCancelReachesTheServer_B136_S160(t *testing.T) {
	inBothEras(t, func(t *testing.T, era mcp.Era) {
		w := newWire(t, greet)
		c := connect(t, w, &client.Options{Era: era})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			w.await(`"tools/call"`, 1)
			cancel()
		}()
		_, err := c.CallTool(ctx, "work", nil, nil)
		if kind, sent := outcome(err); kind != mcp.Cancelled || sent != mcp.MaybeExecuted {
			t.Errorf("%v", err)
		}
		_, err = c.CallTool(t.Context(), "work", nil, &client.CallOptions{Timeout: time.Second})
		if kind, sent := outcome(err); kind != mcp.TimedOut || sent != mcp.MaybeExecuted {
			t.Errorf("%v", err)
		}
		for n := range 2 {
			var sent, told jsonrpc.Message
			if err := jsonrpc.Scan([]byte(w.await(`"tools/call"`, n+1)), &sent); err != nil {
				t.Fatal(err)
			}
			if err := jsonrpc.Scan([]byte(w.await("notifications/cancelled", n+1)), &told); err != nil {
				t.Fatal(err)
			}
			if id, _ := told.Body.Lookup("requestId"); string(id) != string(sent.ID.Raw()) {
				t.Errorf("the call %s was cancelled as %s", sent.ID.Raw(), id)
			}
		}
	})
}

// TestRequestStateIsEchoedToTheByte_B151: also what could be written otherwise.
func TestRequestStateIsEchoedToTheByte_B151(t *testing.T) {
	const state = `"s\u0031\/\u00e9\ud83d\ude00 \\ é"`
	w := newWire(t, func(m *jsonrpc.Message) []string {
		if hello := greet(m); hello != nil {
			return hello
		}
		if _, again := m.Body.Lookup("inputResponses"); again {
			return []string{aResult}
		}
		return []string{`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":` + state +
			`,"inputRequests":{"a\u0062":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","default":1.50}}}}},"r":{"method":"roots/list"}}}}`}
	})
	c := connect(t, w, &client.Options{
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.Accept, Content: mcp.JSON(`{"name":"Ad\u0061"}`)}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil },
	})
	if _, err := c.CallTool(t.Context(), "work", map[string]int{"x": 1}, nil); err != nil {
		t.Fatal(err)
	}
	again := w.await(`"tools/call"`, 2)
	for _, want := range []string{
		`"requestState":` + state, `"name":"work","arguments":{"x":1}`,
		`"inputResponses":{"ab":{"action":"accept","content":{"n":1.50,"name":"Ad\u0061"}},"r":{"roots":[]}}`,
	} {
		if !strings.Contains(again, want) {
			t.Errorf("the retry lacks %s: %s", want, again)
		}
	}
	if first := w.await(`"tools/call"`, 1); first[:30] == again[:30] {
		t.Errorf("both have one id: %s", again)
	}
}

// TestCapabilities declares what there is a function for, and nothing else.
func TestCapabilities_B044(t *testing.T) {
	elicit := func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }
	roots := func(context.Context) ([]mcp.Root, error) { return nil, nil }
	for _, tt := range []struct {
		name string
		opts client.Options
		want string
	}{
		{"nothing", client.Options{}, `{}`},
		{"modes without functions", client.Options{ElicitURL: true, SampleTools: true}, `{}`},
		{"forms", client.Options{Elicit: elicit}, `{"elicitation":{}}`},
		{"forms and pages", client.Options{Elicit: elicit, ElicitURL: true}, `{"elicitation":{"form":{},"url":{}}}`},
		{"a model", client.Options{Sample: sample}, `{"sampling":{}}`},
		{"a model with tools", client.Options{Sample: sample, SampleTools: true}, `{"sampling":{"tools":{}}}`},
		{"roots", client.Options{Roots: roots}, `{"roots":{"listChanged":true}}`},
		{"as they are", client.Options{Capabilities: mcp.JSON(`{"sampling":{"x":1}}`), Roots: roots}, `{"sampling":{"x":1}}`},
	} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			t.Run(tt.name+" "+era.String(), func(t *testing.T) {
				w := newWire(t, greet)
				tt.opts.Era = era
				connect(t, w, &tt.opts)
				name := `"capabilities":`
				if era == mcp.Modern {
					name = `"io.modelcontextprotocol/clientCapabilities":`
				}
				if first := w.await("", 1); !strings.Contains(first, name+tt.want) {
					t.Errorf("it declared %s", first)
				}
			})
		}
	}
}

// TestLogLevelIsToldAtOnce also to the server that comes after a crash.
func TestLogLevelIsToldAtOnce(t *testing.T) {
	w := newWire(t, func(m *jsonrpc.Message) []string {
		if hello := greet(m); hello != nil {
			return hello
		}
		return []string{aResult}
	})
	c := connect(t, w, &client.Options{Era: mcp.Legacy, LogLevel: "warning", Healing: client.Healing{MinWait: time.Millisecond}})
	level := func(n int, want string) {
		t.Helper()
		if line := w.await("logging/setLevel", n); !strings.Contains(line, want) {
			t.Errorf("it was told %s", line)
		}
	}
	level(1, `"warning"`)
	if err := c.SetLogLevel("debug"); err != nil {
		t.Fatal(err)
	}
	level(2, `"debug"`)
	w.hangUp()
	level(3, `"debug"`)
}

// TestResourcesAreSubscribedToAgain_B152 at the server that comes after a crash, and
// once, however many subscribe.
func TestResourcesAreSubscribedToAgain_B152(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		method, updated := mcp.MethodListen, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}`
		if era == mcp.Legacy {
			method = "resources/subscribe"
		}
		w := newWire(t, func(m *jsonrpc.Message) []string {
			switch mcp.MethodName(m.Method) {
			case mcp.MethodInitialize:
				return []string{strings.Replace(anInit, `"logging":{}`, `"resources":{"subscribe":true}`, 1)}
			case mcp.MethodListen:
				return []string{strings.Replace(anAck, `"toolsListChanged":true`, `"resourceSubscriptions":["a:b"]`, 1)}
			case mcp.MethodPing, mcp.MethodReadResource:
				return []string{updated, aResult}
			}
			if hello := greet(m); hello != nil {
				return hello
			}
			return []string{aResult}
		})
		c := connect(t, w, &client.Options{Era: era, Healing: client.Healing{MinWait: time.Millisecond}})
		first := listen(t, c, mcp.Filter{ResourceSubscriptions: []string{"a:b"}})
		second := listen(t, c, mcp.Filter{ResourceSubscriptions: []string{"a:b"}})
		before := len(w.found(method))
		w.hangUp()
		for _, s := range []*client.Subscription{first, second} {
			if got := nextEvent(t, s); got != client.Resynced {
				t.Errorf("after the crash there came %s", got)
			}
		}
		if n := len(w.found(method)); n != 2*before || era == mcp.Legacy && before != 1 {
			t.Errorf("%s came %d times before, and %d times in all", method, before, n)
		}
		if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil && !strings.Contains(err.Error(), "contents") {
			t.Error(err)
		}
		for _, s := range []*client.Subscription{first, second} {
			if got := nextEvent(t, s); got != mcp.NotificationResourceUpdated {
				t.Errorf("of the change there came %s", got)
			}
		}
	})
}

// TestQuestionsBelongToTheirCaller: those of a call made with Handle go to its own
// Caller, whatever the client's functions are.
func TestQuestionsBelongToTheirCaller(t *testing.T) {
	question := `{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	var w *wire
	w = newWire(t, func(m *jsonrpc.Message) []string {
		if hello := greet(m); hello != nil {
			return hello
		}
		go func() {
			w.await(`"id":"q"`, 1)
			w.mu.Lock()
			defer w.mu.Unlock()
			_, _ = w.peers[0].Write([]byte(strings.ReplaceAll(aResult, "ID", string(m.ID.Raw())) + "\n"))
		}()
		return []string{question}
	})
	c := connect(t, w, &client.Options{Era: mcp.Legacy, Capabilities: mcp.JSON(`{"sampling":{}}`)})
	caller := &asker{answer: `{"role":"assistant","model":"m","content":{"type":"text","text":"\u0061"}}`}
	req := &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(`{"name":"t"}`))}
	if _, err := c.Handle(t.Context(), req, caller); err != nil {
		t.Fatal(err)
	}
	if got := w.await(`"id":"q"`, 1); got != fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","result":%s}`, caller.answer) {
		t.Errorf("the server got %s", got)
	}
}

// An asker answers each question with the same.
type asker struct {
	mcp.NoCaller
	answer string
}

func (a *asker) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult([]byte(a.answer)), nil
}
