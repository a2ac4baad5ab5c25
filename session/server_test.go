package session_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// An outlet is a client, as far as it is sent something.
type outlet chan string

func (o outlet) Send(ctx context.Context, frame []byte) error {
	select {
	case o <- string(frame):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A backend is a handler that keeps the requests it gets.
type backend struct {
	serve    func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error)
	discover string // the result; empty for discovered

	mu  sync.Mutex
	got []*mcp.Request
}

const discovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},` +
	`"resources":{"subscribe":true},"logging":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"2"}}}`

func (b *backend) Handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	b.mu.Lock()
	b.got = append(b.got, req)
	b.mu.Unlock()
	if req.Method == mcp.MethodDiscover {
		return mcp.RawResult([]byte(cmp.Or(b.discover, discovered))), nil
	}
	if b.serve == nil {
		return mcp.Result{}, nil
	}
	return b.serve(ctx, req, caller)
}

// last returns the last request of a method.
func (b *backend) last(t *testing.T, method string) *mcp.Request {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, req := range slices.Backward(b.got) {
		if req.Method == method {
			return req
		}
	}
	t.Fatalf("no %s came", method)
	return nil
}

func (b *backend) count(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, req := range b.got {
		if req.Method == method {
			n++
		}
	}
	return n
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"clientInfo":{"name":"c","version":"1"},"capabilities":` + asksEverything + `}}`

// serving returns a session whose client has made the handshake.
func serving(t *testing.T, b *backend) *session.Server {
	t.Helper()
	s := session.NewServer(b, session.ServerOptions{ID: "the session"})
	t.Cleanup(s.Close)
	if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGrantOfASession: requests are made under the newest that the client has shown.
func TestGrantOfASession(t *testing.T) {
	b := new(backend)
	s := session.NewServer(b, session.ServerOptions{Grant: "first"})
	defer s.Close()
	s.SetGrant("too early") // whose session it is to be is not known before
	if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second", ""} {
		if want != "first" {
			s.SetGrant(want)
		}
		if _, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`), nil); err != nil {
			t.Fatal(err)
		}
		if got := b.last(t, mcp.MethodListPrompts).Meta.Grant; got != want {
			t.Errorf("the grant is %q, want %q", got, want)
		}
	}
}

// codeOf returns the code with which an error is answered, 0 for none.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return jsonrpc.ToWire(err).Code
}

func TestInitialize_B116(t *testing.T) {
	for _, tt := range []struct {
		params, version string
		code            int
	}{
		{`{"protocolVersion":"2024-11-05"}`, "2024-11-05", 0},
		{`{"protocolVersion":"2025-03-26"}`, "2025-03-26", 0},
		{`{"protocolVersion":"2025-11-25"}`, "2025-11-25", 0},
		{`{"protocolVersion":"2099-01-01"}`, "2025-11-25", 0},
		{`{"protocolVersion":"2026-07-28"}`, "2025-11-25", 0},
		{`{"protocolVersion":"2025-05-01"}`, "2025-03-26", 0},
		{`{"protocolVersion":"garbage"}`, "2025-11-25", 0},
		{`{"protocolVersion":""}`, "2025-11-25", 0},
		{`{"protocolVersion":"2025-06-18","clientInfo":null,"capabilities":7}`, "2025-06-18", 0},
		{`{"protocolVersion":5}`, "", jsonrpc.CodeInvalidParams},
		{`{}`, "", jsonrpc.CodeInvalidParams},
		{`[]`, "", jsonrpc.CodeInvalidParams},
	} {
		t.Run(tt.params, func(t *testing.T) {
			b := new(backend)
			s := session.NewServer(b, session.ServerOptions{})
			defer s.Close()
			result, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+tt.params+`}`), nil)
			if codeOf(err) != tt.code {
				t.Fatalf("err %v", err)
			}
			if version, _ := result.LookupString("protocolVersion"); version != tt.version {
				t.Errorf("version %q, want %q", version, tt.version)
			}
			if tt.code != 0 {
				return
			}
			if info, _ := result.Lookup("serverInfo"); string(info) != `{"name":"b","version":"2"}` {
				t.Errorf("serverInfo %s", info)
			}
			meta := b.last(t, mcp.MethodDiscover).Meta
			if strings.Contains(tt.params, "null") && (meta.Client != nil || meta.Capabilities != nil) {
				t.Errorf("the backend is told %s and %s", meta.Client, meta.Capabilities)
			}
		})
	}
}

func TestInitializeTwice(t *testing.T) {
	s := serving(t, new(backend))
	if _, err := s.Handle(t.Context(), scan(t, initialize), nil); codeOf(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("err %v", err)
	}
}

func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name, request string
		early         bool // before initialize
		code          int
		forwarded     string // params at the backend, "-" for none
	}{
		{"before initialize", `"method":"tools/list"`, true, jsonrpc.CodeInvalidRequest, "-"},
		{"ping before initialize", `"method":"ping"`, true, 0, "-"},
		{"ping", `"method":"ping","params":{}`, false, 0, "-"},
		{"without params", `"method":"tools/list"`, false, 0, ""},
		{"B031 without arguments", `"method":"tools/call","params":{"name":"x"}`, false, 0, `{"name":"x"}`},
		{"B031 null arguments", `"method":"tools/call","params":{"name":"x","arguments":null}`, false, 0, `{"name":"x","arguments":null}`},
		{"B031 empty arguments", `"method":"tools/call","params":{"name":"x","arguments":{}}`, false, 0, `{"name":"x","arguments":{}}`},
		{"B031 array arguments", `"method":"tools/call","params":{"name":"x","arguments":[1]}`, false, 0, `{"name":"x","arguments":[1]}`},
		{"B017 large numbers", `"method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993}}`, false, 0, `{"name":"x","arguments":{"n":9007199254740993}}`},
		{"B034 unknown method", `"method":"nonexistent/x","params":{}`, false, 0, `{}`},
		{"array params", `"method":"tools/list","params":[]`, false, jsonrpc.CodeInvalidParams, "-"},
		{"a modern method", `"method":"server/discover"`, false, jsonrpc.CodeMethodNotFound, "-"},
		{"listen", `"method":"subscriptions/listen"`, false, jsonrpc.CodeMethodNotFound, "-"},
		{"a notification with an id", `"method":"notifications/initialized"`, false, jsonrpc.CodeInvalidRequest, "-"},
		{"a level that is none", `"method":"logging/setLevel","params":{"level":"loud"}`, false, jsonrpc.CodeInvalidParams, "-"},
		{"subscribe without URI", `"method":"resources/subscribe","params":{}`, false, jsonrpc.CodeInvalidParams, "-"},
		{"unsubscribe without URI", `"method":"resources/unsubscribe","params":{"uri":""}`, false, jsonrpc.CodeInvalidParams, "-"},
		{"unsubscribe what was not subscribed", `"method":"resources/unsubscribe","params":{"uri":"u:1"}`, false, 0, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := new(backend)
			s := session.NewServer(b, session.ServerOptions{ID: "the session"})
			defer s.Close()
			if !tt.early {
				if _, err := s.Handle(t.Context(), scan(t, initialize), nil); err != nil {
					t.Fatal(err)
				}
			}
			b.got = nil
			_, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,`+tt.request+`}`), nil)
			if codeOf(err) != tt.code {
				t.Errorf("err %v", err)
			}
			if tt.forwarded == "-" {
				if len(b.got) != 0 {
					t.Errorf("the backend got %s", b.got[0].Method)
				}
				return
			}
			if len(b.got) != 1 || string(b.got[0].Params.Raw()) != tt.forwarded {
				t.Fatalf("the backend got %d requests", len(b.got))
			}
			if meta := b.got[0].Meta; meta.Session != "the session" || meta.Revision != mcp.Revision20250618 ||
				string(meta.Client) != `{"name":"c","version":"1"}` {
				t.Errorf("metadata %+v", meta)
			}
		})
	}
}

func TestIDInFlightTwice_B026(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s := serving(t, &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		close(started)
		<-release
		return mcp.RawResult([]byte(`{"first":true}`)), nil
	}})
	req := scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
	first := make(chan string, 1)
	go func() {
		result, err := s.Handle(context.Background(), req, nil)
		first <- fmt.Sprint(string(result.Raw()), err)
	}()
	<-started
	if !s.Busy() {
		t.Error("not busy")
	}
	if _, err := s.Handle(t.Context(), req, nil); codeOf(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("err %v", err)
	}
	close(release)
	if got := receive(t, "the first", first); got != `{"first":true}<nil>` {
		t.Errorf("got %s", got)
	}
}

func TestCancelledRequest(t *testing.T) {
	started := make(chan struct{})
	s := serving(t, &backend{serve: func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		close(started)
		<-ctx.Done()
		return mcp.Result{}, ctx.Err()
	}})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Handle(context.Background(), scan(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call"}`), nil)
		ended <- err
	}()
	<-started
	for _, id := range []string{`"y"`, `1.5`, `1e400`, `true`, `{}`, `["x"]`, `null`, `"x"`} {
		s.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
	}
	if err := receive(t, "the end", ended); !errors.Is(err, session.ErrCancelled) {
		t.Errorf("err %v", err)
	}
}

func TestResultsForLegacyClients(t *testing.T) {
	for _, tt := range []struct{ name, method, result, want string }{
		{"structured content that is no object", mcp.MethodCallTool,
			`{"content":[],"structuredContent":[1],"isError":false}`, `{"content":[],"isError":false}`},
		{"structured content", mcp.MethodCallTool,
			`{"content":[],"structuredContent":{"n":9007199254740993}}`, `{"content":[],"structuredContent":{"n":9007199254740993}}`},
		{"output schemas of other types", mcp.MethodListTools,
			`{"tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b","outputSchema":{"type":"object"}},{"name":"c"}],"x":1.0}`,
			`{"tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object"}},{"name":"c"}],"x":1.0}`},
		{"input that cannot be given", mcp.MethodCallTool, `{"resultType":"input_required","inputRequests":{}}`, "-32603"},
		{"B113 a type that is not known", mcp.MethodCallTool, `{"resultType":"vendor"}`, "-32603"},
		{"complete", mcp.MethodCallTool, `{"resultType":"complete","content":[]}`, `{"resultType":"complete","content":[]}`},
		{"anything else", "vendor/x", `{"resultType":"vendor"}`, `{"resultType":"vendor"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serving(t, &backend{serve: func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
				return mcp.RawResult([]byte(tt.result)), nil
			}})
			result, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`"}`), nil)
			got := string(result.Raw())
			if err != nil {
				got = fmt.Sprint(codeOf(err))
			}
			if got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestCallerLetsThroughWhatWasAskedFor: progress to those who gave a token, log
// messages of the session's level.
func TestCallerLetsThroughWhatWasAskedFor_B139(t *testing.T) {
	notify := func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		}
		for _, n := range []*mcp.Notification{
			{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progress":1}`))},
			{Method: mcp.NotificationMessage, Params: jsonrpc.Trusted([]byte(`{"level":"info"}`))},
			{Method: mcp.NotificationAcknowledged},
			{Method: "notifications/vendor/x", Params: jsonrpc.Trusted([]byte(`{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"a":1}`))},
		} {
			if err := caller.Notify(ctx, n); err != nil {
				return mcp.Result{}, err
			}
		}
		return mcp.Result{}, nil
	}
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`
	info := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`
	vendor := `{"jsonrpc":"2.0","method":"notifications/vendor/x","params":{"a":1}}`
	for _, tt := range []struct {
		name, params, level string
		want                []string
	}{
		{"with a token", `{"_meta":{"progressToken":"p"}}`, "", []string{progress, info, vendor}},
		{"without", `{}`, "", []string{info, vendor}},
		{"at a level", `{}`, "warning", []string{vendor}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serving(t, &backend{serve: notify})
			if tt.level != "" {
				if _, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"`+tt.level+`"}}`), nil); err != nil {
					t.Fatal(err)
				}
			}
			out := make(outlet, 10)
			if _, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+tt.params+`}`), out); err != nil {
				t.Fatal(err)
			}
			close(out)
			var got []string
			for frame := range out {
				got = append(got, frame)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestModesOfElicitation_SEC108: a client is asked in the modes that it has
// declared only, and the handler learns why not.
func TestModesOfElicitation_SEC108(t *testing.T) {
	for _, tt := range []struct {
		capabilities, params string
		asked                bool
	}{
		{`{"elicitation":{}}`, `{}`, true},
		{`{"elicitation":{}}`, `{"mode":"form"}`, true},
		{`{"elicitation":{}}`, `{"mode":"url"}`, false},
		{`{"elicitation":{"form":{}}}`, `{"mode":"form"}`, true},
		{`{"elicitation":{"form":{}}}`, `{"mode":"url"}`, false},
		{`{"elicitation":{"url":{}}}`, `{"mode":"url"}`, true},
		{`{"elicitation":{"url":{}}}`, `{"mode":"form"}`, false},
		{`{"elicitation":{"url":{}}}`, `{}`, false},
		{`{"elicitation":{"form":{},"url":{}}}`, `{"mode":"form"}`, true},
		{`{"elicitation":{"form":{},"url":{}}}`, `{"mode":"URL"}`, false},
		{`{"elicitation":{"vendor":{}}}`, `{"mode":"vendor"}`, true},
		{`{"elicitation":{"form":null,"url":{}}}`, `{"mode":"form"}`, false},
		{`{"elicitation":{"form":{},"url":null}}`, `{"mode":"url"}`, false},
		{`{"elicitation":{"url":null}}`, `{"mode":"form"}`, true},
	} {
		t.Run(tt.capabilities+" "+tt.params, func(t *testing.T) {
			failed := make(chan error, 1)
			s := session.NewServer(&backend{serve: func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				_, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted([]byte(tt.params))})
				failed <- err
				return mcp.Result{}, nil
			}}, session.ServerOptions{})
			defer s.Close()
			if _, err := s.Handle(t.Context(), scan(t, strings.Replace(initialize, asksEverything, tt.capabilities, 1)), nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := make(outlet, 10)
			go func() { _, _ = s.Handle(ctx, scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`), out) }()
			if tt.asked {
				receive(t, "the question", out)
				cancel()
				receive(t, "the end of the question", failed)
				return
			}
			err := receive(t, "the refusal", failed)
			if !errors.Is(err, mcp.ErrCannotAsk) || codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("err %v", err)
			}
			if len(out) > 0 {
				t.Errorf("the client was sent %s", <-out)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	asking := func(method string) *backend {
		return &backend{serve: func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			return caller.Ask(ctx, &mcp.Request{Method: method, Params: jsonrpc.Trusted([]byte(`{"m":1.0}`))})
		}}
	}
	call := scan(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call"}`)
	start := func(t *testing.T, method string) (*session.Server, outlet, chan error, chan mcp.Result) {
		s, out := serving(t, asking(method)), make(outlet, 10)
		failed, result := make(chan error, 1), make(chan mcp.Result, 1)
		go func() {
			r, err := s.Handle(context.Background(), call, out)
			failed <- err
			result <- r
		}()
		return s, out, failed, result
	}
	question := `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"m":1.0}}`
	t.Run("answered", func(t *testing.T) {
		s, out, failed, result := start(t, mcp.MethodElicit)
		if got := receive(t, "the question", out); got != question {
			t.Errorf("asked %s", got)
		}
		if s.Answered(scan(t, `{"jsonrpc":"2.0","id":2,"result":{}}`)) || s.Answered(scan(t, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`)) {
			t.Error("a response to nothing was taken")
		}
		if !s.Answered(scan(t, `{"jsonrpc":"2.0","id":"1","result":{"action":"accept","z":-0}}`)) { // B020
			t.Error("the answer was not taken")
		}
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		if r := <-result; string(r.Raw()) != `{"action":"accept","z":-0}` {
			t.Errorf("got %s", r.Raw())
		}
	})
	t.Run("refused", func(t *testing.T) {
		s, out, failed, _ := start(t, mcp.MethodElicit)
		receive(t, "the question", out)
		s.Answered(scan(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"user rejected"}}`))
		if err := <-failed; !jsonrpc.FromPeer(err) || codeOf(err) != -1 {
			t.Errorf("err %v", err)
		}
	})
	t.Run("withdrawn with the call", func(t *testing.T) {
		s, out, failed, _ := start(t, mcp.MethodElicit)
		receive(t, "the question", out)
		s.Notified(t.Context(), scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`))
		if err := <-failed; !errors.Is(err, session.ErrCancelled) {
			t.Errorf("err %v", err)
		}
		if got := receive(t, "the withdrawal", out); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` {
			t.Errorf("sent %s", got)
		}
	})
	t.Run("nothing more comes", func(t *testing.T) {
		s, out, failed, _ := start(t, mcp.MethodElicit)
		receive(t, "the question", out)
		s.EndAnswers()
		if err := <-failed; mcp.OutcomeOf(err) != mcp.MaybeExecuted {
			t.Errorf("err %v", err)
		}
	})
	for _, capability := range []string{`"x":{}`, `"elicitation":null`} {
		t.Run("B044 not declared: "+capability, func(t *testing.T) {
			b := asking(mcp.MethodElicit)
			s := session.NewServer(b, session.ServerOptions{})
			defer s.Close()
			if _, err := s.Handle(t.Context(), scan(t, strings.Replace(initialize, `"elicitation":{}`, capability, 1)), nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := s.Handle(ctx, call, make(outlet)); !errors.Is(err, mcp.ErrCannotAsk) {
				t.Errorf("err %v", err)
			}
		})
	}
}

func TestSessionsExpireWhenIdle_B103(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := session.NewTable(session.TableOptions{Idle: time.Second, Max: 2})
		defer table.Close()
		mine, theirs := mcp.Principal{Subject: "a"}, mcp.Principal{Subject: "b"}
		busy, err := table.New(new(backend), session.ServerOptions{Principal: mine})
		if err != nil {
			t.Fatal(err)
		}
		idle, err := table.New(new(backend), session.ServerOptions{Principal: mine})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.New(new(backend), session.ServerOptions{}); !errors.Is(err, session.ErrTooMany) {
			t.Errorf("err %v", err)
		}
		if _, ok := table.Use(idle.ID, theirs); ok { // B101
			t.Error("another principal got the session")
		}
		idle.Release()
		time.Sleep(900 * time.Millisecond)
		if _, ok := table.Use(idle.ID, mine); !ok {
			t.Fatal("it expired early")
		}
		idle.Release()
		time.Sleep(900 * time.Millisecond)
		if table.Len() != 2 {
			t.Fatal("use did not put its end off")
		}
		time.Sleep(time.Hour)
		if _, ok := table.Use(idle.ID, mine); ok || table.Len() != 1 {
			t.Error("it did not expire, or the other one did as well")
		}
		busy.Release()
	})
}

func TestEndIsToldWhenTheLastUserHasLeft_B103(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		table := session.NewTable(session.TableOptions{Idle: time.Second, Ended: func(id string) { ended = append(ended, id) }})
		defer table.Close()
		begin := func() *session.Held {
			h, err := table.New(new(backend), session.ServerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		want := func(what string, held ...*session.Held) {
			t.Helper()
			var ids []string
			for _, h := range held {
				ids = append(ids, h.ID)
			}
			if !slices.Equal(ended, ids) {
				t.Errorf("%s: %q have ended, want %q", what, ended, ids)
			}
		}
		used, idle, closed := begin(), begin(), begin()
		closing := make(chan struct{})
		closed.AfterClose(func() { close(closing) })
		used.End()
		used.End()
		want("in use")
		used.Release()
		want("left", used)
		idle.Release()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		want("idle", used, idle)
		closed.Release()
		table.Close()
		<-closing
		want("closed", used, idle, closed)
	})
}

// TestQuestionsToALegacyClientAreBounded: one that is gone over HTTP does not tell, and
// holds its call, its session and its server else for good.
func TestQuestionsToALegacyClientAreBounded_TK3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		b := &backend{serve: func(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
			_, err := caller.Ask(ctx, &mcp.Request{Method: mcp.MethodListRoots})
			ended <- err
			return mcp.Result{}, err
		}}
		c := callTool(t, serving(t, b), `{"name":"t"}`)
		id, _ := c.question(t)
		began := time.Now()
		err := <-ended
		if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Limit != "MaxAnswer" || time.Since(began) != session.MaxAnswer {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if got := receive(t, "the withdrawal", c.out); !strings.Contains(got, `"notifications/cancelled","params":{"requestId":`+id+`}`) {
			t.Errorf("the client is told %s", got)
		}
		<-c.done
	})
}

// TestRequestThatBeginsAfterClose: nobody would cancel it.
func TestRequestThatBeginsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{serve: func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			<-ctx.Done()
			return mcp.Result{}, context.Cause(ctx)
		}}
		s := serving(t, b)
		s.Close()
		_, err := s.Handle(t.Context(), scan(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`), nil)
		if !errors.Is(err, mcp.ErrClosed) || mcp.OutcomeOf(err) != mcp.NotSent {
			t.Errorf("got %v", err)
		}
		if n := b.count(mcp.MethodCallTool); n != 0 {
			t.Errorf("the handler got %d calls", n)
		}
	})
}
