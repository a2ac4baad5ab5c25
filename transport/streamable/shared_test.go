package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// serveBridge serves, over HTTP, a bridge to a server that speaks one era over
// a byte stream, and counts the connections to it.
func serveBridge(t *testing.T, server mcp.Handler, era mcp.Era) (url string, dialed func() int) {
	t.Helper()
	dial := serveStream(t, server, era)
	var mu sync.Mutex
	n := 0
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		mu.Lock()
		n++
		mu.Unlock()
		return dial(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Logger: logger})
	}, transport.PoolOptions{Logger: logger})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	url = listen(t, pool, &streamable.ServerOptions{HandlerOptions: streamable.HandlerOptions{Logger: logger}})
	return url, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// TestAnswersNeverCross_B143_D219 has clients that use the same ids, as numbers
// and as equal strings, call through one connection to one server, while some of
// them leave in mid-call.
func TestAnswersNeverCross_B143_D219(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			url, dialed := serveBridge(t, newFixture(), era)
			var clients sync.WaitGroup
			for c := range 10 {
				clients.Go(func() { callWithEqualIDs(t, url, c) })
			}
			clients.Wait()
			if n := dialed(); n != 1 {
				t.Errorf("%d connections to the server", n)
			}
		})
	}
}

func callWithEqualIDs(t *testing.T, url string, client int) {
	b := newBrowser(t, url)
	for i := range 50 {
		id := fmt.Sprint(i)
		if client%2 == 1 {
			id = `"` + id + `"`
		}
		text := fmt.Sprintf("client %d call %d", client, i)
		if client == 9 && i%10 == 0 {
			leaveInMidCall(t, url, id)
		}
		got := b.modern(t, modernRequest(id, "tools/call", `"name":"echo","arguments":{"text":"`+text+`"}`))
		if got.status != http.StatusOK || !strings.Contains(got.body, `"id":`+id+`,`) || !strings.Contains(got.body, text) {
			t.Errorf("%s: %v", text, got)
			return
		}
	}
}

// leaveInMidCall makes a call that does not end, and hangs up.
func leaveInMidCall(t *testing.T, url, id string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	body := modernRequest(id, "tools/call", `"name":"slow"`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header = modernHeader(t, body)
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		t.Errorf("a call that does not end was answered with HTTP %d", resp.StatusCode)
		resp.Body.Close()
	}
}

// TestClientThatLeavesHasCancelled_B122 drops the connection of a modern client
// in front of a server that is not HTTP.
func TestClientThatLeavesHasCancelled_B122(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			fixture := newFixture()
			url, _ := serveBridge(t, fixture, era)
			body := modernRequest("1", "tools/call", `"name":"slow"`)
			conn := dialRaw(t, url)
			var head strings.Builder
			if err := modernHeader(t, body).Write(&head); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, conn, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s", len(body), head.String(), body))
			await(t, fixture.started)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			await(t, fixture.cancelled)
		})
	}
}

// TestCredentialsStayOnTheirSide_B133 looks at what a server behind a bridge sees
// of a client's headers, and a client of the server's refusal.
func TestCredentialsStayOnTheirSide_B133(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	backend := streamable.NewHandler(newFixture(), nil)
	t.Cleanup(backend.Close)
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for name, values := range r.Header {
			seen = append(seen, name+": "+strings.Join(values, ", "))
		}
		if refuse {
			w.Header().Set("WWW-Authenticate", `Bearer realm="backend"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return streamable.Dial(ctx, server.URL, &streamable.DialOptions{DialOptions: transport.DialOptions{Client: meta.Client}})
	}, transport.PoolOptions{})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	b := newBrowser(t, listen(t, pool, nil))
	call := modernRequest("1", "tools/call", `"name":"echo","arguments":{}`)
	got := b.modern(t, call, "Authorization", "Bearer canary", "Cookie", "k=canary", "X-Forwarded-For", "canary",
		"Proxy-Authorization", "canary", "Mcp-Session-Id", "canary", "X-Secret", "canary")
	if got.status != http.StatusOK {
		t.Fatalf("the call was answered with %v", got)
	}
	mu.Lock()
	refuse = true
	if all := strings.Join(seen, "\n"); strings.Contains(all, "canary") {
		t.Errorf("the server saw:\n%s", all)
	}
	mu.Unlock()
	got = b.modern(t, call)
	if got.status == http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("the server's challenge became the bridge's own: %v", got)
	}
	if got.code(t) != jsonrpc.CodeInternalError {
		t.Errorf("the refusal was told as %v", got)
	}
}

// TestServerThatDoesNotStart_B056 has a client of each era call a server that
// ends at once, and later starts after all.
func TestServerThatDoesNotStart_B056(t *testing.T) {
	dial := serveStream(t, newFixture(), mcp.Legacy)
	var mu sync.Mutex
	broken := true
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return nil, &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.NotSent, Err: fmt.Errorf("exit status 1; stderr: secret")}
		}
		return dial(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities})
	}, transport.PoolOptions{})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	b := newBrowser(t, listen(t, pool, nil))
	initialize := initializeRequest("2025-11-25")
	for _, got := range []reply{
		b.do(t, http.MethodPost, initialize, header("Content-Type", "application/json", "Accept", "application/json, text/event-stream")),
		b.modern(t, modernRequest("1", "tools/call", `"name":"echo","arguments":{}`)),
	} {
		if got.code(t) != jsonrpc.CodeInternalError || !strings.Contains(got.body, `"outcome":"not sent"`) {
			t.Errorf("the call was answered with %v", got)
		}
		if strings.Contains(got.body, "secret") {
			t.Errorf("the client is told what the server wrote: %v", got)
		}
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	eventually(t, func() bool {
		return b.modern(t, modernRequest("2", "tools/call", `"name":"echo","arguments":{}`)).code(t) == 0
	})
}
