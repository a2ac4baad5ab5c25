//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary is its own child: the variable says as what.
const modeVar = "STDIO_TEST_MODE"

func TestMain(m *testing.M) {
	if name := os.Getenv(modeVar); name != "" {
		// Not os.Exit: under the race detector that takes a second.
		syscall.Exit(children[name](newChild()))
	}
	goleak.VerifyTestMain(m)
}

// children are what the test binary can be as a child. Each returns its exit
// status.
var children = make(map[string]func(*child) int)

// A mode names one of the children.
type mode string

func newMode(name string, run func(*child) int) mode {
	children[name] = run
	return mode(name)
}

// command starts the test binary in a mode.
func (m mode) command(args ...string) stdio.Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return stdio.Command{
		Path: exe, Args: args,
		Env: map[string]string{modeVar: string(m), "GOCOVERDIR": os.TempDir()},
	}
}

// A child is a scripted server: the other side of the tests.
type child struct {
	args  []string
	lines *jsonrpc.LineReader
	kept  []*jsonrpc.Message // came before an answer that was waited for
}

func newChild() *child {
	return &child{args: os.Args[1:], lines: jsonrpc.NewLineReader(os.Stdin, 64<<20)}
}

// next returns the next message, nil at the end of the input.
func (c *child) next() *jsonrpc.Message {
	if len(c.kept) > 0 {
		m := c.kept[0]
		c.kept = c.kept[1:]
		return m
	}
	return c.read()
}

func (c *child) read() *jsonrpc.Message {
	line, err := c.lines.ReadLine()
	if err != nil {
		return nil
	}
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan(line, m); err != nil {
		c.fail("%.200q: %v", line, err)
	}
	return m
}

// expect returns the next message, which must be of a method.
func (c *child) expect(method string) *jsonrpc.Message {
	m := c.next()
	if m == nil || string(m.Method) != method {
		c.fail("no %s", method)
	}
	return m
}

// fail ends the child with a status that no test expects.
func (c *child) fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "the child failed: "+format+"\n", args...)
	syscall.Exit(97)
}

func (c *child) write(text string) { _, _ = io.WriteString(os.Stdout, text) }

// say writes lines.
func (c *child) say(lines ...string) { c.write(strings.Join(lines, "\n") + "\n") }

func (c *child) answer(m *jsonrpc.Message, result string) { c.say(response(m, result)) }

func response(m *jsonrpc.Message, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

const initialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},` +
	`"serverInfo":{"name":"child","version":"1"}}`

// handshake answers the handshake of a legacy server.
func (c *child) handshake() {
	c.answer(c.expect(mcp.MethodInitialize), initialized)
	c.expect(mcp.NotificationInitialized)
}

// untilEOF reads on to the end of the input.
func (c *child) untilEOF() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func forever() { <-time.After(time.Hour) }

// patience is how long a busy machine may take for what takes milliseconds.
const patience = 20 * time.Second

// promptly is how long a busy machine may take for the failing of calls, for which
// documents promise a second. Only a hang misses it.
const promptly = patience / 2

// legacy are options for a server that is not to be probed.
func legacy() *stdio.DialOptions {
	return &stdio.DialOptions{DialOptions: transport.DialOptions{Era: mcp.Legacy}, ExitWait: patience}
}

// impatient are options for a child that will not end by itself.
func impatient() *stdio.DialOptions {
	o := legacy()
	o.ExitWait = 50 * time.Millisecond
	return o
}

// dial starts a server that must start, and checks that nothing of it is left at
// the end of the test.
func dial(t *testing.T, cmd stdio.Command, opts *stdio.DialOptions) *stdio.Conn {
	t.Helper()
	c, err := tryDial(t, cmd, opts)
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	return c
}

func tryDial(t *testing.T, cmd stdio.Command, opts *stdio.DialOptions) (*stdio.Conn, error) {
	t.Helper()
	nothingLeft(t)
	return another(t, cmd, opts)
}

// another starts one more server in a test that checks already what is left.
func another(t *testing.T, cmd stdio.Command, opts *stdio.DialOptions) (*stdio.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := stdio.Dial(ctx, cmd, opts)
	if err == nil {
		t.Cleanup(func() { end(t, c) })
	}
	return c, err
}

// end closes a connection and checks that the child is gone then.
func end(t *testing.T, c *stdio.Conn) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	select {
	case <-c.Gone():
	default:
		t.Error("after Close the child is not gone")
	}
	if unix.Kill(c.PID(), 0) == nil {
		t.Errorf("after Close process %d is still there", c.PID())
	}
}

// nothingLeft checks at the end of the test that it leaves no child process and
// no descriptor.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := descriptors(t)
	t.Cleanup(func() {
		eventually(t, "the end of all child processes", childless)
		eventually(t, fmt.Sprintf("at most %d descriptors", before), func() bool { return descriptors(t) <= before })
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	// The poller's own are made with the first pipe.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// eventually waits for a condition that nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	over := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-over:
			t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

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

// running reports whether a process runs; a zombie does not.
func running(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, noProc := os.Stat("/proc/self/stat")
		return noProc != nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// toolCall is a call of a tool.
func toolCall(name, arguments string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool,
		Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, arguments)),
	}
}

// call makes a call that takes no longer than patience.
func call(t *testing.T, h mcp.Handler, name, arguments string) (string, error) {
	t.Helper()
	return start(t, h, toolCall(name, arguments), mcp.NoCaller{}).wait(t)
}

// succeed makes a call that must succeed.
func succeed(t *testing.T, h mcp.Handler, name, arguments string) string {
	t.Helper()
	result, err := call(t, h, name, arguments)
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return result
}

// A pending is a call in the background.
type pending struct {
	cancel context.CancelFunc
	done   chan struct{}
	ended  time.Time
	result mcp.Result
	err    error
}

// start makes a call that ends with the test at the latest.
func start(t *testing.T, h mcp.Handler, req *mcp.Request, caller mcp.Caller) *pending {
	return startWithin(t, patience, h, req, caller)
}

func startWithin(t *testing.T, limit time.Duration, h mcp.Handler, req *mcp.Request, caller mcp.Caller) *pending {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	p := &pending{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result, p.err = h.Handle(ctx, req, caller)
		p.ended = time.Now()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

func (p *pending) wait(t *testing.T) (string, error) {
	t.Helper()
	receive(t, "the end of a call", p.done)
	return string(p.result.Raw()), p.err
}

// failure returns the CallError that err must be.
func failure(t *testing.T, err error) *mcp.CallError {
	t.Helper()
	e, ok := errors.AsType[*mcp.CallError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	return e
}

// wantFailure checks how a call failed.
func wantFailure(t *testing.T, err error, kind mcp.FailureKind, outcome mcp.Outcome) {
	t.Helper()
	if e := failure(t, err); e.Kind != kind || e.Outcome != outcome {
		t.Errorf("got %v, want %s, %s", err, kind, outcome)
	}
}

// mention checks that a text holds all parts.
func mention(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not mention %q", text, part)
		}
	}
}
