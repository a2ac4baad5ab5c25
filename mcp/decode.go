package mcp

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mcpsplice/mcpsplice/internal/lenient"
	"github.com/mcpsplice/mcpsplice/jsonrpc"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Decode decodes the result into v, a pointer to one of this package's result types
// or to any other type, by encoding/json's rules, save that integers may be written
// as 1.0 and 1e3, and an empty object as []. The result's bytes have been found valid
// before, so that the texts of a CallToolResult are passed over once rather than
// several times. Caching hints that are none are left out, since they are not to hide
// what they are about.
func (r *Result) Decode(v any) error {
	if call, ok := v.(*CallToolResult); ok {
		return call.read(&r.Value)
	}
	err := decode(r.Raw(), v)
	if err == nil {
		return nil
	}
	if edits := mendedHints(&r.Value); len(edits) > 0 {
		return decode(jsonrpc.AppendEdited(nil, &r.Value, edits...), v)
	}
	return err
}

// mendedHints returns edits of caching hints that have another type, or another form:
// 6e4 is a number of milliseconds, too.
func mendedHints(result *jsonrpc.Value) (edits []jsonrpc.Edit) {
	const most = 1 << 53 // what a float64 can tell apart
	if raw, ok := result.Lookup("ttlMs"); ok && !isInteger(raw) {
		edit := jsonrpc.Edit{Name: "ttlMs", Value: []byte("null")} // which undoes what was read of it
		if ms, err := strconv.ParseFloat(string(raw), 64); err == nil && ms >= 0 && ms < most {
			edit.Value = strconv.AppendInt(nil, int64(ms), 10)
		}
		edits = append(edits, edit)
	}
	if raw, ok := result.Lookup("cacheScope"); ok && raw[0] != '"' {
		edits = append(edits, jsonrpc.Edit{Name: "cacheScope", Value: []byte("null")})
	}
	return edits
}

func isInteger(raw []byte) bool {
	_, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil
}

// decode decodes what a peer has written: "60000.0" is an integer to whoever checks it
// against the schema. Durations are what NewJSON encodes them as.
func decode(raw []byte, v any) error { return lenient.Unmarshal(raw, v, durations) }

var durations = jsonv1.FormatDurationAsNano(true)

// read decodes raw, in which duplicate members of values that are kept as they are
// do not matter.
func (r *CallToolResult) read(raw *jsonrpc.Value) error {
	v := raw.Indexed()
	content, _ := v.Lookup("content")
	if len(content) == 0 || content[0] != '[' || !v.IsDistinct() {
		return decode(v.Raw(), r)
	}
	var decoded CallToolResult
	if !decoded.readOthers(&v) {
		others, err := decodeOthers(&v)
		if err != nil {
			return err
		}
		decoded = *others
	}
	if err := decoded.Content.read(content); err != nil {
		return err
	}
	*r = decoded
	return nil
}

// decodeOthers decodes the members other than the content.
func decodeOthers(v *jsonrpc.Value) (*CallToolResult, error) {
	others := jsonrpc.AppendEdited(nil, v, jsonrpc.Edit{Name: "content"})
	r := new(CallToolResult)
	return r, decode(others, r)
}

// readOthers takes the members other than the content if they are nothing out of
// the ordinary, and reports whether they are not.
func (r *CallToolResult) readOthers(v *jsonrpc.Value) bool {
	known := 1 // the content
	if raw, ok := v.Lookup("structuredContent"); ok {
		r.StructuredContent = append(JSON{}, raw...)
		known++
	}
	if raw, ok := v.Lookup("resultType"); ok && string(raw) == `"`+Complete+`"` {
		r.ResultType = Complete
		known++
	}
	if raw, ok := v.Lookup("isError"); ok && (string(raw) == "true" || string(raw) == "false") {
		failed := string(raw) == "true"
		r.IsError = &failed
		known++
	}
	return known == v.Len()
}

// read decodes a valid array of blocks.
func (c *Contents) read(array []byte) error {
	if text, ok := onlyText(array); ok {
		alone := &struct {
			list  [1]Content
			block Text
		}{block: Text{Text: text}} // one piece of memory
		alone.list[0] = &alone.block
		*c = alone.list[:]
		return nil
	}
	blocks := make(Contents, 0, 1)
	for item := range jsonrpc.IndexedItems(array) {
		block, err := readBlock(&item)
		if err != nil {
			return err
		}
		blocks = append(blocks, block)
	}
	*c = blocks
	return nil
}

// onlyText returns the text of an array with one block that has nothing else, in
// the form that most servers write.
func onlyText(array []byte) (string, bool) {
	const head, tail = `[{"type":"text","text":`, `}]`
	quoted, ok := bytes.CutPrefix(array, []byte(head))
	if !ok {
		return "", false
	}
	text, rest, ok := jsonrpc.UnquotePrefix(quoted)
	return text, ok && string(rest) == tail && !mayBeHalf(text)
}

// mayBeHalf reports whether a text may hold half of a character, which decoding
// refuses.
func mayBeHalf(text string) bool { return strings.Contains(text, "\ufffd") }

// readBlock decodes one block, and takes the text of one past the JSON decoder.
func readBlock(v *jsonrpc.Value) (Content, error) {
	kind, _ := v.Lookup("type")
	raw, _ := v.Lookup("text")
	if string(kind) != `"text"` || !v.IsDistinct() {
		return readContent(v.Raw())
	}
	text, ok := jsonrpc.Unquote(raw)
	if !ok || mayBeHalf(text) {
		return readContent(v.Raw())
	}
	if v.Len() == 2 {
		return &Text{Text: text}, nil
	}
	block, err := readContent(jsonrpc.AppendEdited(nil, v, jsonrpc.Edit{Name: "text"}))
	if t, ok := block.(*Text); ok {
		t.Text = text
	}
	return block, err
}
