//go:build unix

package stdio_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// lineSizes are those at which readers of lines give up, and large ones.
var lineSizes = []int{65_535, 65_536, 65_537, 1 << 20, 5 << 20}

// sizing answers a call with a line of as many bytes as its argument n says, and
// any other message with its size and digest.
var sizing = newMode("sizing", func(c *child) int {
	c.handshake()
	for {
		line, err := c.lines.ReadLine()
		if err != nil {
			return 0
		}
		var m jsonrpc.Message
		if err := jsonrpc.Scan(line, &m); err != nil {
			c.fail("%v", err)
		}
		arguments := m.Body.Get("arguments")
		var n int
		raw, _ := arguments.Lookup("n")
		if _, err := fmt.Sscan(string(raw), &n); err != nil {
			c.answer(&m, fmt.Sprintf(`{"size":%d,"digest":"%x"}`, len(line), sha256.Sum256(line)))
			continue
		}
		c.say(lineOf(&m, n))
	}
})

// lineOf returns an answer of n bytes.
func lineOf(m *jsonrpc.Message, n int) string {
	return response(m, `{"text":"`+strings.Repeat("A", n-len(response(m, `{"text":""}`)))+`"}`)
}

// A taped keeps the last message of a connection each way.
type taped struct {
	mu   sync.Mutex
	last map[bool][]byte // by outgoing, guarded by mu
}

func (l *taped) tap(outgoing bool, message []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[bool][]byte)
	}
	l.last[outgoing] = append(l.last[outgoing][:0], message...)
}

// size returns the size of the last message, and its digest.
func (l *taped) size(outgoing bool) (int, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.last[outgoing]), fmt.Sprintf("%x", sha256.Sum256(l.last[outgoing]))
}

func TestB001LinesOfAllSizes(t *testing.T) {
	t.Run("from the server", func(t *testing.T) {
		var last taped
		o := legacy()
		o.Tap = last.tap
		c := dial(t, sizing.command(), o)
		for _, n := range lineSizes {
			got := succeed(t, c, "x", fmt.Sprintf(`{"n":%d}`, n))
			if size, _ := last.size(false); size != n || strings.Count(got, "A") != n-(size-len(got))-len(`{"text":""}`) {
				t.Errorf("B001: of a line of %d bytes came %d", n, size)
			}
			succeed(t, c, "small", `{"n":100}`)
		}
	})
	t.Run("to the server", func(t *testing.T) {
		var last taped
		o := legacy()
		o.Tap = last.tap
		c := dial(t, sizing.command(), o)
		for _, n := range lineSizes {
			succeed(t, c, "x", `{"text":""}`)
			empty, _ := last.size(true)
			if id := lastID(t, &last); len(fmt.Sprint(id+1)) > len(fmt.Sprint(id)) {
				empty++
			}
			got := succeed(t, c, "x", `{"text":"`+strings.Repeat("A", n-empty)+`"}`)
			size, digest := last.size(true)
			if size != n || got != fmt.Sprintf(`{"size":%d,"digest":"%s"}`, n, digest) {
				t.Errorf("B001: a line of %d bytes, %d wanted, came to %s", size, n, got)
			}
		}
	})
}

// lastID returns the id of the last request.
func lastID(t *testing.T, l *taped) int64 {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var m jsonrpc.Message
	if err := jsonrpc.Scan(l.last[true], &m); err != nil {
		t.Fatal(err)
	}
	id, _ := m.ID.Int()
	return id
}

func TestB002LineBeyondTheLimitFailsCallsAndIsPassedOver(t *testing.T) {
	const limit = 100_000
	for _, tt := range []struct {
		n       int
		tooLong bool
	}{{limit, false}, {limit + 1, true}, {50 * limit, true}} {
		t.Run(fmt.Sprintf("B002 %d bytes", tt.n), func(t *testing.T) {
			o := legacy()
			o.MaxLine = limit
			c := dial(t, sizing.command(), o)
			_, err := call(t, c, "x", fmt.Sprintf(`{"n":%d}`, tt.n))
			if !tt.tooLong && err != nil {
				t.Error(err)
			}
			if tt.tooLong {
				wantFailure(t, err, mcp.LimitExceeded, mcp.MaybeExecuted)
				long, ok := errors.AsType[*jsonrpc.LineTooLongError](err)
				if !ok || long.Limit != limit || long.Seen != tt.n {
					t.Errorf("got %v", err)
				}
				mention(t, err.Error(), "MaxLine", "100000", fmt.Sprint(tt.n))
			}
			// Id 7, so to speak.
			succeed(t, c, "x", `{"n":200}`)
		})
	}
}

// flooding writes MiB without a newline, 4 KiB at a time, and then answers.
var flooding = newMode("flooding", func(c *child) int {
	c.handshake()
	m := c.expect(mcp.MethodCallTool)
	var mib int
	if _, err := fmt.Sscan(c.args[0], &mib); err != nil {
		c.fail("%v", err)
	}
	piece := strings.Repeat("A", 4096)
	for range mib << 8 {
		c.write(piece)
	}
	c.say("")
	for ; m != nil; m = c.next() {
		c.answer(m, ok)
	}
	return 0
})

func TestB002FloodWithoutNewlineTakesNoMemory(t *testing.T) {
	const mib = 64
	o := legacy()
	o.MaxLine = 1 << 20
	c := dial(t, flooding.command(fmt.Sprint(mib)), o)
	inUse, had := heap()
	began := time.Now()
	_, err := call(t, c, "x", "{}")
	wantFailure(t, err, mcp.LimitExceeded, mcp.MaybeExecuted)
	succeed(t, c, "x", "{}")
	nowInUse, has := heap()
	if nowInUse-inUse > 4<<20 || has-had > 32<<20 {
		t.Errorf("the heap has grown by %d bytes, of which %d are in use", has-had, nowInUse-inUse)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("%d MiB took %v", mib, took)
	}
}

func TestS131FramesAreOneLine(t *testing.T) {
	c := dial(t, sizing.command(), legacy())
	for _, arguments := range []string{"{\n}", "{\"text\":\r\n\"x\\n\"\n\t}"} {
		// A second line would be no message, and the child would say so.
		succeed(t, c, "x", arguments)
	}
}

func TestS168RequestsToAServerThatDoesNotRead(t *testing.T) {
	o := impatient()
	c := dial(t, neverReads.command(), o)
	before, _ := heap()
	const limit = 500 * time.Millisecond
	text := `{"text":"` + strings.Repeat("x", 64<<10) + `"}`
	var calls []*pending
	began := time.Now()
	for range 1000 {
		calls = append(calls, startWithin(t, limit, c, toolCall("x", text), mcp.NoCaller{}))
	}
	sent := 0
	for _, p := range calls {
		_, err := p.wait(t)
		e := failure(t, err)
		if e.Kind != mcp.TimedOut {
			t.Fatalf("R18: got %v", err)
		}
		if e.Outcome != mcp.NotSent {
			sent++
		}
		if took := p.ended.Sub(began); took > patience { // a busy machine takes its time to begin a thousand
			t.Fatalf("R18: a call ended after %v", took)
		}
	}
	if sent == 0 || sent > 200 {
		t.Errorf("S1.69: %d requests of 64 KiB were queued", sent)
	}
	// The requests themselves are ours.
	if now, _ := heap(); now-before > 100<<20 {
		t.Errorf("S1.69: the heap has grown by %d bytes", now-before)
	}
	began = time.Now()
	end(t, c)
	if took := time.Since(began); took > 2*o.ExitWait+promptly {
		t.Errorf("R18: closing took %v", took)
	}
}

// TestR18CallersWithoutDeadline: MaxCall bounds their waiting for room as well.
func TestR18CallersWithoutDeadline(t *testing.T) {
	o := impatient()
	o.MaxCall = 2 * time.Second // initialize is bounded by it as well
	c := dial(t, neverReads.command(), o)
	text := `{"text":"` + strings.Repeat("x", 64<<10) + `"}`
	var calls []*pending
	began := time.Now()
	for range 200 {
		calls = append(calls, start(t, c, toolCall("x", text), mcp.NoCaller{}))
	}
	unsent := 0
	for _, p := range calls {
		_, err := p.wait(t)
		e := failure(t, err)
		if e.Kind != mcp.TimedOut {
			t.Fatalf("got %v", err)
		}
		if took := p.ended.Sub(began); took > patience {
			t.Fatalf("a call ended after %v", took)
		}
		if e.Outcome == mcp.NotSent {
			unsent++
		}
	}
	if unsent == 0 || unsent == len(calls) {
		t.Errorf("%d of %d requests were not sent", unsent, len(calls))
	}
	end(t, c)
}

// neverReads reads nothing after the handshake.
var neverReads = newMode("never reads", func(c *child) int {
	c.handshake()
	forever()
	return 0
})
