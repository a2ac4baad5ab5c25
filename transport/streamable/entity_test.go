package streamable_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

func TestContentTypes(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	body := modernRequest("1", "tools/list", "")
	for _, tt := range []struct {
		name   string
		values []string
		status int
	}{
		{"B080 exact", []string{"application/json"}, 200},
		{"B080 with a charset", []string{"application/json; charset=utf-8"}, 200},
		{"B080 in another case", []string{"Application/JSON"}, 200},
		{"B080 with a quoted charset", []string{`application/json;charset="UTF-8"`}, 200},
		{"B080 missing", nil, 415},
		{"B080 T-B2 D2.12 text", []string{"text/plain"}, 415},
		{"B080 T-B2 form", []string{"application/x-www-form-urlencoded"}, 415},
		{"B080 latin-1", []string{"application/json; charset=iso-8859-1"}, 415},
		{"T-B2 UTF-16", []string{"application/json;charset=utf-16"}, 415},
		{"text that speaks of JSON", []string{"text/plain; application/json"}, 415},
		{"JSON of another kind", []string{"application/json-rpc"}, 415},
		{"none that could be parsed", []string{"application/json; charset"}, 415},
		{"two", []string{"application/json", "text/plain"}, 415},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := modernHeader(t, body)
			delete(h, "Content-Type")
			if tt.values != nil {
				h["Content-Type"] = tt.values
			}
			r := b.do(t, "POST", body, h)
			if r.status != tt.status || tt.status == 415 && r.code(t) != -32600 {
				t.Errorf("%s, want %d", r, tt.status)
			}
		})
	}
	for encoding, status := range map[string]int{"gzip": 415, "br": 415, "identity": 200, "Identity": 200} {
		// B092: a bomb is not unpacked.
		if r := b.modern(t, body, "Content-Encoding", encoding); r.status != status {
			t.Errorf("B092: Content-Encoding %s: %s, want %d", encoding, r, status)
		}
	}
}

func TestAcceptForms(t *testing.T) {
	f := newFixture()
	b := serving(t, f, strictServer(t))
	silent := modernRequest("1", "tools/call", toolCall("echo", "{}"))
	talking := modernRequest("1", "tools/call", `"name":"progress","arguments":{}`)
	talking = strings.Replace(talking, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
	for _, tt := range []struct {
		name   string
		values []string
		// kinds of the replies to a call without and with progress; "" for 406
		silent, talking string
	}{
		{"B085 both", []string{"application/json, text/event-stream"}, "application/json", "text/event-stream"},
		{"B085 both in two lines", []string{"application/json", "text/event-stream"}, "application/json", "text/event-stream"},
		{"B085 anything", []string{"*/*"}, "application/json", "text/event-stream"},
		{"B085 absent", nil, "application/json", "text/event-stream"},
		{"B085 a range and a stream", []string{"application/*, text/event-stream"}, "application/json", "text/event-stream"},
		{"B085 a stream of quality 0", []string{"application/json;q=0.9, text/event-stream;q=0"}, "application/json", "application/json"},
		{"B085 JSON only", []string{"application/json"}, "application/json", "application/json"},
		{"B085 a stream only", []string{"text/event-stream"}, "text/event-stream", "text/event-stream"},
		{"B085 JSON of quality 0", []string{"*/*, application/json;q=0"}, "text/event-stream", "text/event-stream"},
		{"B085 upper case with parameters", []string{"Application/JSON;v=1;Q=0.5,TEXT/Event-Stream"}, "application/json", "text/event-stream"},
		{"B085 pages", []string{"text/html"}, "", ""},
		{"B085 everything of quality 0", []string{"*/*;q=0"}, "", ""},
		{"the more specific range counts", []string{"text/*;q=0, application/json;q=0, */*"}, "", ""},
		{"empty", []string{""}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for body, kind := range map[string]string{silent: tt.silent, talking: tt.talking} {
				h := modernHeader(t, body)
				delete(h, "Accept")
				if tt.values != nil {
					h["Accept"] = tt.values
				}
				r := b.do(t, "POST", body, h)
				if kind == "" {
					if r.status != http.StatusNotAcceptable || r.code(t) != -32600 {
						t.Errorf("%s, want 406", r)
					}
					continue
				}
				// Whatever the kind, the result is there.
				if r.status != 200 || r.header.Get("Content-Type") != kind || !strings.Contains(r.body, `"resultType":"complete"`) {
					t.Errorf("%s of type %q, want %q", r, r.header.Get("Content-Type"), kind)
				}
			}
		})
	}
	listening := modernRequest("7", "subscriptions/listen", `"notifications":{}`)
	if r := b.modern(t, listening, "Accept", "application/json"); r.status != http.StatusNotAcceptable || !strings.Contains(r.body, `"id":7`) {
		t.Errorf("listening without a stream: %s", r)
	}
	h := header("Accept", "application/json", "Mcp-Session-Id", b.initialize(t, "2025-11-25"))
	if r := b.do(t, "GET", "", h); r.status != http.StatusNotAcceptable {
		t.Errorf("B085: GET without a stream: %s", r)
	}
}

// sized returns a modern request of exactly size bytes, whose forbidden part
// comes last.
func sized(size int) string {
	const shape = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + modernMeta + `,"arguments":{"pad":"%s"},"name":"echo"}}`
	return fmt.Sprintf(shape, strings.Repeat("x", size-len(shape)+len("%s")))
}

func TestBodyLimit(t *testing.T) {
	const limit = 100_000
	var called int
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		called++
		return raw(`{"content":[]}`)
	})
	opts := strictServer(t)
	opts.MaxBody = limit
	b := serving(t, handler, opts)
	for _, chunked := range []bool{false, true} {
		for _, size := range []int{limit, limit + 1, 2 * limit} {
			t.Run(fmt.Sprintf("%d bytes, chunked %v", size, chunked), func(t *testing.T) {
				called = 0
				body := sized(size)
				var reader io.Reader = strings.NewReader(body)
				if chunked {
					reader = io.MultiReader(reader) // of unknown size
				}
				resp := b.send(t, "POST", reader, modernHeader(t, body))
				data, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				r := reply{resp.StatusCode, resp.Header, string(data)}
				if size <= limit {
					if r.status != 200 || called != 1 {
						t.Errorf("S2.56, B092: %s", r)
					}
					return
				}
				// T-A3, T-K1: nobody behind us sees anything of it.
				if r.status != 413 || r.code(t) != -32600 || called != 0 || strings.Contains(r.body, `"id"`) || !strings.Contains(r.body, "MaxBody of 100000") {
					t.Errorf("B092: %s after %d calls", r, called)
				}
			})
		}
	}
	t.Run("S2.56 the default", func(t *testing.T) {
		if streamable.DefaultMaxBody != 10<<20 {
			t.Errorf("S2.56: the default is %d", streamable.DefaultMaxBody)
		}
	})
}

// TestTooLargeArrivesOnTheWire writes as simple clients do, which read nothing
// before they have written everything.
// A promise is a body of which less comes than was announced.
type promise struct {
	left int
	over func() // called when nothing is left
}

func (p *promise) Read(b []byte) (int, error) {
	if p.left == 0 {
		p.over()
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(b), p.left)
	p.left -= n
	return n, nil
}

// TestMemoryIsForWhatWasSent announces far more than it sends: memory is had for
// that, not for promises.
func TestMemoryIsForWhatWasSent_TK1(t *testing.T) {
	h := streamable.NewHandler(echo, &streamable.HandlerOptions{MaxBody: 1 << 40})
	defer h.Close()
	for _, sent := range []int{0, 1, 100 << 10, 2 << 20} {
		for _, announced := range []int64{10 << 20, 1 << 29, 1 << 40} {
			var before, after runtime.MemStats
			r := httptest.NewRequest("POST", "http://localhost/mcp", &promise{sent, func() { runtime.ReadMemStats(&after) }})
			r.Header, r.ContentLength = legacyHeader(""), announced
			w := httptest.NewRecorder()
			runtime.ReadMemStats(&before)
			h.ServeHTTP(w, r)
			if had := after.TotalAlloc - before.TotalAlloc; w.Code != 400 || had > uint64(20*sent+1<<20) {
				t.Errorf("for %d bytes of %d: %d of memory, HTTP %d", sent, announced, had, w.Code)
			}
		}
	}
}

// TestNoBodyLimit has the largest limit that there is.
func TestNoBodyLimit(t *testing.T) {
	opts := strictServer(t)
	opts.MaxBody = math.MaxInt64
	b := serving(t, echo, opts)
	body := modernRequest("1", "tools/call", toolCall("echo", `{"a":1}`))
	for name, reader := range map[string]io.Reader{"with a length": strings.NewReader(body), "chunked": &pieces{[][]byte{[]byte(body)}}} {
		resp := b.send(t, "POST", reader, modernHeader(t, body))
		if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("a body %s: %d %s, %v", name, resp.StatusCode, data, err)
		}
	}
	p := newPeer(t, func(w http.ResponseWriter, _ *http.Request, m *jsonrpc.Message) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush() // without a length
		_, _ = w.Write(jsonrpc.AppendResult(nil, m.ID, new(jsonrpc.Trusted([]byte(`{"a":1}`)))))
	})
	dial := knownEra(mcp.NoEra)
	dial.MaxBody = math.MaxInt
	if result, err := streamable.CallOnce(t.Context(), p.url, toolRequest("t", "{}"), nil, dial); err != nil || string(result.Raw()) != `{"a":1}` {
		t.Errorf("a reply without a length: %s, %v", result.Raw(), err)
	}
}

func TestTooLargeArrivesOnTheWire(t *testing.T) {
	const limit = 64 << 10
	opts := strictServer(t)
	opts.MaxBody = limit
	b := serving(t, echo, opts)
	chunked := func(size int) string {
		piece := fmt.Sprintf("%x\r\n%s\r\n", 32<<10, strings.Repeat("x", 32<<10))
		return strings.Repeat(piece, size>>15) + "0\r\n\r\n"
	}
	for _, tt := range []struct {
		name, framing, body string
	}{
		{"B092 declared and not sent", "Content-Length: 67108864", ""},
		{"B092 declared and sent", "Content-Length: 67108864", strings.Repeat("x", 64<<20)},
		{"B092 chunked", "Transfer-Encoding: chunked", chunked(64 << 20)},
		{"D2.16 one byte over the limit", "Content-Length: 65537", strings.Repeat("x", limit+1)},
		{"S2.57 chunked just over the limit", "Transfer-Encoding: chunked", chunked(limit + 32<<10)},
		{"B092 waiting for leave to send", "Content-Length: 67108864\r\nExpect: 100-continue", ""},
		{"a declared size that no body has", "Content-Length: 9223372036854775807", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := dialRaw(t, b.url)
			mustWrite(t, conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+tt.framing+"\r\n\r\n")
			if _, err := io.WriteString(conn, tt.body); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Fatalf("writing: %v", err)
			}
			r := readReply(t, conn)
			if r.status != 413 || !strings.Contains(r.body, "limit MaxBody of 65536") {
				t.Errorf("%s", r)
			}
		})
	}
	// And the server goes on.
	if r := b.modern(t, modernRequest("1", "tools/list", "")); r.status != 200 {
		t.Errorf("afterwards: %s", r)
	}
}

func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	for name, tt := range map[string]struct {
		head   string
		status int
	}{
		"a foreign host":       {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n", 403},
		"another content type": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n", 415},
		"another method":       {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\n", 405},
		"another path":         {"POST /x HTTP/1.1\r\nHost: localhost\r\n", 404},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialRaw(t, b.url)
			mustWrite(t, conn, tt.head+"Content-Length: 1000\r\n\r\n{")
			if r := readReply(t, conn); r.status != tt.status || r.header.Get("Connection") != "" && r.header.Get("Connection") != "close" {
				t.Errorf("%s", r)
			}
		})
	}
}

func TestSlowBodyIsCut(t *testing.T) {
	opts := strictServer(t)
	opts.BodyTimeout = 50 * time.Millisecond
	b := serving(t, echo, opts)
	body := modernRequest("1", "tools/list", "")
	for name, tt := range map[string]struct {
		head   string
		status int
	}{
		"B091 a body that does not come":    {rawPost(t, body, "Content-Length", "1000"), 408},
		"B091 a chunked one":                {strings.Replace(rawPost(t, body, "Transfer-Encoding", "chunked"), body, "5\r\n{", 1), 408},
		"B091 of a request that is refused": {"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", 404},
		"D2.27 of a GET":                    {"GET /mcp/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", 200},
		"D2.27 of a stream that is served":  {"GET /mcp/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", 200},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialRaw(t, b.url)
			mustWrite(t, conn, tt.head)
			r := readReply(t, conn)
			if r.status != tt.status {
				t.Errorf("%s, want %d", r, tt.status)
			}
			// The connection goes with it.
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection is still there: %v", err)
			}
		})
	}
	// A call may take as long as it likes once its body is there.
	f := newFixture()
	b = serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		select {
		case <-time.After(4 * opts.BodyTimeout):
			return raw(`{"content":[]}`)
		case <-ctx.Done():
			f.cancelled <- "call"
			return mcp.Result{}, ctx.Err()
		}
	}), opts)
	if r := b.modern(t, modernRequest("1", "tools/call", toolCall("x", "{}"))); r.status != 200 || r.code(t) != 0 {
		t.Errorf("a long call: %s", r)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	called := make(chan string, 1)
	b := serving(t, mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
		called <- req.Method
		return mcp.Result{}, nil
	}), strictServer(t))
	conn := dialRaw(t, b.url)
	body := modernRequest("1", "tools/list", "")
	mustWrite(t, conn, rawPost(t, body, "Content-Length", "1000"))
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if r := readReply(t, conn); r.status != 400 || r.code(t) != -32700 {
		t.Errorf("%s", r)
	}
	select {
	case method := <-called:
		t.Errorf("%s was called", method)
	default:
	}
}

func TestIdleConnectionsAreReaped(t *testing.T) {
	opts := strictServer(t)
	opts.IdleTimeout, opts.HeaderTimeout = 50*time.Millisecond, 50*time.Millisecond
	b := serving(t, echo, opts)
	for name, text := range map[string]string{
		"B091 after a request":    "GET /mcp/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"B091 within a head":      "GET /mcp/health HTTP/1.1\r\nHo",
		"B091 before any request": "",
	} {
		conn := dialRaw(t, b.url)
		mustWrite(t, conn, text)
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pieces gives one piece at each read, with a flush to the wire after each.
type pieces struct{ rest [][]byte }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	p.rest = p.rest[1:]
	return n, nil
}

func TestBodyInPieces(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	body := modernRequest("1", "tools/call", toolCall("echo", `{"text":"é€😀"}`))
	var single [][]byte
	for i := range len(body) {
		single = append(single, []byte{body[i]})
	}
	// D2.11, B011, S2.55: no character is lost between two chunks.
	resp := b.send(t, "POST", &pieces{single}, modernHeader(t, body))
	data, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(data), `{"text":"é€😀"`) {
		t.Errorf("%s, %v", data, err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write(make([]byte, 1<<20))
	_ = zip.Close()
	h := modernHeader(t, body, "Content-Encoding", "gzip")
	if resp := b.send(t, "POST", &packed, h); resp.StatusCode != 415 {
		t.Errorf("B092: a packed body is answered with %d", resp.StatusCode)
	}
}
