package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// arrays returns an array in an array and so on, n in all.
func arrays(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func objects(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func TestParseValueAcceptsJSON(t *testing.T) {
	for _, raw := range []string{
		`0`, `-0`, `1`, `-1.5e+10`, `1E400`, `0.1000`, `12345678901234567890123`,
		`""`, `"\"\\\/\b\f\n\r\t\u0000\uD83D\uDE00"`, `"é東😀"`, "\"\x7f\u2028\u2029\uffff\U0010ffff\"",
		`true`, `false`, `null`, `[]`, `{}`, `[[],{},[{}],{"a":[]}]`, ` [ 1 , 2 ] `, "\t{\r\n\"a\" : 1\n}\n",
		`{"a":1,"a":2}`, `{"":0}`,
		strings.Repeat(" ", 100) + `"` + strings.Repeat("x", 100) + `"`,
		arrays(jsonrpc.MaxDepth), objects(jsonrpc.MaxDepth),
		`[` + strings.Repeat(arrays(jsonrpc.MaxDepth-1)+",", 3) + `1]`,
	} {
		v, err := jsonrpc.ParseValue([]byte(raw))
		if err != nil {
			t.Errorf("%.60q: %v", raw, err)
		} else if got, want := string(v.Raw()), strings.Trim(raw, " \t\r\n"); got != want {
			t.Errorf("%.60q: the value is %.60q", raw, got)
		}
	}
}

func TestParseValueRefusesWhatIsNoJSON(t *testing.T) {
	for _, c := range []struct {
		raw    string
		offset int
	}{
		{``, 0}, {` `, 1}, {`x`, 0}, {`nul`, 0}, {`nulll`, 4}, {`True`, 0}, {`'a'`, 0}, {`NaN`, 0},
		{`-`, 1}, {`01`, 0}, {`-01`, 1}, {`1.`, 2}, {`1.e1`, 2}, {`.5`, 0}, {`+1`, 0}, {`1e`, 2}, {`1e+`, 3}, {`0x1`, 1}, {`1_0`, 1},
		{`"`, 1}, {`"a`, 2}, {`"\`, 1}, {`"\x61"`, 1}, {`"\u00`, 1}, {`"\u00e"`, 1}, {`"\u00G0"`, 1}, {`"\U0061"`, 1}, {`"\'"`, 1},
		{"\"a\nb\"", 2}, {"\"a\x00\"", 2}, {"\"" + strings.Repeat("x", 40) + "\t\"", 41},
		{`[`, 1}, {`]`, 0}, {`[1`, 2}, {`[1,`, 3}, {`[1,]`, 3}, {`[,1]`, 1}, {`[1 2]`, 3}, {`[1}`, 2}, {`[1]]`, 3},
		{`{`, 1}, {`{]`, 1}, {`{"a"`, 4}, {`{"a":`, 5}, {`{"a":}`, 5}, {`{"a":1`, 6}, {`{"a":1,`, 7}, {`{"a":1,}`, 7},
		{`{a:1}`, 1}, {`{1:1}`, 1}, {`{"a" 1}`, 5}, {`{"a":1 "b":2}`, 7}, {`{"a":1]`, 6}, {`{,}`, 1},
		{`{"a":{"b":1,}}`, 12}, {`{"a":[{"b"}]}`, 10}, {`[{"a":1]`, 7}, {`[{"a" 1}]`, 6}, {`[{"\x":1}]`, 3}, {`{"a":tru}`, 5}, {`[[1}`, 3},
		{`1 2`, 2}, {`{} {}`, 3}, {`{}x`, 2}, {`1 /* */`, 2}, {"\ufeff1", 0}, {"\u00a01", 0}, {"\v1", 0}, {"1\x00", 1},
		{"\"caf\xe9\"", 4}, {"\"\xc0\x80\"", 1}, {"\"\xed\xa0\x80\"", 1}, {"\"\xf4\x90\x80\x80\"", 1}, {"\"\xf0\x9f\x98\"", 1}, {"\"\xe2\x28\xa1\"", 1},
		{"{\"\xff\":1}", 2}, {"\xff", 0},
		{arrays(jsonrpc.MaxDepth + 1), jsonrpc.MaxDepth},
		{objects(jsonrpc.MaxDepth + 1), 5 * jsonrpc.MaxDepth},
		{`{"a":` + arrays(jsonrpc.MaxDepth) + `}`, 5 + jsonrpc.MaxDepth - 1},
		{strings.Repeat("[\n", jsonrpc.MaxDepth+1) + strings.Repeat("]\r", jsonrpc.MaxDepth+1), 2 * jsonrpc.MaxDepth},
		{strings.Repeat("[", 200_000), 200_000},
		{strings.Repeat("[", 2000) + `"\x`, 2001},
	} {
		_, err := jsonrpc.ParseValue([]byte(c.raw))
		syntax, ok := errors.AsType[*jsonrpc.SyntaxError](err)
		if !ok {
			t.Errorf("%.60q: error %v, want a *SyntaxError", c.raw, err)
		} else if syntax.Offset != c.offset {
			t.Errorf("%.60q: %v, want it at byte %d", c.raw, err, c.offset)
		}
	}
}

// A string is passed over in words of 8 and 32 bytes: what ends it must be seen
// wherever it stands in a word.
func TestStringsEndWhereverTheyStand(t *testing.T) {
	for n := range 100 {
		text := strings.Repeat("x", n)
		for _, c := range []struct {
			raw   string
			valid bool
		}{
			{`"` + text + `"`, true},
			{`"` + text + `\"` + text + `"`, true},
			{`"` + text + `é` + text + `"`, true},
			{`"` + text + "\x7f" + text + `"`, true},
			{`"` + text + "\x1f" + text + `"`, false},
			{`"` + text + "\x80" + text + `"`, false},
			{`"` + text, false},
			{`"` + text + `\`, false},
			{`"` + text + `" "` + text, false},
		} {
			if _, err := jsonrpc.ParseValue([]byte(c.raw)); (err == nil) != c.valid {
				t.Errorf("%q: %v", c.raw, err)
			}
		}
	}
}

// T-A4 and security.md 1A: a reader of another language finds the same.
func TestOtherReadersSeeTheSameMessage(t *testing.T) {
	data, err := os.ReadFile("testdata/lookups.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ Method, Name, URI *string }
	rows, accepted := 0, 0
	for line := range bytes.Lines(data) {
		if line[0] == '#' {
			continue
		}
		var row struct {
			In           string
			Python, Node *seen
			Refused      int
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows++
		var m jsonrpc.Message
		err := jsonrpc.Scan([]byte(row.In), &m)
		if code := codeOf(err); code != row.Refused {
			t.Errorf("%.200s: code %d (%v), want %d", row.In, code, err, row.Refused)
		}
		if err != nil {
			continue
		}
		accepted++
		var ours seen
		method := string(m.Method)
		ours.Method = &method
		if name, ok := m.Body.LookupString("name"); ok {
			ours.Name = &name
		}
		if uri, ok := m.Body.LookupString("uri"); ok {
			ours.URI = &uri
		}
		for reader, theirs := range map[string]*seen{"python": row.Python, "node": row.Node} {
			if diff := cmp.Diff(theirs, &ours); theirs != nil && diff != "" {
				t.Errorf("%.200s: %s sees another message (-%s +ours):\n%s", row.In, reader, reader, diff)
			}
		}
	}
	if rows < 100 || accepted < 50 {
		t.Fatalf("%d rows, %d of them accepted: the table is not whole", rows, accepted)
	}
}

// codeOf returns the code of a *MessageError, 0 for no error, 1 for another.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*jsonrpc.MessageError](err); ok {
		return e.Code
	}
	return 1
}

func TestBombsCostLittle(t *testing.T) {
	many := func(n int, item string) string { return strings.Repeat(item+",", n-1) + item }
	var b []byte
	for i := range 1_000_000 {
		b = strconv.AppendInt(append(b, `"k`...), int64(i), 10)
		b = append(b, `":0,`...)
	}
	members := string(b[:len(b)-1])
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	result := func(result string) string { return `{"jsonrpc":"2.0","id":7,"result":` + result + `}` }
	for _, c := range []struct {
		name, in string
		code     int
	}{
		{"B029 arguments 100 deep", call(`{"arguments":` + objects(100) + `}`), 0},
		{"B029 arguments 126 deep", call(`{"arguments":` + objects(126) + `}`), 0},
		{"B029 arguments at the limit", call(`{"arguments":` + objects(jsonrpc.MaxDepth-2) + `}`), 0},
		{"B029 arguments over the limit", call(`{"arguments":` + objects(jsonrpc.MaxDepth-1) + `}`), jsonrpc.CodeParseError},
		{"B029 arguments 9999 deep", call(`{"arguments":` + objects(9_999) + `}`), jsonrpc.CodeParseError},
		{"B029 arguments 10001 deep", call(`{"arguments":` + arrays(10_001) + `}`), jsonrpc.CodeParseError},
		{"B029 arguments 200000 deep", call(`{"arguments":` + objects(200_000) + `}`), jsonrpc.CodeParseError},
		{"B029 result 200000 deep", result(arrays(200_000)), jsonrpc.CodeParseError},
		{"B029 200000 deep before the id", `{"params":` + arrays(200_000) + `,"method":"x","id":7,"jsonrpc":"2.0"}`, jsonrpc.CodeParseError},
		{"R34 1e6 opening brackets", strings.Repeat("[", 1_000_000), jsonrpc.CodeParseError},
		{"R34 a limit passed 1e6 times", call(strings.Repeat("[", 999) + many(1_000_000, "[]") + strings.Repeat("]", 999)), jsonrpc.CodeParseError},
		{"R34 2e6 elements", call(`{"arguments":[` + many(2_000_000, "0") + `]}`), 0},
		{"R34 a batch of 2e6", `[` + many(2_000_000, "0") + `]`, jsonrpc.CodeInvalidRequest},
		{"R34 1e6 members of arguments", call(`{"arguments":{` + members + `}}`), 0},
		{"R34 1e6 members of params", call(`{` + members + `}`), jsonrpc.CodeInvalidRequest},
		{"R34 1e6 members of params._meta", call(`{"_meta":{` + members + `}}`), jsonrpc.CodeInvalidRequest},
		{"R34 1e6 members of the message", `{"id":7,"method":"x","jsonrpc":"2.0",` + members + `}`, jsonrpc.CodeInvalidRequest},
		{"R34 1e6 duplicates", call(`{` + many(1_000_000, `"a":0`) + `}`), jsonrpc.CodeInvalidRequest},
		{"R34 1e6 members of a result", result(`{` + members + `}`), 0},
		{"R34 a number of 1 MiB", call(`{"n":1` + strings.Repeat("0", 1<<20) + `}`), 0},
		{"R34 a name of 1 MiB", call(`{"` + strings.Repeat("k", 1<<20) + `":0}`), 0},
		{"R34 a name of 1 MiB twice", call(`{"` + strings.Repeat("k", 1<<20) + `":0,"` + strings.Repeat("k", 1<<20) + `":0}`), jsonrpc.CodeInvalidRequest},
		{"R34 1 MiB of escapes", call(`{"` + strings.Repeat(`\u006b`, 1<<20/6) + `":"` + strings.Repeat(`\n`, 1<<19) + `"}`), 0},
		{"R34 1 MiB of bad UTF-8", call(`{"s":"` + strings.Repeat("\xff", 1<<20) + `"}`), jsonrpc.CodeParseError},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := []byte(c.in)
			var m jsonrpc.Message
			var err error
			inTime(t, func() {
				allocatesAtMost(t, 8<<20, func() {
					if jsonrpc.IsBatch(data) {
						_, err = jsonrpc.SplitBatch(data)
					} else {
						err = jsonrpc.Scan(data, &m)
					}
					m.Body.Lookup("_meta")
				})
			})
			if code := codeOf(err); code != c.code {
				t.Fatalf("code %d (%v), want %d", code, err, c.code)
			}
			if err != nil && len(err.Error()) > 512 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if !jsonrpc.IsBatch(data) && m.ID.String() != "7" {
				t.Errorf("the id is %s", m.ID)
			}
		})
	}
}

// inTime fails the test if f takes too long each time it is tried. The bound is
// one for a busy machine and the race detector; what it is to find, work that
// grows with the square of the input, takes minutes.
func inTime(t *testing.T, f func()) {
	t.Helper()
	const enough = 10 * time.Second
	var took time.Duration
	for range 3 {
		start := time.Now()
		f()
		if took = time.Since(start); took < enough {
			return
		}
	}
	t.Errorf("took %v", took)
}

func allocatesAtMost(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d bytes were allocated, at most %d are right", n, most)
	}
}
