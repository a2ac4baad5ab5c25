package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// patience is how long a busy machine may take for what takes milliseconds. In a
// synctest bubble it passes when nothing else is left to happen.
const patience = 20 * time.Second

// receive waits for a value.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// A peer is the other end of a link, played by the test.
type peer struct {
	t        *testing.T
	conn     net.Conn
	lines    *jsonrpc.LineReader
	patience time.Duration
}

// newLink returns a link in memory and its other end.
func newLink(t *testing.T, opts transport.LineOptions) (transport.Link, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	return transport.NewLineLink(ours, ours, ours.Close, opts),
		&peer{t: t, conn: theirs, lines: jsonrpc.NewLineReader(theirs, 64<<20), patience: patience}
}

// write writes bytes as they are.
func (p *peer) write(text string) {
	p.t.Helper()
	// An error is that of a closed link, which writing meets as well.
	_ = p.conn.SetWriteDeadline(time.Now().Add(p.patience))
	if _, err := io.WriteString(p.conn, text); err != nil {
		p.t.Fatalf("writing %.100q: %v", text, err)
	}
}

// say writes lines.
func (p *peer) say(lines ...string) {
	p.t.Helper()
	p.write(strings.Join(lines, "\n") + "\n")
}

// line returns the next line, "" at the end.
func (p *peer) line() string {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(p.patience))
	line, err := p.lines.ReadLine()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe):
		return ""
	case err != nil:
		p.t.Fatalf("reading a line: %v", err)
	}
	return string(line)
}

// drain reads whatever comes until the link ends.
func (p *peer) drain() {
	_ = p.conn.SetDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, p.conn)
}

// message returns the next message.
func (p *peer) message() *jsonrpc.Message {
	p.t.Helper()
	line := p.line()
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan([]byte(line), m); err != nil {
		p.t.Fatalf("%.200q: %v", line, err)
	}
	return m
}

// expect returns the next message, which must be of a method.
func (p *peer) expect(method string) *jsonrpc.Message {
	p.t.Helper()
	m := p.message()
	if string(m.Method) != method {
		p.t.Fatalf("%s came instead of %s: %s", m.Method, method, m.Body.Raw())
	}
	return m
}

// answer answers a request with a result.
func (p *peer) answer(m *jsonrpc.Message, result string) {
	p.t.Helper()
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

// fail answers a request with an error.
func (p *peer) fail(m *jsonrpc.Message, code int, data string) {
	p.t.Helper()
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no","data":%s}}`, m.ID, code, data))
}

const (
	serverInfo   = `"serverInfo":{"name":"fake","version":"1"}`
	capabilities = `"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`
)

// handshake answers a legacy client's handshake.
func (p *peer) handshake(revision mcp.Revision) {
	p.t.Helper()
	p.answer(p.expect(mcp.MethodInitialize), initialized(revision))
	p.expect(mcp.NotificationInitialized)
}

func initialized(revision mcp.Revision) string {
	return `{"protocolVersion":"` + string(revision) + `",` + serverInfo + `,` + capabilities + `}`
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],` + capabilities + `}`

// A dialed is what came of a Dial in the background.
type dialed struct {
	conn *transport.Conn
	err  error
}

// dial dials in the background.
func dial(t *testing.T, opts transport.DialOptions, line transport.LineOptions) (*peer, <-chan dialed) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	link, p := newLink(t, line)
	done := make(chan dialed, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := transport.Dial(ctx, link, opts)
		if conn != nil {
			t.Cleanup(func() {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		done <- dialed{conn, err}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return p, done
}

// connect returns a connection to a server of the era that opts name, legacy by
// default, and the server.
func connect(t *testing.T, opts transport.DialOptions, line transport.LineOptions) (*transport.Conn, *peer) {
	t.Helper()
	if opts.Era == mcp.NoEra {
		opts.Era = mcp.Legacy
	}
	p, done := dial(t, opts, line)
	if opts.Era == mcp.Modern {
		p.answer(p.expect(mcp.MethodDiscover), discovered)
	} else {
		p.handshake(mcp.Revision20250618)
	}
	d := receive(t, "the connection", done)
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.conn, p
}

// A call is one in the background.
type call struct {
	done   chan struct{}
	cancel context.CancelCauseFunc
	result mcp.Result
	err    error
}

// start makes a call that ends with the test at the latest.
func start(t *testing.T, h mcp.Handler, req *mcp.Request, caller mcp.Caller) *call {
	t.Helper()
	return startWith(t.Context(), t, h, req, caller)
}

// startWith is start with a context of the test's.
func startWith(ctx context.Context, t *testing.T, h mcp.Handler, req *mcp.Request, caller mcp.Caller) *call {
	t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(c.done)
		c.result, c.err = h.Handle(ctx, req, caller)
	}()
	t.Cleanup(func() {
		cancel(nil)
		<-c.done
	})
	return c
}

// wait returns what the call ended with.
func (c *call) wait(t *testing.T) (string, error) {
	t.Helper()
	receive(t, "the end of a call", c.done)
	return string(c.result.Raw()), c.err
}

// failure returns the CallError that the call must end with.
func (c *call) failure(t *testing.T) *mcp.CallError {
	t.Helper()
	result, err := c.wait(t)
	e, ok := errors.AsType[*mcp.CallError](err)
	if !ok {
		t.Fatalf("got %s, %v", result, err)
	}
	return e
}

// modernMeta is the metadata of a modern client with a name.
func modernMeta(client string) mcp.Metadata {
	return mcp.Metadata{
		Revision: mcp.Revision20260728, Session: client,
		Client: []byte(`{"name":"` + client + `","version":"1"}`), Capabilities: []byte("{}"),
	}
}

// legacyMeta is the metadata of a legacy client with a name.
func legacyMeta(client string) mcp.Metadata {
	return mcp.Metadata{Revision: mcp.Revision20250618, Session: client, Capabilities: []byte("{}")}
}

// toolCall is a request that a test need not look at.
func toolCall(meta mcp.Metadata) *mcp.Request {
	params := `{"name":"x","arguments":{}}`
	if meta.Revision.Era() == mcp.Modern {
		params = `{"name":"x","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	}
	return &mcp.Request{Method: mcp.MethodCallTool, Params: jsonrpc.Trusted([]byte(params)), Meta: meta}
}

// A listener is a caller that keeps what it is told.
type listener struct {
	got chan string
	ask func(ctx context.Context, req *mcp.Request) (mcp.Result, error)
}

func newListener() *listener { return &listener{got: make(chan string, 10_000)} }

func (l *listener) Notify(ctx context.Context, n *mcp.Notification) error {
	select {
	case l.got <- n.Method + " " + string(n.Params.Raw()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *listener) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if l.ask == nil {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	return l.ask(ctx, req)
}

// told returns what has come so far.
func (l *listener) told() []string {
	var all []string
	for {
		select {
		case s := <-l.got:
			all = append(all, s)
		default:
			return all
		}
	}
}

// A journal is a log that a test can look at.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
