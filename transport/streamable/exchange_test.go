package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// stepping sends one notification for each value that it is given, and then its
// result.
func stepping(steps <-chan int) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return echo.Handle(ctx, req, caller)
		}
		for step := range steps {
			params := mcp.WithProgressToken(new(jsonrpc.Trusted(fmt.Appendf(nil, `{"progress":%d}`, step))), req.Meta.ProgressToken)
			if err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: params}); err != nil {
				return mcp.Result{}, err
			}
		}
		return raw(`{"content":[]}`)
	})
}

// progressing returns a call that wants progress.
func progressing(era mcp.Era) string {
	if era == mcp.Legacy {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}`
	}
	return strings.Replace(modernRequest("1", "tools/call", toolCall("t", "{}")), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
}

func (b *browser) headerFor(t *testing.T, era mcp.Era, body string) http.Header {
	if era == mcp.Modern {
		return modernHeader(t, body)
	}
	return legacyHeader(b.initialize(t, "2025-11-25"))
}

func TestEventsArriveOneByOne(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			steps := make(chan int)
			b := serving(t, stepping(steps), strictServer(t))
			body := progressing(era)
			h := b.headerFor(t, era, body)
			h.Set("Accept-Encoding", "gzip, br")
			opened := make(chan *http.Response, 1)
			go func() { opened <- b.open(t, "POST", body, h) }()
			steps <- 1
			resp := await(t, opened)
			for name, want := range map[string]string{
				"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-transform", "Content-Encoding": "", "X-Content-Type-Options": "nosniff",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("B094, S2.73: %s is %q, want %q", name, got, want)
				}
			}
			events := readEvents(resp)
			if era == mcp.Legacy {
				events.opened(t)
			}
			for i := 1; i <= 3; i++ {
				// B095, B067: each before the next is made.
				events.want(t, fmt.Sprintf(`event: message|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":"p"}}`, i))
				if i < 3 {
					steps <- i + 1
				}
			}
			close(steps)
			events.await(t, `"id":1,"result"`)
			events.wantEnd(t)
		})
	}
}

func TestReplyWithoutEventsIsOneObject(t *testing.T) {
	b := serving(t, echo, strictServer(t))
	r := b.modern(t, modernRequest("1", "tools/call", toolCall("echo", "{}")), "Accept-Encoding", "gzip")
	if r.header.Get("Content-Type") != "application/json" || r.header.Get("Content-Length") == "" || r.header.Get("Content-Encoding") != "" {
		t.Errorf("B094: the headers are %v", r.header)
	}
}

func TestSlowCallIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const beat = 10 * time.Second
		slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
			time.Sleep(90*time.Second + time.Millisecond)
			if err := ctx.Err(); err != nil {
				return mcp.Result{}, err
			}
			return raw(`{"supportedVersions":[],"capabilities":{}}`)
		})
		h := streamable.NewHandler(slow, &streamable.HandlerOptions{KeepAlive: beat})
		defer h.Close()
		call := modernRequest("1", "tools/call", toolCall("t", "{}"))
		header := modernHeader(t, call)
		// B091: nine comments, then the result.
		w := visit(h, "POST", call, header)
		want := strings.Repeat(":\n\n", 9) + "event: message\ndata: {"
		if got := w.Body.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "}\n\n") {
			t.Errorf("B091: the reply is %q", got)
		}
		header.Set("Accept", "application/json")
		if w := visit(h, "POST", call, header); !strings.HasPrefix(w.Body.String(), `{"jsonrpc"`) {
			t.Errorf("B085: to a client that takes no stream: %q", w.Body)
		}
		// The session's id is there although the reply began before its result.
		w = visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader(""))
		if id := w.Header().Get("Mcp-Session-Id"); id == "" || !strings.Contains(w.Body.String(), `"protocolVersion"`) || h.Sessions() != 1 {
			t.Errorf("a slow initialize: session %q, %q", id, w.Body)
		}
	})
}

func TestDisconnectCancelsInTheModernEraOnly(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			started, ended := make(chan context.Context), make(chan error)
			steps := make(chan bool)
			b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
				if req.Method != mcp.MethodCallTool {
					return echo.Handle(ctx, req, caller)
				}
				started <- ctx
				if era == mcp.Modern {
					<-ctx.Done()
				} else {
					<-steps
				}
				// Telling a client that has gone is no reason to fail.
				err := caller.Notify(ctx, &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progress":1,"progressToken":"p"}`))})
				if era == mcp.Legacy {
					err = errors.Join(err, ctx.Err())
				}
				ended <- err
				return mcp.Result{}, ctx.Err()
			}), strictServer(t))
			body := progressing(era)
			conn := dialRaw(t, b.url)
			h := b.headerFor(t, era, body)
			mustWrite(t, conn, rawPost(t, body, "Mcp-Session-Id", h.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", map[mcp.Era]string{mcp.Modern: "2026-07-28", mcp.Legacy: "2025-11-25"}[era]))
			ctx := await(t, started)
			left := time.Now()
			_ = conn.Close()
			if era == mcp.Modern {
				if err := await(t, ended); err != nil {
					t.Errorf("B122: telling the client: %v", err)
				}
				if took := time.Since(left); took > patience {
					t.Errorf("B122: the call was cancelled after %v", took)
				}
				return
			}
			// The disconnect has been seen when the connection has gone, and
			// the call goes on.
			other := b.legacy(t, h.Get("Mcp-Session-Id"), legacyRequest("2", "ping", "{}"))
			if other.status != 200 || ctx.Err() != nil {
				t.Errorf("B122: the session after the disconnect: %s, %v", other, ctx.Err())
			}
			steps <- true
			if err := await(t, ended); err != nil {
				t.Errorf("B122: the call was cancelled: %v", err)
			}
		})
	}
}

func TestLateMessagesAreDropped(t *testing.T) {
	const rounds = 50
	var late sync.WaitGroup
	b := serving(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Notification || req.Method == mcp.MethodCallTool || req.Method == mcp.MethodDiscover {
			for i := range 100 {
				late.Go(func() {
					n := &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted(fmt.Appendf(nil, `{"progress":%d,"progressToken":"p"}`, i))}
					if err := caller.Notify(context.WithoutCancel(ctx), n); err != nil {
						t.Errorf("B059: %v", err)
					}
				})
			}
		}
		if req.Method == mcp.MethodDiscover {
			return echo.Handle(ctx, req, caller)
		}
		return raw(`{"content":[]}`)
	}), strictServer(t)) // which fails the test if net/http complains
	id := b.initialize(t, "2025-11-25")
	for range rounds {
		body := progressing(mcp.Modern)
		if r := b.modern(t, body); r.status != 200 || strings.Count(r.body, `"id":1,"result"`) != 1 {
			t.Fatalf("B059: %s", r)
		}
		if r := b.legacy(t, id, progressing(mcp.Legacy)); r.status != 200 || strings.Count(r.body, `"id":1,"result"`) != 1 {
			t.Fatalf("B059: %s", r)
		}
		if r := b.legacy(t, id, `{"jsonrpc":"2.0","method":"notifications/vendor/x"}`); r.status != 202 || r.body != "" {
			t.Fatalf("B059: %s", r)
		}
		b.initialize(t, "2025-11-25")
	}
	late.Wait()
}

func TestClientThatStopsReadingIsClosedAlone(t *testing.T) {
	gone := make(chan error, 10)
	big := strings.Repeat("x", 256<<10)
	flood := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		switch name, _ := req.Params.LookupString("name"); {
		case name == "stream":
			n := &mcp.Notification{Method: mcp.NotificationProgress, Params: jsonrpc.Trusted([]byte(`{"progress":1,"progressToken":"p","pad":"` + big + `"}`))}
			for ctx.Err() == nil {
				if err := caller.Notify(ctx, n); err != nil {
					break
				}
			}
			gone <- ctx.Err()
			return mcp.Result{}, ctx.Err()
		case name == "object":
			return raw(`{"content":[],"pad":"` + strings.Repeat(big, 64) + `"}`)
		}
		return echo.Handle(ctx, req, caller)
	})
	options := strict(t)
	options.WriteTimeout = 100 * time.Millisecond
	h := streamable.NewHandler(flood, &options)
	defer h.Close()
	b := newBrowser(t, newServer(t, h))
	stream := strings.Replace(modernRequest("1", "tools/call", toolCall("stream", "{}")), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	object := modernRequest("1", "tools/call", toolCall("object", "{}"))
	var conns []net.Conn
	for _, body := range []string{stream, object} {
		conn := dialRaw(t, b.url)
		mustWrite(t, conn, rawPost(t, body))
		conns = append(conns, conn)
	}
	if err := await(t, gone); err == nil {
		t.Error("B091: the stream was given up without an end of its call")
	}
	for range 10 {
		if r := b.modern(t, modernRequest("1", "tools/list", "")); r.status != 200 {
			t.Errorf("B091: another client: %s", r)
		}
	}
	eventually(t, func() bool { return h.InFlight() == 0 })
	// Both connections have been closed, in the middle of what was written.
	for i, conn := range conns {
		n, err := io.Copy(io.Discard, conn)
		if n > 64*int64(len(big)) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("B091: connection %d got %d bytes, %v", i, n, err)
		}
	}
}

func TestSlowLineIsNotMistakenForDead(t *testing.T) {
	// Each piece of a long reply has a deadline of its own.
	const size = 2 << 20
	var deadlines atomic.Int64
	h := streamable.NewHandler(mcp.HandlerFunc(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		return raw(`{"pad":"` + strings.Repeat("x", size) + `"}`)
	}), nil)
	defer h.Close()
	body := modernRequest("1", "tools/call", toolCall("t", "{}"))
	r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
	r.Header = modernHeader(t, body)
	h.ServeHTTP(&deadlineCounter{httptest.NewRecorder(), &deadlines}, r)
	if n := deadlines.Load(); n < 8 {
		t.Errorf("a reply of %d bytes has %d deadlines", size, n)
	}
}

type deadlineCounter struct {
	*httptest.ResponseRecorder

	n *atomic.Int64
}

func (d *deadlineCounter) SetWriteDeadline(time.Time) error { d.n.Add(1); return nil }

func TestTapSeesWhatIsSent(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	opts := strictServer(t)
	opts.Tap = func(outgoing bool, message []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%v %.40s", outgoing, message))
	}
	b := serving(t, newFixture(), opts)
	b.modern(t, progressing(mcp.Modern), "Mcp-Name", "t")
	b.do(t, "POST", "{", header("Content-Type", "application/json"))
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 4 || !strings.HasPrefix(seen[0], `false {"jsonrpc"`) || !strings.HasPrefix(seen[1], `true {"jsonrpc":"2.0","id":1,"error"`) ||
		seen[2] != "false {" || !strings.HasPrefix(seen[3], `true {"jsonrpc":"2.0","error"`) {
		t.Errorf("the tap saw %q", seen)
	}
}
