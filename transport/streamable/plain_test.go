package streamable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// ping is the handler of the documents: it knows one method.
var ping = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
	switch req.Method {
	case "ping":
		return raw(`{"pong":true}`)
	case "fail":
		return mcp.Result{}, &jsonrpc.Error{Code: 7, Message: "no", Data: jsonrpc.Trusted([]byte(`[1]`))}
	case "panic":
		panic("a handler panics")
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found")
})

func TestPlain(t *testing.T) {
	opts := strictServer(t)
	opts.Plain = true
	b := serving(t, ping, opts)
	const one, note = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"ping"}`
	for _, tt := range []struct {
		name, body string
		status     int
		want       string // the whole body; a prefix if it ends with ...
	}{
		{"S2.74 a request", one, 200, `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`},
		{"S2.78 an unknown method", `{"jsonrpc":"2.0","id":"x","method":"no"}`, 200, `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}`},
		{"an error of the handler", `{"jsonrpc":"2.0","id":1,"method":"fail"}`, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no","data":[1]}}`},
		{"D2.2 a panic", `{"jsonrpc":"2.0","id":7,"method":"panic"}`, 200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603...`},
		{"D2.17 a notification", note, 202, ``},
		{"D2.2 a notification that panics", `{"jsonrpc":"2.0","method":"panic"}`, 202, ``},
		{"S2.17 no JSON", `{`, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700...`},
		{"D2.5 a number", `42`, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600...`},
		{"B025 a fault behind the id", `{"jsonrpc":"2.0","id":8,"method":"ping",}`, 400, `{"jsonrpc":"2.0","id":8,"error":{"code":-32700...`},
		{"D2.28 no parser text in data", `{"a":tru}`, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700...`},
		{"S2.51 a batch", `[` + one + `,` + note + `,{"jsonrpc":"2.0","id":2,"method":"no"}]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{"pong":true}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}]`},
		{"D2.3 a batch with a panic", `[` + one + `,{"jsonrpc":"2.0","id":2,"method":"panic"},` + one + `]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{"pong":true}},{"jsonrpc":"2.0","id":2,"error":{"code":-32603...`},
		{"D2.3 a batch with a faulty item", `[1,` + one + `]`, 200, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600...`},
		{"D2.4 an empty batch", `[]`, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600...`},
		{"S2.59 a batch of notifications", `[` + note + `,` + note + `]`, 202, ``},
		{"a batch of answers", `[{"jsonrpc":"2.0","id":1,"result":{}}]`, 202, ``},
		{"a batch cut off", `[` + one, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700...`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.do(t, "POST", tt.body, header("Content-Type", "application/json"))
			begin, open := strings.CutSuffix(tt.want, "...")
			if r.status != tt.status || !open && r.body != tt.want || !strings.HasPrefix(r.body, begin) {
				t.Errorf("%s, want %d %s", r, tt.status, tt.want)
			}
			if strings.Contains(tt.name, "D2.28") && strings.Contains(r.body, `"data"`) {
				t.Errorf("%s", r)
			}
			if r.status != 202 && !json.Valid([]byte(r.body)) {
				t.Errorf("no JSON: %s", r)
			}
		})
	}
	h := header("Content-Type", "application/json", "Accept", "text/event-stream")
	if r := b.do(t, "POST", one, h); r.status != 406 {
		t.Errorf("B085: a client that takes no JSON: %s", r)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if r := b.do(t, method, "", header("Accept", "text/event-stream", "Mcp-Session-Id", "x")); r.status != 405 || r.header.Get("Allow") != "POST, OPTIONS" || !strings.Contains(r.body, `"id":null`) {
			t.Errorf("%s: %s", method, r)
		}
	}
	// MCP means nothing here.
	if r := b.modern(t, modernRequest("1", "ping", ""), "Mcp-Method", "other"); r.status != 200 || r.body != `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}` {
		t.Errorf("a modern request: %s", r)
	}
}

func TestPlainBatchesCountInFlight_TK1(t *testing.T) {
	started, release := make(chan bool, 5), make(chan bool)
	handler := mcp.HandlerFunc(func(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
		started <- true
		<-release
		return raw(`{}`)
	})
	h := streamable.NewHandler(handler, &streamable.HandlerOptions{Plain: true, MaxInFlight: 3})
	defer h.Close()
	b := newBrowser(t, newServer(t, h))
	const one = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	answered := make(chan reply, 1)
	go func() {
		answered <- b.do(t, "POST", "["+strings.Repeat(one+",", 4)+one+"]", header("Content-Type", "application/json"))
	}()
	for range 3 {
		await(t, started)
	}
	if n := h.InFlight(); n != 3 {
		t.Errorf("%d in flight", n)
	} else if r := b.do(t, "POST", one, header("Content-Type", "application/json")); r.status != 503 {
		t.Errorf("beside a batch: %s", r)
	}
	close(release)
	if r := await(t, answered); r.status != 200 || strings.Count(r.body, `"result":{}`) != 5 {
		t.Errorf("the batch: %s", r)
	}
	eventually(t, func() bool { return h.InFlight() == 0 })
}
