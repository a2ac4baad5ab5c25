package wire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

func TestTextHasItsSize(t *testing.T) {
	for size := range 300 {
		if s := wire.Text(size); len(s) != size || !utf8.ValidString(s) {
			t.Errorf("Text(%d) has %d bytes: %q", size, len(s), s)
		}
	}
}

func TestRequestsAreWhatTheyClaim(t *testing.T) {
	const id = 1_234_567_890
	for _, r := range []wire.Revision{wire.Legacy, wire.Modern} {
		greeting, method := wire.Greeting(r)
		for want, m := range map[string]*wire.Message{
			method: greeting, "tools/list": wire.ListTools(r), "tools/call": wire.CallTool(r, wire.Text(100)),
		} {
			m.SetID(id)
			var got struct {
				JSONRPC, Method string
				ID              int64
				Params          struct {
					Meta      map[string]json.RawMessage `json:"_meta"`
					Arguments struct{ Text string }
				}
			}
			if err := json.Unmarshal(m.Bytes, &got); err != nil {
				t.Fatalf("%s: %v", m.Bytes, err)
			}
			if got.JSONRPC != "2.0" || got.Method != want || got.ID != id {
				t.Errorf("got %s, want method %s and id %d", m.Bytes, want, id)
			}
			if modern := len(got.Params.Meta) == 3; modern != (r == wire.Modern) {
				t.Errorf("%s: _meta of %s", r, m.Bytes)
			}
			if want == "tools/call" && got.Params.Arguments.Text != wire.Text(100) {
				t.Errorf("text of %s", m.Bytes)
			}
		}
	}
}

func TestHTTPRequestIsReadable(t *testing.T) {
	m := wire.CallTool(wire.Modern, "x")
	const id = 2_000_000_001
	req := m.HTTP(wire.Endpoint{Addr: "127.0.0.1:1", Revision: wire.Modern, Session: "s"}, "tools/call", wire.ToolName)
	req.SetID(id)
	m.SetID(id)
	got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(req.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil || !bytes.Equal(body, m.Bytes) {
		t.Errorf("body %s, %v", body, err)
	}
	for name, want := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo", "Mcp-Session-Id": "s",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

func TestCheckCall(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"x"}]}}`
	if err := wire.CheckCall([]byte(good), 7, wire.Modern, "x"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string][2]string{
		"another id":    {`"id":7`, `"id":8`},
		"another text":  {`"text":"x"`, `"text":"y"`},
		"no resultType": {`"resultType":"complete",`, ``},
		"tool error":    {`"content"`, `"isError":true,"content"`},
		"not JSON":      {`}}`, ``},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if err := wire.CheckCall([]byte(bad), 7, wire.Modern, "x"); err == nil {
			t.Errorf("%s: no error for %s", name, bad)
		}
	}
}
