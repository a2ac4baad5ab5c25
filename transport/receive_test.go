package transport_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// noise is what servers print that is no message.
var noise = []string{
	"Server v1.2 ready", "", "   ", "[1] warn: {not json", "\x1b[32mok\x1b[0m", // B004
	`{"level":"info","msg":"up"}`, `42`, `null`, `"hi"`, `[]`, // B005
	`{"jsonrpc":"1.0","id":4,"method":"ping"}`, `{"id":5,"method":"ping"}`, `{"jsonrpc":"2.0"}`,
	"\xff\xfe",
	`{"jsonrpc":"2.0","id":1.5,"result":{}}`, `{"jsonrpc":"2.0","id":true,"result":{}}`, // B023
	`{"jsonrpc":"2.0","id":{},"result":{}}`, `{"jsonrpc":"2.0","id":[1],"result":{}}`, `{"jsonrpc":"2.0","id":1e400,"result":{}}`,
	`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","result":{}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
	`{"jsonrpc":"2.0","id":999,"result":{}}`, // B137
}

func TestNoiseIsPassedOver_B004_B005_B023_D11_S163(t *testing.T) {
	var log journal
	p, done := dial(t, transport.DialOptions{Era: mcp.Legacy, Logger: log.logger()}, transport.LineOptions{})
	init := p.expect(mcp.MethodInitialize)
	p.say(noise...)
	p.answer(init, initialized(mcp.Revision20250618))
	p.expect(mcp.NotificationInitialized)
	conn := receive(t, "the connection", done).conn
	for range 3 {
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		m := p.expect(mcp.MethodCallTool)
		p.say(noise...)
		p.answer(m, `{"content":[]}`)
		if got, err := c.wait(t); got != `{"content":[]}` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	}
	// Blank lines, ids of no call and odd cancellations are no noise, and 1.5
	// and 1e400 may be meant for numbers.
	if n := conn.Noise(); n != 4*16 {
		t.Errorf("%d counted", n)
	}
	// At most one line of each text in a second.
	if n := strings.Count(log.String(), "what the server wrote is no message"); n == 0 || n > 3 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	if len(log.String()) > 4<<10 {
		t.Errorf("the log has %d bytes", len(log.String()))
	}
}

func TestOneBadResponseFailsOneCall(t *testing.T) {
	for _, tt := range []struct{ name, reply string }{
		{"B014 Latin-1 in a string", `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf` + "\xe9" + `"}]}}`},
		{"B014 under an id of another type", `{"jsonrpc":"2.0","id":"%d","result":{"text":"` + "\xe9" + `"}}`},
		{"B028 duplicate members", `{"jsonrpc":"2.0","id":%d,"result":{},"result":{}}`},
		{"both result and error", `{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":""}}`},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":%d,"result":{}}`},
		{"a result that is no object", `{"jsonrpc":"2.0","id":%d,"result":[1]}`},
		{"a result that is null", `{"jsonrpc":"2.0","id":%d,"result":null}`},
		{"B029 deep nesting", `{"jsonrpc":"2.0","id":%d,"result":{"a":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
			bad := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			first := p.expect(mcp.MethodCallTool)
			good := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			second := p.expect(mcp.MethodCallTool)
			id, _ := first.ID.Int()
			p.say(fmt.Sprintf(tt.reply, id))
			if e := bad.failure(t); e.Kind != mcp.BadReply || e.Outcome != mcp.Answered || e.Method != mcp.MethodCallTool {
				t.Errorf("failed with %v", e)
			}
			p.answer(second, `{}`)
			if got, err := good.wait(t); got != `{}` || err != nil {
				t.Errorf("the other: %s, %v", got, err)
			}
		})
	}
}

func TestResponsesFindTheirCalls(t *testing.T) {
	for _, tt := range []struct{ name, reply, want string }{
		{"S1.34 exact", `{"jsonrpc":"2.0","id":%d,"result":{"a":1}}`, `{"a":1}`},
		{"B020 D1.8d id as a string", `{"jsonrpc":"2.0","id":"%d","result":{"a":1}}`, `{"a":1}`},
		{"B020 id as a fraction", `{"jsonrpc":"2.0","id":%d.0,"result":{"a":1}}`, `{"a":1}`},
		{"B007 behind a byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":%d,"result":{"a":1}}`, `{"a":1}`},
		{"S2.30 CRLF", `{"jsonrpc":"2.0","id":%d,"result":{"a":1}}` + "\r", `{"a":1}`},
		{"B016 numbers as they are", `{"jsonrpc":"2.0","id":%d,"result":{"big":12345678901234567890123,"e":1E2,"z":-0,"d":0.1000}}`,
			`{"big":12345678901234567890123,"e":1E2,"z":-0,"d":0.1000}`},
		{"D1.8b an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, "error -32700"},
		{"B148 an error as it came", `{"jsonrpc":"2.0","id":%d,"error":{"code":12345,"message":"","data":{"n":1.0}}}`, `error 12345`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
			c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			id, ok := p.expect(mcp.MethodCallTool).ID.Int()
			if !ok || id < 0 || id >= 1<<31 { // B019
				t.Errorf("id %d", id)
			}
			p.say(strings.Replace(tt.reply, "%d", fmt.Sprint(id), 1))
			got, err := c.wait(t)
			if e, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) {
				got = fmt.Sprintf("error %d", e.Code)
			}
			if got != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestLineOverTheLimit_B002_D13(t *testing.T) {
	conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{MaxLine: 1000})
	listener := newListener()
	listen := start(t, conn, &mcp.Request{Method: mcp.MethodListen, Params: mcp.Filter{ToolsListChanged: true}.Params(), Meta: legacyMeta("a")}, listener)
	receive(t, "the acknowledgement", listener.got)
	c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	m := p.expect(mcp.MethodCallTool)
	p.answer(m, `{"a":"`+strings.Repeat("x", 1000)+`"}`)
	e := c.failure(t)
	if e.Kind != mcp.LimitExceeded || e.Limit != "MaxLine" || e.Outcome != mcp.MaybeExecuted ||
		!strings.Contains(e.Error(), "limit MaxLine of 1000") || !strings.Contains(e.Error(), "line of 10") {
		t.Errorf("failed with %v", e)
	}
	if cancelled := p.expect(mcp.NotificationCancelled); !strings.Contains(string(cancelled.Body.Raw()), `"requestId":`+m.ID.String()) {
		t.Errorf("cancelled %s", cancelled.Body.Raw())
	}
	c = start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
	p.answer(p.expect(mcp.MethodCallTool), `{}`)
	if got, err := c.wait(t); got != `{}` || err != nil {
		t.Errorf("the next: %s, %v", got, err)
	}
	select {
	case <-listen.done:
		t.Errorf("the listen call has ended: %v", listen.err)
	default:
	}
}

// A promptListener is a listener that wants to know what it has missed.
type promptListener struct{ *listener }

func (l promptListener) Missed() { l.got <- "missed" }

// TestWhatIsPassedOverMayHaveBeenAChange: who listens is told that something was lost,
// and not of noise.
func TestWhatIsPassedOverMayHaveBeenAChange_P5(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		missed     bool
	}{
		{"a long line", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"x":"` + strings.Repeat("x", 1000) + `"}}`, true},
		{"a notification that cannot be read", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"x":1,"x":2}}`, true},
		{"a line of a log", `{"level":"info"}`, false},
		{"text", "up", false},
	} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			t.Run(fmt.Sprintf("%s, %v", tt.name, era), func(t *testing.T) {
				conn, p := connect(t, transport.DialOptions{Era: era}, transport.LineOptions{MaxLine: 1000})
				l := promptListener{newListener()}
				start(t, conn, &mcp.Request{Method: mcp.MethodListen, Params: mcp.Filter{ToolsListChanged: true}.Params(), Meta: legacyMeta("a")}, l)
				if era == mcp.Modern {
					m := p.expect(mcp.MethodListen)
					p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `}}}`)
				}
				receive(t, "the acknowledgement", l.got)
				p.say(tt.line, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				p.line() // what was said before has been taken
				if got := slices.Contains(l.told(), "missed"); got != tt.missed {
					t.Errorf("it was told: %v", got)
				}
			})
		}
	}
}

func TestTheEndOfTheLink(t *testing.T) {
	for _, tt := range []struct{ name, last, want string }{
		{"between messages", "", "the server closed its output"},
		{"B010 D2.49 within a message", `{"jsonrpc":"2.0","id":%d,"resu`, "its last message is truncated"},
		{"B010 within a result", `{"jsonrpc":"2.0","id":%d,"result":{"a":"b`, "its last message is truncated"},
		{"B008 Content-Length", "Content-Length: 52\r\n\r\n" + `{"jsonrpc":"2.0","id":%d,"resu`, "Content-Length framing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
			c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			m := p.expect(mcp.MethodCallTool)
			if tt.last != "" {
				id, _ := m.ID.Int()
				p.write(fmt.Sprintf(tt.last, id))
			}
			if err := p.conn.Close(); err != nil {
				t.Fatal(err)
			}
			e := c.failure(t)
			if e.Kind != mcp.ConnectionLost || e.Outcome != mcp.MaybeExecuted || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("failed with %v", e)
			}
			receive(t, "Done", conn.Done())
			if err := conn.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Err: %v", err)
			}
			late := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{}).failure(t)
			if late.Outcome != mcp.NotSent || late.Kind != mcp.ConnectionLost {
				t.Errorf("a later call failed with %v", late)
			}
		})
	}
	t.Run("B010 D2.6 a complete message without its newline", func(t *testing.T) {
		conn, p := connect(t, transport.DialOptions{}, transport.LineOptions{})
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, p.expect(mcp.MethodCallTool).ID))
		if err := p.conn.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := c.wait(t); got != `{}` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

// TestTimeoutNamesTheFraming_B008: a peer that frames by Content-Length leaves
// both sides waiting.
func TestTimeoutNamesTheFraming_B008(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connect(t, transport.DialOptions{MaxCall: time.Minute}, transport.LineOptions{})
		c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
		id := p.expect(mcp.MethodCallTool).ID
		p.patience = time.Hour
		go p.drain() // of the cancellation
		p.write(fmt.Sprintf("Content-Length: 38\r\n\r\n"+`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
		<-c.done
		if e := c.failure(t); e.Kind != mcp.TimedOut || !strings.Contains(e.Error(), "Content-Length framing") {
			t.Errorf("failed with %v", e)
		}
	})
}

func TestServerRequestsDuringTheHandshake_B041_B044_D14(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.NoEra} {
		t.Run(era.String(), func(t *testing.T) {
			p, done := dial(t, transport.DialOptions{Era: era, Capabilities: []byte(`{"roots":{}}`)}, transport.LineOptions{})
			questions := func() {
				t.Helper()
				p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
					`{"jsonrpc":"2.0","id":"s1","method":"ping"}`,
					`{"jsonrpc":"2.0","id":"s2","method":"roots/list"}`,
					`{"jsonrpc":"2.0","id":"s3","method":"vendor/x"}`,
					`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				for _, want := range []string{
					`{"jsonrpc":"2.0","id":"s1","result":{}}`,
					`{"jsonrpc":"2.0","id":"s2","error":{"code":-32603,"message":"Internal error: nobody can be asked just now"}}`,
					`{"jsonrpc":"2.0","id":"s3","error":{"code":-32601,"message":"Method not found"}}`,
				} {
					if got := p.line(); got != want {
						t.Errorf("answered %s", got)
					}
				}
			}
			if era == mcp.NoEra {
				m := p.expect(mcp.MethodDiscover)
				questions()
				p.fail(m, jsonrpc.CodeMethodNotFound, "null")
			}
			m := p.expect(mcp.MethodInitialize)
			questions()
			p.answer(m, initialized(mcp.Revision20250618))
			p.expect(mcp.NotificationInitialized)
			if d := receive(t, "the connection", done); d.err != nil {
				t.Error(d.err)
			}
		})
	}
}

func TestServerRequestsAreAnsweredAtOnce_B044_D252(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			_, p := connect(t, transport.DialOptions{Era: era}, transport.LineOptions{})
			p.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Errorf("answered %s", got)
			}
			for _, method := range []string{mcp.MethodListRoots, mcp.MethodCreateMessage, mcp.MethodElicit, "vendor/x"} {
				p.say(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
				if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}` {
					t.Errorf("%s: %s", method, got)
				}
			}
		})
	}
}

func TestBatchesFromAServer_B037_D15(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":%s,"result":{"a":1}},7,[],{"jsonrpc":"2.0","id":9,"method":"ping"}]`
	for _, revision := range mcp.LegacyRevisions() {
		t.Run(string(revision), func(t *testing.T) {
			p, done := dial(t, transport.DialOptions{Era: mcp.Legacy}, transport.LineOptions{})
			p.handshake(revision)
			conn := receive(t, "the connection", done).conn
			c := start(t, conn, toolCall(legacyMeta("a")), mcp.NoCaller{})
			m := p.expect(mcp.MethodCallTool)
			p.say(fmt.Sprintf(batch, m.ID))
			if revision != mcp.Revision20250326 {
				if e := c.failure(t); e.Kind != mcp.BadReply || !strings.Contains(e.Error(), "2025-03-26 only") {
					t.Errorf("failed with %v", e)
				}
				return
			}
			if got := p.line(); got != `{"jsonrpc":"2.0","id":9,"result":{}}` {
				t.Errorf("answered %s", got)
			}
			if got, err := c.wait(t); got != `{"a":1}` || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
