package streamable_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

// TestReplies answers a call in many ways that are no event streams. A $ stands
// for the call's id.
func TestReplies(t *testing.T) {
	for _, tt := range []struct {
		name         string
		status       int
		kind, body   string
		result       string          // or
		kindOf       mcp.FailureKind // or
		code         int             // of the peer's error
		contains     string          // in the error
		challenges   []string
		legacyResult string // under 2025-03-26, if it is not the same
	}{
		{name: "a result", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"result":{"x":1.0}}`, result: `{"x":1.0}`},
		{name: "with a charset", status: 200, kind: "application/json; charset=utf-8", body: `{"jsonrpc":"2.0","id":$,"result":{}}`, result: `{}`},
		{name: "in another case", status: 200, kind: "Application/JSON", body: `{"jsonrpc":"2.0","id":$,"result":{}}`, result: `{}`},
		{name: "B007 a byte order mark", status: 200, kind: "application/json", body: "\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":$,"result":{}}`, result: `{}`},
		{name: "B020 the id as a string", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":"$","result":{}}`, result: `{}`},
		{name: "S1.90 an error", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"error":{"code":-5,"message":"m","data":[1]}}`, code: -5, contains: "m"},
		{name: "an error without an id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","error":{"code":-6,"message":"m"}}`, code: -6},
		{name: "an error with a null id and 400", status: 400, kind: "application/json", body: `{"jsonrpc":"2.0","id":null,"error":{"code":-7,"message":"m"}}`, code: -7},
		{name: "an error with 404 and no session", status: 404, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"error":{"code":-32601,"message":"m"}}`, code: -32601},
		{name: "D1.9 another id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":"zzz","result":{}}`, kindOf: mcp.BadReply, contains: `id "zzz"`},
		{name: "B023 an object as id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":{},"result":{}}`, kindOf: mcp.BadReply},
		{name: "B023 an array as id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":[$],"result":{}}`, kindOf: mcp.BadReply},
		{name: "B023 a boolean as id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":true,"result":{}}`, kindOf: mcp.BadReply},
		{name: "B023 a fraction as id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$.5,"result":{}}`, kindOf: mcp.BadReply},
		{name: "B023 a number beyond all others as id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":1e400,"result":{}}`, kindOf: mcp.BadReply},
		{name: "B023 an id of 1 MiB", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","result":{}}`, kindOf: mcp.BadReply},
		{name: "D1.9 no id", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","result":{}}`, kindOf: mcp.BadReply},
		{name: "D1.13 neither result nor error", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$}`, kindOf: mcp.BadReply},
		{name: "D1.13 a null result", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"result":null}`, kindOf: mcp.BadReply, contains: "no object"},
		{name: "B014 invalid UTF-8", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"result":{"t":"caf` + "\xe9" + `"}}`, kindOf: mcp.BadReply},
		{name: "a request instead", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"method":"x"}`, kindOf: mcp.BadReply},
		{name: "B082 no JSON-RPC", status: 200, kind: "application/json", body: `{"Output":null,"Version":"1"}`, kindOf: mcp.BadReply, contains: `HTTP 200 OK: "{\"Output\"`},
		{name: "B082 a string", status: 200, kind: "application/json", body: `"ok"`, kindOf: mcp.BadReply, contains: `ok`},
		{name: "B082 cut off", status: 200, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"resu`, kindOf: mcp.BadReply},
		{name: "B083 200 and nothing", status: 200, kind: "application/json", body: ``, kindOf: mcp.BadReply, contains: "empty body"},
		{name: "B083 200 and nothing of no type", status: 200, body: ``, kindOf: mcp.BadReply, contains: "empty body"},
		{name: "B083 202", status: 202, body: ``, kindOf: mcp.BadReply, contains: "HTTP 202"},
		{name: "B083 204", status: 204, body: ``, kindOf: mcp.BadReply, contains: "HTTP 204"},
		{name: "S1.91 HTML", status: 200, kind: "text/html", body: `<html>`, kindOf: mcp.BadReply, contains: `unexpected content type "text/html": "<html>"`},
		{name: "S1.88 an HTML error", status: 502, kind: "text/html", body: `<h1>Bad Gateway</h1>`, kindOf: mcp.BadReply, contains: `HTTP 502 Bad Gateway: "<h1>`},
		{name: "D1.20 much text", status: 500, kind: "text/plain", body: strings.Repeat("long ", 100_000), kindOf: mcp.BadReply, contains: "long long"},
		{name: "an event stream with 500", status: 500, kind: "text/event-stream", body: event(`{"jsonrpc":"2.0","id":$,"result":{}}`), kindOf: mcp.BadReply, contains: "HTTP 500"},
		{name: "S1.89 401", status: 401, kind: "text/plain", body: `no`, kindOf: mcp.BadReply, challenges: []string{`Bearer realm="x", resource_metadata="https://h/y"`, "Basic"}},
		{name: "S1.89 401 with a JSON-RPC error", status: 401, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"error":{"code":-32001,"message":"m"}}`, kindOf: mcp.BadReply, challenges: []string{"Bearer"}},
		{name: "S1.89 403 with a challenge", status: 403, kind: "application/json", body: `{"jsonrpc":"2.0","id":$,"error":{"code":-32001,"message":"m"}}`, kindOf: mcp.BadReply, challenges: []string{`Bearer error="insufficient_scope"`}},
		{name: "403 without a challenge", status: 403, kind: "text/plain", body: `no`, kindOf: mcp.BadReply, contains: "HTTP 403 Forbidden"},
		{name: "D1.12 B038 a batch", status: 200, kind: "application/json", body: `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":$,"result":{"in":"a batch"}}]`, kindOf: mcp.BadReply, legacyResult: `{"in":"a batch"}`},
		{name: "D1.12 a batch without the response", status: 200, kind: "application/json", body: `[{"jsonrpc":"2.0","method":"notifications/x"}]`, kindOf: mcp.BadReply},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if string(m.Method) == "tools/list" {
					writeResult(w, m, `{"tools":[]}`)
					return
				}
				w.Header()["Content-Type"] = nil
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				w.Header()["Www-Authenticate"] = tt.challenges
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(tt.body, "$", m.ID.String()))
			}
			for revision, peer := range map[string]answerer{
				"2026-07-28": modernPeer(answer), "2025-11-25": legacyPeer("2025-11-25", "", onPost(answer)), "2025-03-26": legacyPeer("2025-03-26", "", onPost(answer)),
			} {
				c := dial(t, newPeer(t, peer).url, nil)
				got, err := call(t, c, mcp.NoCaller{})
				if len(fmt.Sprint(err)) > 1000 {
					t.Fatalf("D1.20: an error of %d bytes", len(err.Error()))
				}
				want := tt.result
				if revision == "2025-03-26" && tt.legacyResult != "" {
					want = tt.legacyResult
				}
				if want != "" {
					if err != nil || got != want {
						t.Errorf("%s: %s, %v", revision, got, err)
					}
					continue
				}
				checkFailure(t, revision, err, tt.kindOf, tt.code)
				if !strings.Contains(err.Error(), tt.contains) {
					t.Errorf("%s: %v holds no %q", revision, err, tt.contains)
				}
				auth, isAuth := errors.AsType[*streamable.AuthError](err)
				if isAuth != (tt.challenges != nil) {
					t.Errorf("%s: %v", revision, err)
				} else if isAuth {
					if diff := cmp.Diff(&streamable.AuthError{Status: tt.status, Challenges: tt.challenges}, auth); diff != "" {
						t.Errorf("S1.89 (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

func checkFailure(t *testing.T, what string, err error, kind mcp.FailureKind, code int) {
	t.Helper()
	if code != 0 {
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != code || !jsonrpc.FromPeer(err) {
			t.Errorf("%s: %v, want the peer's error %d", what, err, code)
		}
		return
	}
	if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != kind || e.Method != mcp.MethodCallTool {
		t.Errorf("%s: %v, want a failure of kind %s", what, err, kind)
	}
}

// TestOutcomeOfAStatus: a gateway that has no answer, or a server that failed, may
// have begun to execute the call, and one that has accepted it will.
func TestOutcomeOfAStatus_S1_88(t *testing.T) {
	for status, want := range map[int]mcp.Outcome{
		400: mcp.Answered, 413: mcp.Answered, 429: mcp.Answered, 503: mcp.Answered,
		500: mcp.MaybeExecuted, 502: mcp.MaybeExecuted, 504: mcp.MaybeExecuted,
		200: mcp.Answered, 202: mcp.MaybeExecuted,
	} {
		answer := func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if string(m.Method) == "tools/list" {
				writeResult(w, m, `{"tools":[]}`)
				return
			}
			http.Error(w, "no", status)
		}
		for era, peer := range map[string]answerer{"modern": modernPeer(answer), "legacy": legacyPeer("2025-11-25", "", onPost(answer))} {
			c := dial(t, newPeer(t, peer).url, nil)
			if _, err := call(t, c, mcp.NoCaller{}); mcp.OutcomeOf(err) != want {
				t.Errorf("%s, %d: %v", era, status, err)
			}
		}
	}
}

// TestStreams (D1.17, S1.92) answers a call with event streams, byte by byte. In the pieces a $
// stands for the result, and a @ for the call's id, which is its progress token.
func TestStreams(t *testing.T) {
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@,"progress":1}}`
	for _, tt := range []struct {
		name     string
		pieces   []string
		open     bool // the connection stays open afterwards
		kind     mcp.FailureKind
		contains string
		heard    int // notifications
	}{
		{name: "B064 LF", pieces: []string{"event: message\ndata: $\n\n"}, open: true},
		{name: "B064 CRLF", pieces: []string{"event: message\r\ndata: $\r\n\r\n"}, open: true},
		{name: "B064 CR", pieces: []string{"event: message\rdata: $\r\r"}, open: true},
		{name: "B064 mixed", pieces: []string{"event: message\r\ndata: $\n\r\n"}, open: true},
		{name: "B064 CRLF cut in two", pieces: []string{"event: message\r", "\ndata: $\r", "\n\r", "\n"}, open: true},
		{name: "B065 CR and nothing after it", pieces: []string{"data: $\r\r"}, open: true},
		{name: "B067 no name", pieces: []string{"data: $\n\n"}, open: true},
		{name: "B067 an empty name", pieces: []string{"event:\ndata: $\n\n"}, open: true},
		{name: "D1.25 no space", pieces: []string{"data:$\n\n"}, open: true},
		{name: "another event's name", pieces: []string{"event: ping\ndata: {}\n\ndata: $\n\n"}, open: true},
		{name: "B068 a priming event", pieces: []string{"id: s1-0\nretry: 3000\ndata:\n\nid: s1-1\ndata: $\n\n"}, open: true},
		{name: "B074 a byte order mark", pieces: []string{"\xEF\xBB\xBFdata: $\n\n"}, open: true},
		{name: "comments", pieces: []string{":\n\n: hello\n", ":\n\ndata: $\n\n"}, open: true},
		{name: "S1.94 notifications before", pieces: []string{event(progress), event(progress) + "data: $\n\n"}, open: true, heard: 2},
		{name: "B073 the response and then nothing", pieces: []string{"data: $\n\n", ":\n\n"}, open: true},
		{name: "S1.93 events after the response", pieces: []string{"data: $\n\n" + event(progress) + "data: $\n\n"}, open: true},
		{name: "D1.14 S1.98 garbage before", pieces: []string{"data: keepalive\n\n", "data: {\n\n", "data: [DONE]\n\n", "data: $\n\n"}, open: true},
		{name: "D1.14 an event cut short, then a good one", pieces: []string{`data: {"jsonrpc":"2.0",` + "\n\n", "data: $\n\n"}, open: true},
		{name: "a response to another id before", pieces: []string{event(`{"jsonrpc":"2.0","id":"other","result":{}}`), "data: $\n\n"}, open: true},
		{name: "B011 one byte at a time", pieces: strings.Split("data: $\n\n", ""), open: true},
		{name: "B071 unterminated at the end", pieces: []string{"data: $\n"}},
		{name: "B071 unterminated, without a line end", pieces: []string{"data: $"}},
		{name: "B071 cut off", pieces: []string{`data: {"jsonrpc":"2.0","id":1,"resu`}, kind: mcp.ConnectionLost, contains: "truncated"},
		{name: "B071 unterminated and open", pieces: []string{"data: $\n"}, open: true, kind: mcp.TimedOut},
		{name: "B083 no event", pieces: nil, kind: mcp.ConnectionLost, contains: "ended without a response"},
		{name: "B083 no response", pieces: []string{event(progress)}, kind: mcp.ConnectionLost, contains: "ended without a response", heard: 1},
		{name: "S1.85 stalled", pieces: []string{":\n\n"}, open: true, kind: mcp.TimedOut},
		{name: "D1.11 stalled after progress", pieces: []string{event(progress)}, open: true, kind: mcp.TimedOut, heard: 1},
	} {
		for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(tt.name+" "+era.String(), func(t *testing.T) {
				t.Parallel()
				url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
					if string(m.Method) != "tools/call" {
						return handshakeOnWire(conn, m)
					}
					result := `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"text":"é😀"}}`
					text := strings.NewReplacer("$", result, "@", m.ID.String()).Replace(strings.Join(tt.pieces, "\x00"))
					pieces := strings.Split(text, "\x00")
					if len(tt.pieces) > 5 {
						pieces = strings.Split(strings.ReplaceAll(strings.Join(pieces, ""), "\x00", ""), "")
					}
					if !onWire(conn, "HTTP/1.1 200 OK\nContent-Type: text/event-stream\nConnection: close\n", pieces...) {
						return false
					}
					if tt.open {
						_, _ = conn.Read(make([]byte, 1))
					}
					return false
				})
				c := dial(t, url, knownEra(era))
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if tt.kind == mcp.TimedOut {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), patience/10)
				}
				defer cancel()
				r := newRecorder()
				req := toolRequest("t", "{}")
				req.Meta.ProgressToken = jsonrpc.StringID("p")
				began := time.Now()
				result, err := c.Handle(ctx, req, r)
				if took := time.Since(began); took > patience/2 {
					t.Errorf("B073: it took %v", took)
				}
				if tt.kind == "" {
					if got := string(result.Raw()); err != nil || got != `{"text":"é😀"}` {
						t.Fatalf("%s, %v", got, err)
					}
				} else {
					checkFailure(t, "the call", err, tt.kind, 0)
					if !strings.Contains(err.Error(), tt.contains) || mcp.OutcomeOf(err) != mcp.MaybeExecuted {
						t.Errorf("%v holds no %q", err, tt.contains)
					}
				}
				if n := len(r.lines()); n != tt.heard {
					t.Errorf("S1.94: heard %q, want %d", r.lines(), tt.heard)
				}
			})
		}
	}
}

// handshakeOnWire answers what is not a call of a tool.
func handshakeOnWire(conn io.Writer, m *jsonrpc.Message) bool {
	result := func(result string) bool {
		return wholeOnWire(conn, "200 OK", "", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":`+result+`}`)
	}
	switch string(m.Method) {
	case "server/discover":
		return result(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
	case "initialize":
		return result(`{"protocolVersion":"2025-11-25","capabilities":{}}`)
	case "tools/list":
		return result(`{"tools":[]}`)
	case "":
		return wholeOnWire(conn, "405 Method Not Allowed", "", "")
	}
	return wholeOnWire(conn, "202 Accepted", "", "")
}

func TestStalledReplies(t *testing.T) {
	stalled := make(chan net.Conn, 10)
	url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		if string(m.Method) != "tools/call" && string(m.Method) != "notifications/vendor" {
			return handshakeOnWire(conn, m)
		}
		ok := true
		if name, _ := m.Body.LookupString("name"); name == "half" {
			ok = onWire(conn, "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 100\n", `{"jsonrpc":`)
		}
		stalled <- conn
		_, _ = conn.Read(make([]byte, 1)) // until the client goes
		return ok && false
	})
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		c := dial(t, url, knownEra(era))
		for _, tool := range []string{"half", "silent"} {
			// D1.10, S1.81, S1.82: the deadline is there to the end of the body.
			ctx, expire := faulttest.Expiring(t)
			go func() {
				<-stalled
				expire()
			}()
			_, err := c.Handle(ctx, toolRequest(tool, "{}"), mcp.NoCaller{})
			checkFailure(t, "S1.84: "+tool, err, mcp.TimedOut, 0)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("S1.83: %v", err)
			}
			// S1.87: whoever asked no longer wants it.
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-stalled
				cancel()
			}()
			_, err = c.Handle(ctx, toolRequest(tool, "{}"), mcp.NoCaller{})
			checkFailure(t, "S1.87: "+tool, err, mcp.Cancelled, 0)
			if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("S1.83: %v", err)
			}
			cancel()
		}
		if era == mcp.Legacy {
			ctx, expire := faulttest.Expiring(t)
			go func() {
				<-stalled
				expire()
			}()
			_, err := c.Handle(ctx, &mcp.Request{Method: "notifications/vendor", Notification: true}, mcp.NoCaller{})
			if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Kind != mcp.TimedOut || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("S1.86: %v", err)
			}
		}
		// D1.22: closing ends what is in flight.
		ended := make(chan error, 1)
		go func() {
			_, err := c.Handle(t.Context(), toolRequest("silent", "{}"), mcp.NoCaller{})
			ended <- err
		}()
		<-stalled
		closeSoon(t, c)
		if err := await(t, ended); !errors.Is(err, mcp.ErrClosed) || mcp.OutcomeOf(err) != mcp.MaybeExecuted {
			t.Errorf("D1.22: %v", err)
		}
		if _, err := call(t, c, mcp.NoCaller{}); !errors.Is(err, mcp.ErrClosed) || mcp.OutcomeOf(err) != mcp.NotSent {
			t.Errorf("after the end: %v", err)
		}
	}
}

func TestMaxCallBoundsCalls(t *testing.T) {
	opts := knownEra(mcp.Modern)
	opts.MaxCall = 50 * time.Millisecond
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/list" {
			writeResult(w, m, `{"tools":[]}`)
			return
		}
		writeStream(w, ":\n\n")
		<-r.Context().Done()
	}))
	c := dial(t, p.url, opts)
	_, err := call(t, c, mcp.NoCaller{})
	checkFailure(t, "a call over MaxCall", err, mcp.TimedOut, 0)
	// Listening has no limit.
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 4*opts.MaxCall)
	defer cancel()
	_, err = c.Handle(ctx, &mcp.Request{Method: mcp.MethodListen, Params: jsonrpc.Trusted([]byte(`{"notifications":{}}`))}, mcp.NoCaller{})
	if took := time.Since(began); took < 4*opts.MaxCall || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("listening ended after %v: %v", took, err)
	}
}

func TestReplyLimits(t *testing.T) {
	const limit = 1 << 20
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		for _, stream := range []bool{false, true} {
			for _, size := range []int{65_537, limit, limit + 1} {
				t.Run(fmt.Sprintf("B070 %s, stream %v, %d bytes", era, stream, size), func(t *testing.T) {
					answer := func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
						if string(m.Method) != "tools/call" {
							writeResult(w, m, `{"tools":[]}`)
							return
						}
						frame := `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"x":""}}`
						frame = strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
						if stream {
							writeStream(w, event(frame), event(frame))
						} else {
							writeJSON(w, 200, frame)
						}
					}
					peer := modernPeer(answer)
					if era == mcp.Legacy {
						peer = legacyPeer("2025-11-25", "s", onPost(answer))
					}
					opts := knownEra(era)
					opts.MaxBody = limit
					c := dial(t, newPeer(t, peer).url, opts)
					got, err := call(t, c, mcp.NoCaller{})
					if size <= limit {
						if err != nil || len(got) < size-100 {
							t.Errorf("%d bytes, %v", len(got), err)
						}
						return
					}
					e, ok := errors.AsType[*mcp.CallError](err)
					if !ok || e.Kind != mcp.LimitExceeded || e.Limit != "MaxBody" {
						t.Fatalf("%v", err)
					}
					// The connection goes on.
					if _, err := c.Handle(t.Context(), &mcp.Request{Method: "tools/list"}, mcp.NoCaller{}); err != nil {
						t.Errorf("afterwards: %v", err)
					}
				})
			}
		}
	}
}

func TestPackedStreamIsReadAsItComes(t *testing.T) {
	asked := make(chan string, 1)
	url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		if string(m.Method) != "tools/call" {
			return handshakeOnWire(conn, m)
		}
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("the client takes %q", r.Header.Get("Accept-Encoding"))
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		send := func(text string) bool {
			_, _ = io.WriteString(zip, text)
			_ = zip.Flush()
			defer packed.Reset()
			_, err := conn.Write(packed.Bytes())
			return err == nil
		}
		return onWire(conn, "HTTP/1.1 200 OK\nContent-Type: text/event-stream\nContent-Encoding: gzip\n") &&
			send(event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+m.ID.String()+`,"progress":1}}`)) &&
			<-asked != "" && // which is after the client has heard of it
			send(resultEvent(m, `{"packed":true}`)) && false
	})
	c := dial(t, url, knownEra(mcp.Modern))
	r := newRecorder()
	go func() { asked <- <-r.signal }()
	req := toolRequest("t", "{}")
	req.Meta.ProgressToken = jsonrpc.StringID("p")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := c.Handle(ctx, req, r)
	if got := string(result.Raw()); err != nil || got != `{"packed":true}` {
		t.Errorf("B094: %s, %v", got, err)
	}
}

// TestAcceptedWithoutAResponse_B083: the status 202 is for what has no response, so that
// the server may do the work, whatever else it says. A response that comes with it is
// one.
func TestAcceptedWithoutAResponse_B083(t *testing.T) {
	const without = "HTTP 202 Accepted"
	for _, tt := range []struct {
		name, kind, body string
		want             mcp.Outcome // empty for a result
		contains         string
	}{
		{"nothing", "", "", mcp.MaybeExecuted, "with an empty body"},
		{"no JSON", "text/plain", "taken", mcp.MaybeExecuted, `: "taken"`},
		{"no JSON-RPC", "application/json", `{"status":"queued"}`, mcp.MaybeExecuted, `"{\"status\":\"queued\"}"`},
		{"null", "application/json", `null`, mcp.MaybeExecuted, `"null"`},
		{"a notification", "application/json", `{"jsonrpc":"2.0","method":"notifications/x"}`, mcp.MaybeExecuted, "notifications/x"},
		{"a response to another", "application/json", `{"jsonrpc":"2.0","id":77,"result":{}}`, mcp.MaybeExecuted, "a response to id 77"},
		{"an event stream", "text/event-stream", ": x\n\n", mcp.MaybeExecuted, "text/event-stream"},
		{"too much", "application/json", `"` + strings.Repeat("x", 2<<10) + `"`, mcp.MaybeExecuted, "MaxBody"},
		{"a response", "application/json", `{"jsonrpc":"2.0","id":$,"result":{}}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if string(m.Method) == "tools/list" {
					writeResult(w, m, `{"tools":[]}`)
					return
				}
				w.Header()["Content-Type"] = []string{tt.kind}
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, strings.ReplaceAll(tt.body, "$", m.ID.String()))
			}
			for era, peer := range map[string]answerer{"modern": modernPeer(answer), "legacy": legacyPeer("2025-11-25", "", onPost(answer))} {
				c := dial(t, newPeer(t, peer).url, &streamable.DialOptions{MaxBody: 1 << 10})
				switch _, err := call(t, c, mcp.NoCaller{}); {
				case tt.want == "" && err != nil, tt.want != "" && (err == nil || mcp.OutcomeOf(err) != tt.want):
					t.Errorf("%s: %v", era, err)
				case err != nil && !strings.Contains(err.Error(), tt.contains),
					err != nil && tt.contains != "MaxBody" && !strings.Contains(err.Error(), without):
					t.Errorf("%s: %v does not say what was seen", era, err)
				}
			}
		})
	}
}
