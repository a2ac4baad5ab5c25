package floor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

func TestScan(t *testing.T) {
	r, err := scan([]byte(` { "jsonrpc" : "2.0" , "id" : "a\"b" , "method" : "tools/call", "params" : { "name":"echo",` +
		` "arguments": { "other":[1,{"x":"]}"}], "text" : "a\\\"b\\" }, "_meta": {"io.modelcontextprotocol/protocolVersion":"2026-07-28"} } } `))
	if err != nil {
		t.Fatal(err)
	}
	if string(r.id) != `"a\"b"` || string(r.method) != "tools/call" || string(r.text) != `a\\\"b\\` || !r.modern {
		t.Errorf("id %s, method %s, text %s, modern %v", r.id, r.method, r.text, r.modern)
	}
}

// Whatever comes, the scan ends.
func TestScanEnds(t *testing.T) {
	whole := string(wire.CallTool(wire.Modern, wire.Text(100)).Bytes)
	for cut := range whole {
		if _, err := scan([]byte(whole[:cut])); err == nil {
			t.Errorf("no error for %q", whole[:cut])
		}
	}
	for _, bad := range []string{"", "[]", "1", `{"a"}`, `{"a":}`, `{"a":1 2}`, `{,}`, `{"params":1}`} {
		scan([]byte(bad))
		findID([]byte(bad))
	}
}

func FuzzScan(f *testing.F) {
	f.Add(wire.CallTool(wire.Modern, wire.Text(100)).Bytes)
	f.Add(wire.ListTools(wire.Legacy).Bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		scan(b)
		if from, to, ok := findID(b); ok && (from > to || to > len(b)) {
			t.Errorf("id at %d to %d of %d bytes", from, to, len(b))
		}
	})
}

func TestFindID(t *testing.T) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":12,"result":{}}`: "12",
		`{"result":{"id":1},"id" : "x" }`:       `"x"`,
		`{"id":3}`:                              "3",
		`{"method":"notifications/x"}`:          "",
	} {
		from, to, ok := findID([]byte(message))
		if got := message[from:to]; got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", message, got, ok, want)
		}
	}
}

func TestQuoting(t *testing.T) {
	for _, want := range []string{"", "plain", "a\"b\\c\n\t\r\b\f\x01", "naïve 🙂", wire.Text(1000)} {
		quoted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		raw := quoted[1 : len(quoted)-1]
		if got := unquote(raw); got != want {
			t.Errorf("unquote(%s) = %q, want %q", raw, got, want)
		}
		var got string
		again := `"` + string(appendQuoted(nil, want)) + `"`
		if err := json.Unmarshal([]byte(again), &got); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", again, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		`\u0041\u00e9`: "Aé", `\ud83d\ude42`: "🙂", `\ud83dx`: "\uFFFDx", `\/`: "/", `\u12`: "\uFFFD",
	} {
		if got := unquote([]byte(raw)); got != want {
			t.Errorf("unquote(%s) = %q, want %q", raw, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, typed := range []bool{false, true} {
		s := &Server{Typed: typed}
		for _, r := range []wire.Revision{wire.Legacy, wire.Modern} {
			greeting, _ := wire.Greeting(r)
			if err := wire.CheckGreeting(s.answer(nil, greeting.Bytes), wire.FirstID, r); err != nil {
				t.Error(err)
			}
			if err := wire.CheckList(s.answer(nil, wire.ListTools(r).Bytes), wire.FirstID); err != nil {
				t.Error(err)
			}
			text := wire.Text(1000)
			if err := wire.CheckCall(s.answer(nil, wire.CallTool(r, text).Bytes), wire.FirstID, r, text); err != nil {
				t.Error(err)
			}
		}
		if out := s.answer(nil, wire.Initialized().Bytes); len(out) > 0 {
			t.Errorf("a notification was answered: %s", out)
		}
	}
}

func TestStdioAnswersEveryLine(t *testing.T) {
	var in, out strings.Builder
	const lines = 100
	for range lines {
		in.Write(wire.CallTool(wire.Legacy, wire.Text(10_000)).Line().Bytes)
	}
	if err := new(Server).ServeStdio(strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != lines {
		t.Errorf("%d replies, want %d", n, lines)
	}
}
