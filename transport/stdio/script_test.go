//go:build unix

package stdio_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

const ok = `{"ok":true}`

// scripted answers each request with its next argument, in which $ID stands for
// the id, as it is; and when none is left with an object that says so.
var scripted = newMode("scripted", func(c *child) int {
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		switch {
		case m.Kind != jsonrpc.Request:
		case len(c.args) > 0:
			c.write(strings.ReplaceAll(c.args[0], "$ID", m.ID.String()))
			c.args = c.args[1:]
		default:
			c.answer(m, ok)
		}
	}
	return 0
})

func TestWhatAServerWrites(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}`
	for _, tt := range []struct {
		name  string
		text  string // for the first call; a second one is answered plainly
		noise int64
		want  string // result; good's if empty
		err   string // part of the error instead
	}{
		{name: "S1.34 an answer", text: good + "\n"},
		{name: "B004 banners, blank lines and colours", noise: 4,
			text: "Server v1.2 ready\n\n   \n[1] warn: {not json\n\x1b[32mok\x1b[0m\nServer listening...\n" + good + "\n"},
		{name: "S1.63 noise after the answer", noise: 1, text: good + "\nbye\n"},
		{name: "B005 JSON that is not JSON-RPC", noise: 8, text: strings.Join([]string{
			`{"level":"info","msg":"up"}`, `42`, `null`, `"hi"`, `[]`,
			`{"jsonrpc":"1.0","id":4,"method":"ping"}`, `{"id":5,"method":"ping"}`, `{"jsonrpc":"2.0"}`, good, ""}, "\n")},
		{name: "B014 bytes that are no text", noise: 1, text: "\xff\xfe\x80\n" + good + "\n"},
		{name: "a byte order mark", text: "\ufeff" + good + "\n"},
		{name: "S2.30 CRLF", text: "\r\n" + good + "\r\n"},
		{name: "S2.37 several messages in one write",
			text: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n" + good + "\n" + good + "\n"},
		{name: "B008 Content-Length header before a line", text: "Content-Length: 52\r\n\r\n" + good + "\n"},
		{name: "B014 Latin-1 in a result fails its call", noise: 1,
			text: `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"caf` + "\xe9" + `"}]}}` + "\n", err: "UTF-8"},
		{name: "S1.62 a result beside an error fails its call", noise: 1,
			text: `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}` + "\n", err: "bad reply"},
		{name: "a result that is no object fails its call", text: `{"jsonrpc":"2.0","id":$ID,"result":[1]}` + "\n", err: "no object"},
		{name: "B016 exact numbers",
			text: `{"jsonrpc":"2.0","id":$ID,"result":{"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000}}` + "\n",
			want: `{"id":9007199254740993,"big":12345678901234567890123,"f":1.0,"e":1E2,"z":-0,"d":0.1000}`},
		{name: "B020 an id that came back as a string", text: `{"jsonrpc":"2.0","id":"$ID","result":{"ok":true}}` + "\n"},
		{name: "D1.8d an id that came back as a fraction", text: `{"jsonrpc":"2.0","id":$ID.0,"result":{"ok":true}}` + "\n"},
		{name: "S1.36 answers to nobody",
			text: `{"jsonrpc":"2.0","id":999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"x"}}` + "\n" + good + "\n"},
		{name: "D1.8b an error with id null fails the only call",
			text: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}` + "\n", err: "what?"},
		{name: "D1.5 a batch, which the revision does not have", noise: 1, text: "[" + good + "]\n", err: "sent a batch"},
		{name: "an error", text: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"no such thing"}}` + "\n", err: "no such thing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, scripted.command(tt.text), legacy())
			got, err := call(t, c, "first", "{}")
			switch {
			case tt.err != "":
				if err == nil {
					t.Fatalf("got %s", got)
				}
				mention(t, err.Error(), tt.err)
			case err != nil:
				t.Fatal(err)
			case tt.want != "" && got != tt.want, tt.want == "" && got != ok:
				t.Errorf("got %s", got)
			}
			if got := succeed(t, c, "second", "{}"); got != ok {
				t.Errorf("the second call returned %s", got)
			}
			if c.Noise() != tt.noise {
				t.Errorf("%d messages were passed over, want %d", c.Noise(), tt.noise)
			}
		})
	}
}

// noisyStart writes what is no message around each message of the handshake.
var noisyStart = newMode("noisy start", func(c *child) int {
	c.say("npm warn deprecated x@1", "", "{")
	if m := c.next(); string(m.Method) == mcp.MethodDiscover {
		c.say("unknown method", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32601,"message":"no"}}`)
		c.say("still here")
		c.answer(c.expect(mcp.MethodInitialize), initialized)
	} else {
		c.say("hello")
		c.answer(m, initialized)
	}
	c.say("ready")
	return c.untilEOF()
})

func TestB004NoiseDuringTheHandshake(t *testing.T) {
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			o := legacy()
			o.Era = era
			c := dial(t, noisyStart.command(), o)
			if c.Server().Era != mcp.Legacy || c.Noise() < 3 {
				t.Errorf("era %v, %d messages passed over", c.Server().Era, c.Noise())
			}
		})
	}
}

// lengthFramed frames its answers as language servers do.
var lengthFramed = newMode("length framed", func(c *child) int {
	for m := c.next(); m != nil; m = c.next() {
		body := response(m, initialized)
		c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	}
	return 0
})

func TestB008LengthFramingIsNamed(t *testing.T) {
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			o := legacy()
			o.Era, o.StartTimeout = era, 300*time.Millisecond
			_, err := tryDial(t, lengthFramed.command(), o)
			if err == nil {
				t.Fatal("the server started")
			}
			mention(t, err.Error(), "Content-Length")
		})
	}
}

// slowly writes its answer to each call in pieces: as many bytes each as the
// first argument says, with a rest after each. The answer has as many characters
// as the second says.
var slowly = newMode("slowly", func(c *child) int {
	c.handshake()
	var size, n int
	if _, err := fmt.Sscan(strings.Join(c.args, " "), &size, &n); err != nil {
		c.fail("%v", err)
	}
	for m := c.next(); m != nil; m = c.next() {
		rest := response(m, emojis(n)) + "\n"
		for len(rest) > 0 {
			n := min(size, len(rest))
			c.write(rest[:n])
			<-time.After(50 * time.Microsecond)
			rest = rest[n:]
		}
	}
	return 0
})

// emojis returns an object with n characters of four bytes.
func emojis(n int) string { return `{"text":"` + strings.Repeat("😀", n) + `"}` }

func TestB011CharactersSplitAcrossWrites(t *testing.T) {
	for _, tt := range []struct{ size, n int }{{4096, 3000}, {4097, 3000}, {4098, 3000}, {4099, 3000}, {1, 100}} {
		t.Run(fmt.Sprintf("B011 %d bytes at a time", tt.size), func(t *testing.T) {
			c := dial(t, slowly.command(fmt.Sprint(tt.size), fmt.Sprint(tt.n)), legacy())
			if got := succeed(t, c, "x", "{}"); got != emojis(tt.n) {
				t.Errorf("got %.200s", got)
			}
		})
	}
}

// lastWords answers the calls that it has got and then exits: as many calls as the
// first argument says, in the way that the second does.
var lastWords = newMode("last words", func(c *child) int {
	c.handshake()
	var n int
	if _, err := fmt.Sscan(c.args[0], &n); err != nil {
		c.fail("%v", err)
	}
	var calls []*jsonrpc.Message
	for range n {
		calls = append(calls, c.expect(mcp.MethodCallTool))
	}
	switch c.args[1] {
	case "unterminated":
		c.write(response(calls[0], ok))
	case "large":
		c.answer(calls[0], `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	case "truncated":
		c.write(`{"jsonrpc":"2.0","id":` + calls[0].ID.String() + `,"resu`)
		fmt.Fprintln(os.Stderr, "half a word")
		return 3
	case "all":
		for _, m := range calls {
			c.answer(m, ok)
		}
	}
	return 0
})

func TestB010LastMessage(t *testing.T) {
	t.Run("B010a without newline", func(t *testing.T) {
		c := dial(t, lastWords.command("1", "unterminated"), legacy())
		if got := succeed(t, c, "x", "{}"); got != ok {
			t.Errorf("got %s", got)
		}
	})
	t.Run("B010a larger than a pipe", func(t *testing.T) {
		c := dial(t, lastWords.command("1", "large"), legacy())
		if got := succeed(t, c, "x", "{}"); len(got) < 1<<20 {
			t.Errorf("got %d bytes", len(got))
		}
	})
	t.Run("B010a many", func(t *testing.T) {
		c := dial(t, lastWords.command("20", "all"), legacy())
		var calls []*pending
		for range 20 {
			calls = append(calls, start(t, c, toolCall("x", "{}"), mcp.NoCaller{}))
		}
		for _, p := range calls {
			if _, err := p.wait(t); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B010b truncated", func(t *testing.T) {
		c := dial(t, lastWords.command("1", "truncated"), legacy())
		began := time.Now()
		_, err := call(t, c, "x", "{}")
		if took := time.Since(began); took > promptly {
			t.Errorf("the call failed after %v", took)
		}
		wantFailure(t, err, mcp.ConnectionLost, mcp.MaybeExecuted)
		mention(t, err.Error(), "truncated", "exit status 3", "half a word")
	})
}

// shuffled answers its calls in another order, ten at a time.
var shuffled = newMode("shuffled", func(c *child) int {
	c.handshake()
	var waiting []*jsonrpc.Message
	for m := c.next(); m != nil; m = c.next() {
		if waiting = append(waiting, m); len(waiting) < 10 {
			continue
		}
		for _, i := range rand.Perm(len(waiting)) {
			c.answer(waiting[i], string(waiting[i].Body.Raw()))
		}
		waiting = nil
	}
	return 0
})

func TestS134AnswersInAnotherOrder(t *testing.T) {
	c := dial(t, shuffled.command(), legacy())
	var calls []*pending
	for i := range 200 {
		calls = append(calls, start(t, c, toolCall("x", fmt.Sprint(i)), mcp.NoCaller{}))
	}
	for i, p := range calls {
		got, err := p.wait(t)
		if want := fmt.Sprintf(`{"name":"x","arguments":%d}`, i); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

// batching answers its calls, three at a time, in a batch, as its revision lets it.
var batching = newMode("batching", func(c *child) int {
	c.answer(c.expect(mcp.MethodInitialize), strings.Replace(initialized, "2025-06-18", "2025-03-26", 1))
	c.expect(mcp.NotificationInitialized)
	var answers []string
	for m := c.next(); m != nil; m = c.next() {
		if answers = append(answers, response(m, string(m.Body.Raw()))); len(answers) == 3 {
			c.say("[" + strings.Join(append(answers, "42"), ",") + "]")
			answers = nil
		}
	}
	return 0
})

func TestD15BatchOfAnswers(t *testing.T) {
	c := dial(t, batching.command(), legacy())
	var calls []*pending
	for i := range 3 {
		calls = append(calls, start(t, c, toolCall("x", fmt.Sprint(i)), mcp.NoCaller{}))
	}
	for i, p := range calls {
		got, err := p.wait(t)
		if want := fmt.Sprintf(`{"name":"x","arguments":%d}`, i); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

// exitsWhenProbed exits at the first message if that is server/discover, in the
// middle of a line.
var exitsWhenProbed = newMode("exits when probed", func(c *child) int {
	m := c.next()
	if string(m.Method) == mcp.MethodDiscover {
		c.write(`{"jsonrpc":"2.0","id":1,"error":{"code":`)
		return 1
	}
	c.answer(m, initialized)
	return c.untilEOF()
})

// answersProbe answers server/discover with its argument.
var answersProbe = newMode("answers probe", func(c *child) int {
	m := c.expect(mcp.MethodDiscover)
	c.say(strings.ReplaceAll(c.args[0], "$ID", m.ID.String()))
	c.handshake()
	return c.untilEOF()
})

func TestB110ServersThatDoNotKnowTheProbe(t *testing.T) {
	for _, tt := range []struct {
		name string
		cmd  stdio.Command
	}{
		{"B110 D2.49 exits in the middle of a line and is started again", exitsWhenProbed.command()},
		{"B110 method not found", answersProbe.command(`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`)},
		{"B110 invalid params", answersProbe.command(`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no"}}`)},
		{"B110 a code of its own", answersProbe.command(`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}`)},
		{"B110 an error without id", answersProbe.command(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing ID"}}`)},
		{"B110 an unusable result", answersProbe.command(`{"jsonrpc":"2.0","id":$ID,"result":{}}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, tt.cmd, &stdio.DialOptions{ExitWait: patience})
			if c.Server().Era != mcp.Legacy {
				t.Errorf("era %v", c.Server().Era)
			}
		})
	}
}

func TestB110KnownEraIsNotProbed(t *testing.T) {
	dial(t, exitsWhenProbed.command(), legacy())
	o := legacy()
	o.Era = mcp.Modern
	_, err := another(t, exitsWhenProbed.command(), o)
	if err == nil {
		t.Fatal("a modern server was found")
	}
	if exit := exitOf(t, err); exit.Status.Code != 1 {
		t.Errorf("got %v", err)
	}
}

// exitOf returns the exit that err must name.
func exitOf(t *testing.T, err error) *process.ExitError {
	t.Helper()
	exit, ok := errors.AsType[*process.ExitError](err)
	if !ok {
		t.Fatalf("no exit is named: %v", err)
	}
	return exit
}
