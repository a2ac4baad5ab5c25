package jsonrpc_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// seeds returns the messages of the table and some more.
func seeds(t testing.TB) [][]byte {
	f, err := os.Open("testdata/lookups.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := [][]byte{
		call("x"),
		[]byte(`{"jsonrpc":"2.0","id":9007199254740993,"result":{"a":[1.0,1E2,-0],"\u0061b":"\ud83d\ude00\/"}}`),
		[]byte(`{"jsonrpc":"2.0","id":"\u0061","error":{"code":-32602,"message":"\ud800","data":{"a":null}}}`),
		[]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}`),
		[]byte(`{"jsonrpc":"2.0","id":1.0,"result":[]}`),
		[]byte("{\r\n\"jsonrpc\":\"2.0\",\n\"method\":\"m\",\"params\":[\n1]\n}"),
		[]byte("\"caf\xe9\""),
		[]byte(arrays(jsonrpc.MaxDepth + 1)),
		[]byte(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"a":11}`),
	}
	more := len(out)
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Bytes(); line[0] != '#' {
			var row struct{ In string }
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatal(err)
			}
			out = append(out, []byte(row.In))
		}
	}
	if len(out) < more+100 {
		t.Fatalf("%d seeds: the table is not whole", len(out))
	}
	return out
}

// write writes a message as it would be passed on.
func write(m *jsonrpc.Message) []byte {
	switch {
	case m.Kind == jsonrpc.Request:
		return jsonrpc.AppendRequest(nil, m.ID, string(m.Method), &m.Body)
	case m.Kind == jsonrpc.Notification:
		return jsonrpc.AppendNotification(nil, string(m.Method), &m.Body)
	case m.Failed && m.ID.IsZero():
		return jsonrpc.AppendNullError(nil, jsonrpc.ReadError(&m.Body))
	case m.Failed:
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ReadError(&m.Body))
	}
	return jsonrpc.AppendResult(nil, m.ID, &m.Body)
}

var withoutBreaks = strings.NewReplacer("\r", "", "\n", "")

// What is written is what was read: the same kind, id and method, and the same
// tokens.
func FuzzScanWrite(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		var m, back jsonrpc.Message
		if jsonrpc.Scan(data, &m) != nil {
			return
		}
		out := write(&m)
		if !bytes.Equal(data, before) {
			t.Fatalf("the message was changed to %q", data)
		}
		if !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) || !utf8.Valid(out) {
			t.Fatalf("written %q", out)
		}
		if bytes.ContainsAny(out, "\r\n") {
			t.Fatalf("written in more than one line: %q", out)
		}
		if err := jsonrpc.Scan(out, &back); err != nil {
			t.Fatalf("written %q: %v", out, err)
		}
		if back.Kind != m.Kind || back.Failed != m.Failed || back.ID.String() != m.ID.String() || string(back.Method) != string(m.Method) {
			t.Fatalf("from %s\nto   %s", describe(&m), describe(&back))
		}
		if again := write(&back); !bytes.Equal(again, out) {
			t.Fatalf("written  %q\nand then %q", out, again)
		}
		if m.Failed {
			sameError(t, &m.Body, &back.Body)
			return
		}
		for _, v := range [][2]*jsonrpc.Value{{&m.Body, &back.Body}, {&m.Meta, &back.Meta}} {
			if want := withoutBreaks.Replace(string(v[0].Raw())); string(v[1].Raw()) != want {
				t.Fatalf("from %s\nto   %s", want, v[1].Raw())
			}
		}
	})
}

// sameError compares an error with what became of it: the code, the message and
// the bytes of data are kept; if the code is none, the whole is the data.
func sameError(t *testing.T, v, back *jsonrpc.Value) {
	from, to := jsonrpc.ReadError(v), jsonrpc.ReadError(back)
	if to.Code != from.Code || to.Message != from.Message {
		t.Fatalf("from %v\nto   %v", from, to)
	}
	want := v.Get("data")
	code, _ := v.Lookup("code")
	if n, err := strconv.Atoi(string(code)); err != nil || n != from.Code {
		want = *v
	}
	got := back.Get("data")
	if string(got.Raw()) != withoutBreaks.Replace(string(want.Raw())) {
		t.Fatalf("data from %s\nto   %s", want.Raw(), got.Raw())
	}
}

// accepted is what a value has to be, in the words of another library: JSON in
// UTF-8, nested within the limit. Duplicates and escaped lone surrogates are let
// through; that library has one option for the latter and for bad UTF-8.
func accepted(raw []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	depth := 0
	for {
		_, err := d.ReadToken()
		depth = max(depth, d.StackDepth())
		if errors.Is(err, io.EOF) && d.StackDepth() == 0 {
			break
		}
		if err != nil {
			return false
		}
	}
	return utf8.Valid(raw) && depth <= jsonrpc.MaxDepth &&
		jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func FuzzScanAgrees(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := accepted(data)
		v, err := jsonrpc.ParseValue(data)
		if (err == nil) != want {
			t.Fatalf("ParseValue says %v, jsontext says %v", err, want)
		}
		if err == nil && string(v.Raw()) != strings.Trim(string(data), " \t\r\n") {
			t.Fatalf("the value is %q", v.Raw())
		}
		if strict := jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true)); strict && err != nil && !strings.Contains(err.Error(), "MaxDepth") {
			t.Fatalf("ParseValue says %v of what jsontext takes without leniency", err)
		}
		var m jsonrpc.Message
		if jsonrpc.Scan(data, &m) == nil && !accepted(bytes.TrimPrefix(data, []byte("\ufeff"))) {
			t.Fatal("Scan takes what is no JSON")
		}
	})
}

// A pair is a member as another library reads it.
type pair struct{ Name, Value string }

// pairs returns the members of an object in their order, none of what is no
// object.
func pairs(t *testing.T, raw []byte) []pair {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return nil
	}
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	var out []pair
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pair{text, string(value)})
	}
	return out
}

// find returns the first and the last member called name.
func find(members []pair, name string) (first, last string) {
	for _, m := range members {
		if m.Name != name {
			continue
		}
		if first == "" {
			first = m.Value
		}
		last = m.Value
	}
	return first, last
}

// text returns the string that value is, as encoding/json has it.
func text(value string) (string, bool) {
	var s string
	if !strings.HasPrefix(value, `"`) {
		return "", false
	}
	err := json.Unmarshal([]byte(value), &s)
	return s, err == nil
}

func FuzzLookup(f *testing.F) {
	for i, data := range seeds(f) {
		f.Add(data, []string{"name", "method", "\ufffd", ""}[i%4])
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		v, err := jsonrpc.ParseValue(data)
		if err != nil {
			return
		}
		sameMembers(t, &v, name)
		trusted := jsonrpc.Trusted(data)
		sameMembers(t, &trusted, name)
		var items []json.RawMessage
		if json.Unmarshal(data, &items) != nil {
			items = nil
		}
		for i, item := range jsonrpc.Elements(data) {
			if i >= len(items) || !bytes.Equal(item, items[i]) {
				t.Fatalf("element %d is %q, want %q", i, item, items)
			}
			v := jsonrpc.Trusted(item)
			sameMembers(t, &v, name)
		}

		var m jsonrpc.Message
		if jsonrpc.Scan(data, &m) != nil {
			return
		}
		// Whoever takes the first of two members reads the same message as who
		// takes the last.
		envelope := pairs(t, data)
		params := pairs(t, []byte(last(envelope, "params")))
		meta := pairs(t, []byte(last(params, "_meta")))
		for _, members := range [][]pair{envelope, params, meta} {
			for _, m := range members {
				if first, last := find(members, m.Name); first != last {
					t.Fatalf("%q is %s or %s", m.Name, first, last)
				}
			}
		}
		if method, _ := text(last(envelope, "method")); method != string(m.Method) {
			t.Fatalf("method %q, want %q", m.Method, method)
		}
		if id := last(envelope, "id"); id != string(m.ID.Raw()) && id != "null" {
			t.Fatalf("id %s, want %s", m.ID, id)
		}
		for _, key := range []string{"name", "uri", "taskId"} {
			if m.Kind == jsonrpc.Response {
				break
			}
			want, wantOK := text(last(params, key))
			if got, ok := m.Body.LookupString(key); got != want || ok != wantOK {
				t.Fatalf("%s is %q, want %q", key, got, want)
			}
		}
		if got := m.Meta.Raw(); string(got) != last(params, "_meta") && len(got) > 0 {
			t.Fatalf("_meta is %s, want %s", got, last(params, "_meta"))
		}
	})
}

func last(members []pair, name string) string {
	_, value := find(members, name)
	return value
}

// sameMembers compares what v says of its members with what two other readers
// find.
func sameMembers(t *testing.T, v *jsonrpc.Value, name string) {
	want := pairs(t, v.Raw())
	var got []pair
	for name, value := range v.Members() {
		got = append(got, pair{name, string(value)})
	}
	if !slices.Equal(got, want) || v.Len() != len(want) {
		t.Fatalf("%d members %q, want %q", v.Len(), got, want)
	}
	object := make(map[string]json.RawMessage)
	if v.IsObject() {
		if err := json.Unmarshal(v.Raw(), &object); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{name}
	for name := range object {
		names = append(names, name)
	}
	for _, name := range names {
		wantRaw, wantOK := object[name]
		if got, ok := v.Lookup(name); ok != wantOK || !bytes.Equal(got, wantRaw) {
			t.Fatalf("%q is %q, want %q", name, got, wantRaw)
		}
		wantText, wantOK := text(string(wantRaw))
		if got, ok := v.LookupString(name); ok != wantOK || got != wantText {
			t.Fatalf("%q is %q, want %q", name, got, wantText)
		}
	}
}

// edit is what AppendEdited has to do to a list of members.
func edit(members []pair, name, value string) []pair {
	var out []pair
	for _, m := range members {
		if m.Name != name {
			out = append(out, m)
			continue
		}
		if value != "" {
			out = append(out, pair{name, value})
		}
		value = ""
	}
	if value != "" {
		out = append(out, pair{name, value})
	}
	return out
}

// rawNames returns the names that are not name as they are written.
func rawNames(t *testing.T, raw []byte, name string) []string {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return nil
	}
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for d.PeekKind() != '}' {
		written, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		if s, _ := text(string(written)); s != name {
			out = append(out, string(written))
		}
		if err := d.SkipValue(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func FuzzEdited(f *testing.F) {
	for i, data := range seeds(f) {
		f.Add(data, []string{"params", "method", "a", "\"\n"}[i%4], []byte([]string{"1", "", "{\n\"a\":\r[]}", `"x"`}[i/4%4]))
	}
	f.Fuzz(func(t *testing.T, data []byte, name string, value []byte) {
		name = string([]rune(name)) // what no JSON can hold becomes U+FFFD in it
		v, err := jsonrpc.ParseValue(data)
		if err != nil || !v.IsObject() {
			return
		}
		if _, err := jsonrpc.ParseValue(value); err != nil {
			value = nil
		}
		out := jsonrpc.AppendEdited(nil, &v, jsonrpc.Edit{Name: name, Value: value})
		if bytes.ContainsAny(out, "\r\n") {
			t.Fatalf("%q has line breaks", out)
		}
		trusted := jsonrpc.Trusted(data)
		if other := jsonrpc.AppendEdited(nil, &trusted, jsonrpc.Edit{Name: name, Value: value}); !bytes.Equal(out, other) {
			t.Fatalf("%q, but %q without an index", out, other)
		}
		want := edit(pairs(t, v.Raw()), name, string(bytes.Trim(value, " \t\r\n")))
		for i := range want {
			want[i].Value = withoutBreaks.Replace(want[i].Value)
		}
		if diff := cmp.Diff(want, pairs(t, out)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", out, diff)
		}
		if diff := cmp.Diff(rawNames(t, v.Raw(), name), rawNames(t, out, name)); diff != "" {
			t.Fatalf("%q: names (-want +got):\n%s", out, diff)
		}
	})
}

// framed is what a LineReader has to give for data, in the notation of lines.
func framed(data []byte, limit int) []string {
	var out []string
	pieces := bytes.Split(data, []byte("\n"))
	for i, piece := range pieces {
		end := ""
		if i == len(pieces)-1 {
			end = "~"
		}
		if len(piece) > limit {
			out = append(out, end+fmt.Sprintf("too long: %d", len(piece)))
			continue
		}
		line := strings.Trim(string(piece), " \t\r")
		line = strings.TrimLeft(strings.TrimPrefix(line, "\ufeff"), " \t\r")
		if line != "" && !strings.HasPrefix(strings.ToLower(line), "content-length:") {
			out = append(out, line+end)
		}
	}
	return out
}

// cuts reads as many bytes as its next byte says, times scale.
type cuts struct {
	data, sizes []byte
	scale, n    int
}

func (c *cuts) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	size := len(p)
	if len(c.sizes) > 0 {
		size = int(c.sizes[c.n%len(c.sizes)]) * c.scale
		c.n++
	}
	if size == 0 && c.n%2 == 0 {
		size = 1
	}
	n := copy(p[:min(size, len(p))], c.data)
	c.data = c.data[n:]
	return n, nil
}

func FuzzLines(f *testing.F) {
	for i, data := range seeds(f) {
		f.Add(append(bytes.Clone(data), "\r\n\n{}\n\ufeff{}"...), []byte{byte(i), 3, 0, 200}, uint16(40+i), uint16(1+i%7*300), uint16(i))
	}
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"), []byte{1}, uint16(100), uint16(1), uint16(9000))
	f.Fuzz(func(t *testing.T, data, sizes []byte, limit, scale, repeat uint16) {
		limit = max(limit, 1)
		// Long lines grow out of short input.
		data = bytes.ReplaceAll(data, []byte("~"), bytes.Repeat([]byte("x"), int(repeat)))
		if len(data) > 1<<20 {
			return
		}
		l := jsonrpc.NewLineReader(&cuts{data: data, sizes: sizes, scale: int(scale)}, int(limit))
		if diff := cmp.Diff(framed(data, int(limit)), lines(l)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
