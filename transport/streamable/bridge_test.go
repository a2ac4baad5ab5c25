package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

// patience bounds what only a hang would miss.
const patience = 10 * time.Second

var logger = slog.New(slog.DiscardHandler)

func init() {
	if os.Getenv("MCPSPLICE_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

// A serveFunc makes a listening edge of a handler, for clients of one era only, and
// returns how to connect to it.
type serveFunc func(t *testing.T, h mcp.Handler, era mcp.Era) (dial func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error))

var transports = map[string]serveFunc{"stdio": serveStream, "http": serveHTTP, "sse": serveSSE, "loose http": serveLoosely}

// serveStream serves over pipes, as stdio does.
func serveStream(t *testing.T, h mcp.Handler, era mcp.Era) func(context.Context, transport.DialOptions) (transport.Edge, error) {
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	t.Cleanup(func() { cancel(); serving.Wait() })
	return func(dialing context.Context, opts transport.DialOptions) (transport.Edge, error) {
		client, server, err := linkPair()
		if err != nil {
			return nil, err
		}
		serving.Go(func() {
			if err := transport.Serve(ctx, server, h, transport.ServeOptions{Era: era, Logger: logger, Drain: time.Second}); err != nil {
				t.Errorf("serving: %v", err)
			}
		})
		return transport.Dial(dialing, client, opts)
	}
}

func linkPair() (client, server transport.Link, err error) {
	r1, w1, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	link := func(r, w *os.File) transport.Link {
		return transport.NewLineLink(r, w, func() error { return errors.Join(r.Close(), w.Close()) }, transport.LineOptions{})
	}
	return link(r1, w2), link(r2, w1), nil
}

// serveHTTP serves over HTTP on loopback.
func serveHTTP(t *testing.T, h mcp.Handler, era mcp.Era) func(context.Context, transport.DialOptions) (transport.Edge, error) {
	url := listen(t, h, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Era: era, Logger: logger}, Drain: time.Second})
	return func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
		return streamable.Dial(ctx, url, &streamable.DialOptions{DialOptions: opts})
	}
}

// serveSSE is serveHTTP for clients that are given the address of HTTP with SSE, and
// have to find that out.
func serveSSE(t *testing.T, h mcp.Handler, era mcp.Era) func(context.Context, transport.DialOptions) (transport.Edge, error) {
	s, err := streamable.Listen("127.0.0.1:0", h, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Era: era, Logger: logger}, Drain: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	return func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
		return streamable.DialAny(ctx, s.SSEURL(), &streamable.DialOptions{DialOptions: opts})
	}
}

func listen(t *testing.T, h mcp.Handler, opts *streamable.ServerOptions) (url string) {
	t.Helper()
	s, err := streamable.Listen("127.0.0.1:0", h, opts)
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s)
	return s.URL()
}

// serveUntilEnd serves until the end of the test.
func serveUntilEnd(t *testing.T, s *streamable.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
}

// A bench is one client in front of a bridge in front of a server.
type bench struct {
	fixture                *fixture
	client                 transport.Edge
	clientEra, serverEra   mcp.Era
	clientKind, serverKind string
}

const capabilities = `{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true},"vendor":{"x":1}}`

func newBench(t *testing.T, clientKind string, clientEra mcp.Era, serverKind string, serverEra mcp.Era) *bench {
	t.Helper()
	b := &bench{fixture: newFixture(), clientEra: clientEra, serverEra: serverEra, clientKind: clientKind, serverKind: serverKind}
	b.client = bridge(t, b.fixture, side{clientKind, clientEra}, side{serverKind, serverEra}, capabilities)
	return b
}

// A side is how a client, or a server, is connected to a bridge.
type side struct {
	kind string
	era  mcp.Era
}

func (s side) String() string { return s.era.String() + " " + s.kind }

// bridge connects a client with some capabilities to a bridge in front of a server.
func bridge(t *testing.T, h mcp.Handler, client, server side, capabilities string) transport.Edge {
	t.Helper()
	dialServer := transports[server.kind](t, h, server.era)
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return dialServer(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Logger: logger})
	}, transport.PoolOptions{Logger: logger})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	dialBridge := transports[client.kind](t, pool, client.era)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	edge, err := dialBridge(ctx, transport.DialOptions{Capabilities: []byte(capabilities), Logger: logger})
	if err != nil {
		t.Fatalf("connecting to the bridge: %v", err)
	}
	t.Cleanup(func() {
		if err := edge.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return edge
}

// A recorder is a Caller that keeps what it is told.
type recorder struct {
	mu     sync.Mutex
	heard  []string
	signal chan string
}

func newRecorder() *recorder { return &recorder{signal: make(chan string, 100)} }

func (r *recorder) Notify(_ context.Context, n *mcp.Notification) error {
	line := n.Method + " " + string(n.Params.Raw())
	r.mu.Lock()
	r.heard = append(r.heard, line)
	r.mu.Unlock()
	r.signal <- line
	return nil
}

func (r *recorder) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != mcp.MethodElicit {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	return mcp.RawResult([]byte(`{"action":"accept","content":{"name":"Ada"}}`)), nil
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

// request returns a request as the client's own library would make it.
func (b *bench) request(t *testing.T, method, params string) *mcp.Request {
	t.Helper()
	v, err := jsonrpc.ParseValue([]byte(params))
	if err != nil {
		t.Fatal(err)
	}
	return &mcp.Request{Method: method, Params: v, Meta: mcp.Metadata{
		Client: []byte(`{"name":"tester","version":"1"}`), Capabilities: []byte(capabilities),
	}}
}

func (b *bench) do(t *testing.T, req *mcp.Request, caller mcp.Caller) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := b.client.Handle(ctx, req, caller)
	return string(result.Raw()), err
}

// want asserts a result, in which modern clients get members that others do not.
func (b *bench) want(t *testing.T, method, params, legacy, modern string) {
	t.Helper()
	got, err := b.do(t, b.request(t, method, params), mcp.NoCaller{})
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	want := legacy
	if b.clientEra == mcp.Modern {
		want = strings.TrimSuffix(legacy, "}") + "," + modern + "}"
	}
	// A legacy server is asked through a modern edge in front of the fixture,
	// so that a result may have these members already.
	if b.clientEra == mcp.Legacy && b.serverEra == mcp.Modern {
		want = strings.TrimSuffix(legacy, "}") + "," + modern + "}"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s (-want +got):\n%s", method, params, diff)
	}
}

const (
	complete  = `"resultType":"complete"`
	cacheable = `"resultType":"complete","ttlMs":0,"cacheScope":"private"`
)

// sides are all that a bridge can have on either hand.
var sides = []side{{"stdio", mcp.Legacy}, {"stdio", mcp.Modern}, {"http", mcp.Legacy}, {"http", mcp.Modern}, {"sse", mcp.Legacy}}

// inAllCombinations runs f for each client in front of each server.
func inAllCombinations(t *testing.T, f func(t *testing.T, client, server side)) {
	for _, client := range sides {
		for _, server := range sides {
			t.Run(client.String()+" to "+server.String(), func(t *testing.T) { f(t, client, server) })
		}
	}
}

func TestBridgeCarriesEverythingInAllCombinations(t *testing.T) {
	inAllCombinations(t, func(t *testing.T, client, server side) {
		b := newBench(t, client.kind, client.era, server.kind, server.era)
		t.Run("discovery", b.testDiscovery)
		t.Run("results", b.testResults)
		t.Run("errors", b.testErrors)
		t.Run("progress", b.testProgress)
		t.Run("log", b.testLog)
		t.Run("cancellation", b.testCancellation)
		t.Run("changes", b.testChanges)
		t.Run("questions", b.testQuestions)
		t.Run("headers", b.testHeaders)
	})
}

func (b *bench) testDiscovery(t *testing.T) {
	info := b.client.Server()
	if info.Era != b.clientEra {
		t.Errorf("the bridge was taken for %s", info.Era)
	}
	if got := string(mcp.ServerInfo(&info.Discover)); got != `{"name":"fixture","version":"1.2.3"}` {
		t.Errorf("server info is %s", got)
	}
	if got, _ := info.Discover.LookupString("instructions"); got != "try it" {
		t.Errorf("instructions are %q", got)
	}
	if c := mcp.ReadServerCapabilities(&info.Discover.Value); !c.Resources.Subscribe || !c.Tools.ListChanged || c.Logging == nil {
		t.Errorf("capabilities are lost: %s", info.Discover.Raw())
	}
}

func (b *bench) testResults(t *testing.T) {
	b.want(t, "tools/list", `{}`, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},`+
		`{"name":"regional","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}],"nextCursor":"p\"2"}`, cacheable)
	b.want(t, "tools/list", `{"cursor":"p2"}`, `{"tools":[{"name":"p2","inputSchema":{"type":"object"}}],"vendor":1.0}`, cacheable)
	b.want(t, "tools/call", `{"name":"echo","arguments":{"id":9007199254740993,"z":-0,"text":"\u00e9\ud800"},"vendor":[1.0]}`,
		`{"content":[],"structuredContent":{"id":9007199254740993,"z":-0,"text":"\u00e9\ud800"},"vendor":{"b":1,"a":1e2}}`, complete)
	b.want(t, "resources/list", `{}`, `{"resources":[{"uri":"test://a","name":"a"}]}`, cacheable)
	b.want(t, "resources/templates/list", `{}`, `{"resourceTemplates":[{"uriTemplate":"test://{x}","name":"t"}]}`, cacheable)
	b.want(t, "resources/read", `{"uri":"test://a"}`, `{"contents":[{"uri":"test://a","text":"content"}]}`, cacheable)
	b.want(t, "prompts/list", `{}`, `{"prompts":[{"name":"p"}]}`, cacheable)
	b.want(t, "prompts/get", `{"name":"p"}`, `{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`, complete)
	b.want(t, "completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
		`{"completion":{"values":["one","two"]}}`, complete)
}

func (b *bench) testErrors(t *testing.T) {
	_, err := b.do(t, b.request(t, "tools/call", `{"name":"fail"}`), mcp.NoCaller{})
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != 12345 || e.Message != "no luck" || string(e.Data.Raw()) != `{"why":[1,2]}` {
		t.Errorf("B148: the server's error became %v", err)
	}
	_, err = b.do(t, b.request(t, "vendor/unknown", `{}`), mcp.NoCaller{})
	if !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "")) {
		t.Errorf("B034: an unknown method is answered with %v", err)
	}
	_, err = b.do(t, b.request(t, "resources/read", `{"uri":"test://none"}`), mcp.NoCaller{})
	code := jsonrpc.CodeResourceNotFound
	if b.clientEra == mcp.Modern || b.serverEra == mcp.Modern {
		code = jsonrpc.CodeInvalidParams
	}
	if !errors.Is(err, jsonrpc.Errorf(code, "")) {
		t.Errorf("a missing resource is answered with %v, want code %d", err, code)
	}
	_, err = b.do(t, b.request(t, "tools/call", `{"name":"panic"}`), mcp.NoCaller{})
	if !errors.Is(err, jsonrpc.Errorf(jsonrpc.CodeInternalError, "")) {
		t.Errorf("a panic is answered with %v", err)
	}
}

func (b *bench) testProgress(t *testing.T) {
	for _, token := range []string{`"a\u0062c"`, `7`} {
		req := b.request(t, "tools/call", `{"name":"progress","_meta":{"progressToken":`+token+`,"vendor":1}}`)
		meta := req.Params.Get("_meta")
		req.Meta.ProgressToken = mcp.ReadProgressToken(&meta)
		r := newRecorder()
		if _, err := b.do(t, req, r); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := 1; i <= 3; i++ {
			want = append(want, fmt.Sprintf(`notifications/progress {"progress":%d,"total":3,"progressToken":%s}`, i, token))
		}
		if diff := cmp.Diff(want, r.lines()); diff != "" {
			t.Errorf("B139: progress (-want +got):\n%s", diff)
		}
	}
	r := newRecorder()
	if _, err := b.do(t, b.request(t, "tools/call", `{"name":"progress"}`), r); err != nil {
		t.Fatal(err)
	}
	if got := r.lines(); len(got) > 0 {
		t.Errorf("B139: progress for a call that wants none: %q", got)
	}
}

func (b *bench) testLog(t *testing.T) {
	req := b.request(t, "tools/call", `{"name":"log"}`)
	req.Meta.LogLevel = "warning"
	r := newRecorder()
	if _, err := b.do(t, req, r); err != nil {
		t.Fatal(err)
	}
	got := r.lines()
	// A legacy client's messages that outrun their call belong to the session.
	want := []string{
		`notifications/message {"level":"warning","data":"warning message"}`,
		`notifications/message {"level":"error","data":"error message"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log messages (-want +got):\n%s", diff)
	}
}

func (b *bench) testCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.client.Handle(ctx, b.request(t, "tools/call", `{"name":"slow"}`), mcp.NoCaller{})
		ended <- err
	}()
	await(t, b.fixture.started)
	cancel()
	await(t, ended)
	if got := await(t, b.fixture.cancelled); got != "slow" {
		t.Errorf("B136: %s was cancelled", got)
	}
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func (b *bench) testChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := b.request(t, "subscriptions/listen", `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]}}`)
	r := newRecorder()
	ended := make(chan error, 1)
	go func() {
		_, err := b.client.Handle(ctx, req, r)
		ended <- err
	}()
	if got := await(t, r.signal); !strings.HasPrefix(got, "notifications/subscriptions/acknowledged ") || !strings.Contains(got, "test://a") {
		t.Fatalf("B121: the first message is %s", got)
	}
	update := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://a","n":1.0}`))}
	other := &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"test://b"}`))}
	list := &mcp.Notification{Method: mcp.NotificationToolsListChanged}
	for _, change := range []struct {
		n    *mcp.Notification
		want string
	}{{update, `"uri":"test://a","n":1.0`}, {list, "notifications/tools/list_changed"}} {
		b.fixture.change(other)
		stop := time.NewTicker(20 * time.Millisecond)
		// A legacy path subscribes beside the acknowledgement of lists: the
		// change is repeated until it is heard.
		for heard := false; !heard; {
			b.fixture.change(change.n)
			select {
			case got := <-r.signal:
				if strings.Contains(got, "test://b") {
					t.Errorf("B152: %s was not subscribed to", got)
				}
				heard = strings.Contains(got, change.want)
			case <-stop.C:
			case <-ctx.Done():
				t.Fatal("no change came")
			}
		}
		stop.Stop()
	}
	cancel()
	await(t, ended)
}

// testQuestions: a handler asks, wherever its client is and whatever that speaks.
func (b *bench) testQuestions(t *testing.T) {
	got, err := b.do(t, b.request(t, "tools/call", `{"name":"ask"}`), newRecorder())
	if b.clientEra == mcp.Modern {
		if err != nil {
			t.Fatal(err)
		}
		v := jsonrpc.Trusted([]byte(got))
		want := `{"method":"elicitation/create","params":` + question + `}`
		if !strings.Contains(got, want) {
			t.Fatalf("B151: the result is %s", got)
		}
		state, _ := v.Lookup("requestState")
		got, err = b.do(t, b.request(t, "tools/call", `{"name":"ask","inputResponses":{"q1":`+accepted+`},"requestState":`+string(state)+`}`), mcp.NoCaller{})
	}
	if err != nil || !strings.Contains(got, `"answer":`+accepted) {
		t.Errorf("B151: the answer is %s, %v", got, err)
	}
	b.testInput(t)
}

const accepted = `{"action":"accept","content":{"name":"Ada"}}`

// testInput: a modern server's own input_required passes to modern clients, and
// is put to legacy ones.
func (b *bench) testInput(t *testing.T) {
	if b.serverEra == mcp.Legacy {
		return // it has no such result
	}
	got, err := b.do(t, b.request(t, "tools/call", `{"name":"input"}`), newRecorder())
	if b.clientEra == mcp.Modern {
		if err != nil || !strings.Contains(got, `"requestState":"s\u0031"`) {
			t.Fatalf("B151: the result is %s, %v", got, err)
		}
		got, err = b.do(t, b.request(t, "tools/call", `{"name":"input","inputResponses":{"who":`+accepted+`},"requestState":"s\u0031"}`), mcp.NoCaller{})
	}
	if err != nil || !strings.Contains(got, `"state":"s\u0031","answers":{"who":`+accepted+`}`) {
		t.Errorf("B151: the retry gives %s, %v", got, err)
	}
}

func (b *bench) testHeaders(t *testing.T) {
	got, err := b.do(t, b.request(t, "tools/call", `{"name":"regional","arguments":{"region":"Zürich"}}`), mcp.NoCaller{})
	if err != nil || !strings.Contains(got, `"ok"`) {
		t.Errorf("B119: a tool with header annotations gives %s, %v", got, err)
	}
}

// TestBridgeBuffersNothing has a server go on only when the client has what it
// wrote, and a client leave in the middle.
func TestBridgeBuffersNothing(t *testing.T) {
	heard, gone := make(chan bool), make(chan bool, 1)
	upstream := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		token := m.Meta.Get("progressToken")
		if string(m.Method) != "tools/call" {
			writeResult(w, m, `{"tools":[]}`)
			return
		}
		writeStream(w)
		for i := 1; ; i++ {
			writeMore(w, event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token.Raw(), i)))
			select {
			case goOn := <-heard:
				if !goOn {
					writeMore(w, resultEvent(m, `{"content":[]}`))
					return
				}
			case <-r.Context().Done():
				gone <- true
				return
			}
		}
	}))
	pool := transport.NewPool(func(ctx context.Context, _ *mcp.Metadata) (transport.Edge, error) {
		c, err := streamable.Dial(ctx, upstream.url, nil)
		if err != nil {
			return nil, err
		}
		return c, nil
	}, transport.PoolOptions{})
	t.Cleanup(func() { _ = pool.Close() })
	b := serving(t, pool, strictServer(t))
	for _, leaves := range []bool{false, true} {
		body := progressing(mcp.Modern)
		resp := b.open(t, http.MethodPost, body, modernHeader(t, body))
		events := readEvents(resp)
		for i := 1; i <= 3; i++ {
			// B095, B139: before the server says more, and under the client's own token.
			events.await(t, fmt.Sprintf(`"progress":%d`, i))
			if i < 3 {
				heard <- true
			}
		}
		if leaves {
			_ = resp.Body.Close()
			await(t, gone) // B095, B122
			continue
		}
		heard <- false
		events.await(t, `"id":1,"result"`)
		events.wantEnd(t)
	}
}

func TestClientsWithOneTokenShareAConnection(t *testing.T) {
	upstream := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) != "tools/call" {
			writeResult(w, m, `{"tools":[]}`)
			return
		}
		token := m.Meta.Get("progressToken")
		writeStream(w, event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(token.Raw())+`,"progress":1}}`),
			event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"unknown","progress":2}}`), resultEvent(m, `{}`))
	}))
	c := dial(t, upstream.url, nil)
	var calling sync.WaitGroup
	for _, token := range []jsonrpc.ID{jsonrpc.IntID(1), jsonrpc.StringID("1"), jsonrpc.IntID(1)} {
		calling.Go(func() {
			r := newRecorder()
			req := toolRequest("t", "{}")
			req.Meta.ProgressToken = token
			if _, err := c.Handle(t.Context(), req, r); err != nil {
				t.Error(err)
			}
			want := []string{`notifications/progress {"progressToken":` + token.String() + `,"progress":1}`}
			if diff := cmp.Diff(want, r.lines()); diff != "" {
				t.Errorf("B139 (-want +got):\n%s", diff)
			}
		})
	}
	calling.Wait()
	tokens := map[string]bool{}
	for _, s := range upstream.seen("tools/call") {
		_, token, _ := strings.Cut(s.body, `"progressToken":`)
		tokens[token[:1]] = true
	}
	if len(tokens) != 3 {
		t.Errorf("B139: the server saw the tokens %v", tokens)
	}
}
