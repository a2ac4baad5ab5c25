package streamable_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

func TestCallOnce(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}`
	json := func(body string) answerer {
		return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			writeJSON(w, 200, strings.ReplaceAll(body, "$", m.ID.String()))
		}
	}
	stream := func(texts ...string) answerer {
		return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			writeStream(w, strings.ReplaceAll(strings.Join(texts, ""), "$", m.ID.String()))
		}
	}
	for _, tt := range []struct {
		name   string
		answer answerer
		want   string
		heard  int
	}{
		{"S1.103 JSON", json(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`), `{"a":1}`, 0},
		{"S1.103 a stream", stream("event: message\ndata: " + `{"jsonrpc":"2.0","id":$,"result":{"a":1}}` + "\n\n"), `{"a":1}`, 0},
		{"D1.25 a notification first", stream(event(note), event(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`)), `{"a":1}`, 1},
		{"D1.25 another id first", stream(event(`{"jsonrpc":"2.0","id":"x","result":{"b":2}}`), event(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`)), `{"a":1}`, 0},
		{"D1.25 no space", stream("data:" + `{"jsonrpc":"2.0","id":$,"result":{"a":1}}` + "\n\n"), `{"a":1}`, 0},
		{"D1.25 several lines", stream("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$,\ndata: \"result\":{\"a\":1}}\n\n"), `{"a":1}`, 0},
		{"D1.25 a keepalive that is no JSON", stream("data: ping\n\n", event(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`)), `{"a":1}`, 0},
		{"S1.103 [DONE]", stream("data: [DONE]\n\n", event(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`)), `{"a":1}`, 0},
		{"a question", stream(event(`{"jsonrpc":"2.0","id":"q","method":"ping"}`), event(`{"jsonrpc":"2.0","id":$,"result":{"a":1}}`)), `{"a":1}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, tt.answer)
			r := newRecorder()
			got, err := streamable.CallOnce(t.Context(), p.url+"?exaApiKey=k", toolRequest("t", `{"q":1}`), r, &streamable.DialOptions{Header: http.Header{"X-Api-Key": {"k"}}})
			if err != nil || string(got.Raw()) != tt.want || len(r.lines()) != tt.heard {
				t.Errorf("%s, %v after %q", got.Raw(), err, r.lines())
			}
			// One request, without a session, a handshake or a goodbye.
			all := p.seen("")
			if len(all) != 1 {
				t.Fatalf("S1.102: %q", p.order())
			}
			want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"q":1}}}`
			if diff := cmp.Diff(want, all[0].body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if all[0].url != "/mcp?exaApiKey=k" || all[0].header.Get("X-Api-Key") != "k" || all[0].header.Get("Mcp-Protocol-Version") != "" {
				t.Errorf("%s with %v", all[0].url, all[0].header)
			}
		})
	}
}

func TestCallOnceInTheModernWay(t *testing.T) {
	p := newPeer(t, modernPeer(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) == "tools/list" {
			writeResult(w, m, annotatedTools)
			return
		}
		writeResult(w, m, `{"a":1}`)
	}))
	req := toolRequest("valid", `{"region":"eu"}`)
	req.Params = jsonrpc.Trusted([]byte(`{"name":"valid","arguments":{"region":"eu"},` + modernMeta + `}`))
	req.Meta.Revision = mcp.Revision20260728
	got, err := streamable.CallOnce(t.Context(), p.url, req, nil, nil)
	if err != nil || string(got.Raw()) != `{"a":1}` {
		t.Fatalf("%s, %v", got.Raw(), err)
	}
	s := p.seen("tools/call")[0]
	if diff := cmp.Diff(map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "valid", "Mcp-Param-Region": "eu"}, s.mirrored()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(s.body, modernMeta) || s.header.Get("Mcp-Protocol-Version") != "2026-07-28" {
		t.Errorf("%s with %v", s.body, s.header)
	}
}

func TestCallOnceFails(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch name, _ := m.Body.LookupString("name"); name {
		case "error":
			writeJSON(w, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad","data":{"x":1}}}`)
		case "status":
			http.Error(w, "teapot", http.StatusTeapot)
		case "auth":
			w.Header().Set("Www-Authenticate", "Bearer")
			w.WriteHeader(401)
		case "session":
			http.NotFound(w, r)
		}
	})
	do := func(name string) error {
		_, err := streamable.CallOnce(t.Context(), p.url, toolRequest(name, "{}"), nil, nil)
		return err
	}
	// S1.108: code, message and data are kept.
	e, ok := errors.AsType[*jsonrpc.Error](do("error"))
	if !ok || e.Code != -32602 || e.Message != "bad" || string(e.Data.Raw()) != `{"x":1}` {
		t.Errorf("S1.108: %v", e)
	}
	if s, ok := errors.AsType[*streamable.StatusError](do("status")); !ok || s.Status != 418 || s.Excerpt != "teapot\n" {
		t.Errorf("S1.108: %v", s)
	}
	if a, ok := errors.AsType[*streamable.AuthError](do("auth")); !ok || len(a.Challenges) != 1 {
		t.Errorf("S1.89: %v", a)
	}
	if err := do("session"); errors.Is(err, streamable.ErrSessionLost) {
		t.Errorf("B098: %v", err)
	}
	if _, err := streamable.CallOnce(t.Context(), "exa", toolRequest("t", "{}"), nil, nil); err == nil {
		t.Error("an address that is none")
	}
}

func TestCallOnceIsBounded(t *testing.T) {
	url, _ := wireServer(t, func(conn net.Conn, r *http.Request, m *jsonrpc.Message) bool {
		_, _ = conn.Read(make([]byte, 1))
		return false
	})
	// S1.104, S1.105
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := streamable.CallOnce(ctx, url, toolRequest("t", "{}"), nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("S1.104: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := streamable.CallOnce(ctx, url, toolRequest("t", "{}"), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("S1.105: %v", err)
	}
}
