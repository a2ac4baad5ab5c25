package raw

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A typed client sends what the raw client sends, though it writes it anew each time,
// at a length that it finds out itself.
func TestTypedRequests(t *testing.T) {
	e := wire.Endpoint{Addr: "127.0.0.1:80", Session: "s"}
	for _, r := range []wire.Revision{wire.Legacy, wire.Modern} {
		for _, size := range []int{0, 1, 100, 64 << 10} {
			text := wire.Text(size)
			call := wire.CallTool(r, text)
			e.Revision = r
			line, whole := call.Line(), call.HTTP(e, "tools/call", wire.ToolName)
			pipe, over := newTypedCall(r, text, nil), newTypedCall(r, text, &e)
			for id := range int64(3) {
				line.SetID(wire.FirstID + id)
				if got := pipe.request(wire.FirstID + id); string(got) != string(line.Bytes) {
					t.Errorf("%s, %d bytes: the line %s, want %s", r, size, wire.Excerpt(got), wire.Excerpt(line.Bytes))
				}
				whole.SetID(wire.FirstID + id)
				if got := over.request(wire.FirstID + id); string(got) != string(whole.Bytes) {
					t.Errorf("%s, %d bytes: %q, want %q", r, size, got, whole.Bytes)
				}
			}
		}
	}
}

// It accepts a text however the reply is written, and notices what is wrong with any
// reply, not only with the first one.
func TestTypedReplies(t *testing.T) {
	const text = "a \"naïve\" café\n"
	quoted, _ := json.Marshal(text)
	good := fmt.Sprintf(`{"jsonrpc":"2.0","id":1000000001,"result":{"content":[{"type":"text","text":%s}]}}`, quoted)
	for name, c := range map[string]struct {
		reply string
		ok    bool
	}{
		"as servers write it": {good, true},
		"other order":         {strings.Replace(good, `"type":"text","text":`+string(quoted), `"text":`+string(quoted)+`,"type":"text"`, 1), true},
		"white space":         {strings.ReplaceAll(good, ",", " , "), true},
		"other escapes":       {strings.Replace(good, "naïve", `na\u00efve`, 1), true},
		"half":                {good[:len(good)-1], false},
		"not UTF-8":           {strings.Replace(good, "ï", "\xc3", 1), false},
		"control character":   {strings.Replace(good, `\n`, "\n", 1), false},
		"another id":          {strings.Replace(good, "000001", "000002", 1), false},
		"an error":            {`{"jsonrpc":"2.0","id":1000000001,"error":{"code":1,"message":"no"}}`, false},
		"shorter text":        {strings.Replace(good, "naïve", "naive", 1), false},
		"no text":             {`{"jsonrpc":"2.0","id":1000000001,"result":{"content":[]}}`, false},
		"no content":          {`{"jsonrpc":"2.0","id":1000000001,"result":{}}`, false},
		"a notification":      {`{"jsonrpc":"2.0","method":"notifications/x"}`, false},
	} {
		call := newTypedCall(wire.Legacy, text, nil)
		for i, reply := range []reply{
			{status: 200, body: []byte(good)},
			{status: 200, body: []byte(c.reply)},
			{status: 200, body: []byte("event: message\ndata: " + strings.ReplaceAll(c.reply, "\n", "\ndata: ") + "\n\n"), events: true},
			{status: 500, body: []byte(good)},
		} {
			if err := reply.checkTyped(call, 1000000001); (err == nil) != (i == 0 || c.ok && i < 3) {
				t.Errorf("%s, reply %d: %v", name, i, err)
			}
		}
	}
	first := newTypedCall(wire.Legacy, strings.ToUpper(text), nil)
	if _, err := first.check([]byte(good)); err == nil {
		t.Error("the first reply has another text of that length: no error")
	}
}

// A typed client calls over both transports and ends at the first reply that
// is not what it must be.
func TestTypedClients(t *testing.T) {
	for _, spoiled := range []bool{false, true} {
		calls := 0
		answer := func(body []byte) string {
			var m struct {
				ID     int64
				Params struct{ Arguments struct{ Text string } }
			}
			if err := json.Unmarshal(body, &m); err != nil {
				t.Error(err)
			}
			quoted, _ := json.Marshal(m.Params.Arguments.Text)
			if calls++; spoiled && calls > 5 {
				quoted[1] = 0xff
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%s}]}}`, m.ID, quoted)
		}
		peer := Peer{Revision: wire.Legacy, Typed: true}
		for _, size := range []int{100, 64 << 10} {
			load := Load{Text: wire.Text(size), InFlight: 1, Calls: 20} // the pipes hold nothing
			calls = 0
			p, stop := pipeTo(peer, func(line []byte) string {
				return `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" + answer(line)
			})
			s, err := p.Run(load)
			if stop(); (err != nil) != spoiled || err == nil && s.Calls != load.Calls {
				t.Errorf("pipe, %d bytes, spoiled %v: %+v, %v", size, spoiled, s, err)
			}

			calls = 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				io.WriteString(w, answer(body))
			}))
			h := NewHTTP(srv.Listener.Addr().String(), peer)
			if s, err = h.Run(load); (err != nil) != spoiled || err == nil && s.Calls != load.Calls {
				t.Errorf("HTTP, %d bytes, spoiled %v: %+v, %v", size, spoiled, s, err)
			}
			h.Close()
			srv.Close()
		}
	}
}
