package mcp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpsplice/mcpsplice/internal/lenient"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// headerAnnotation is the property of a parameter's schema that has its value
// mirrored into a header (2026-07-28, streamable-http, Schema Extension).
const headerAnnotation = "x-mcp-header"

// HeaderPrefix begins the names of the headers that mirror parameters.
const HeaderPrefix = "Mcp-Param-"

// MaxAnnotatedTools is how many tools with header annotations a [ToolHeaders]
// remembers, and how many without; further ones are not.
const MaxAnnotatedTools = 10_000

// Bounds of what is remembered of one tool: one with a longer name is not, and one
// whose annotations name more is as invalid as it would be to call.
const (
	maxToolName    = 1 << 10  // bytes
	maxAnnotations = 64 << 10 // bytes of all headers' names and paths
)

// A ParamHeader says which parameter of a tool goes into which header.
type ParamHeader struct {
	Name string   // the header's name after HeaderPrefix
	Path []string // names of properties, from the arguments down
	Type string   // "string", "integer" or "boolean"
}

// ToolHeaders knows which parameters of which tools are mirrored into headers.
// It learns from each tools/list result that passes. The zero value knows
// nothing; it is safe for concurrent use.
type ToolHeaders struct {
	mu    sync.RWMutex
	tools map[string][]ParamHeader // guarded by mu
	known map[string]struct{}      // tools seen without annotations, guarded by mu
}

// Lookup returns the headers of a tool, and false if the tool has not been seen.
func (t *ToolHeaders) Lookup(tool string) ([]ParamHeader, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if headers, ok := t.tools[tool]; ok {
		return headers, true
	}
	_, ok := t.known[tool]
	return nil, ok
}

// Learn takes up the tools of a tools/list result and returns it without those
// whose annotations are invalid, with the reason for each. A result without
// annotations comes back as it is, after one search for the annotation's name.
func (t *ToolHeaders) Learn(list Result) (Result, map[string]error) {
	raw, _ := list.Lookup("tools")
	tools := jsonrpc.Elements(raw)
	annotated := mayAnnotate(raw)
	kept := make([][]byte, 0, len(tools))
	var bad map[string]error
	for _, tool := range tools {
		v := jsonrpc.Trusted(tool)
		name, ok := v.LookupString("name")
		if !ok {
			kept = append(kept, tool)
			continue
		}
		var headers []ParamHeader
		if annotated && mayAnnotate(tool) {
			var err error
			if headers, err = readAnnotations(v.Get("inputSchema")); err != nil {
				if bad == nil {
					bad = make(map[string]error)
				}
				bad[name] = err
				t.forget(name)
				continue
			}
		}
		t.set(name, headers)
		kept = append(kept, tool)
	}
	if len(bad) == 0 {
		return list, nil
	}
	array := append(append([]byte{'['}, bytes.Join(kept, []byte{','})...), ']')
	return Result{jsonrpc.Edited(&list.Value, jsonrpc.Edit{Name: "tools", Value: array})}, bad
}

// mayAnnotate reports whether the annotation's name may be in raw. Somebody may have
// written its hyphens, or its letters, as escapes.
func mayAnnotate(raw []byte) bool {
	return bytes.Contains(raw, []byte(headerAnnotation)) || bytes.Contains(raw, []byte(`\u00`))
}

// Forget forgets tools that there are no more, which makes room for others.
func (t *ToolHeaders) Forget(tools ...string) {
	for _, tool := range tools {
		t.forget(tool)
	}
}

func (t *ToolHeaders) set(name string, headers []ParamHeader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tools == nil {
		t.tools, t.known = make(map[string][]ParamHeader), make(map[string]struct{})
	}
	delete(t.tools, name)
	delete(t.known, name)
	switch {
	case len(name) > maxToolName:
	case len(headers) > 0 && len(t.tools) < MaxAnnotatedTools:
		t.tools[name] = headers
	case len(headers) == 0 && len(t.known) < MaxAnnotatedTools:
		t.known[name] = struct{}{}
	}
}

func (t *ToolHeaders) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tools, name)
	delete(t.known, name)
}

// readAnnotations returns the annotated parameters of an input schema, or why
// its annotations are invalid.
func readAnnotations(schema jsonrpc.Value) ([]ParamHeader, error) {
	var headers []ParamHeader
	if err := walkSchema(schema, nil, true, &headers); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	size := 0
	for _, h := range headers {
		if size += h.size(); size > maxAnnotations {
			return nil, fmt.Errorf("the %s annotations are over the limit maxAnnotations of %d bytes", headerAnnotation, maxAnnotations)
		}
		if seen[strings.ToLower(h.Name)] {
			return nil, fmt.Errorf("%s %q is used twice", headerAnnotation, h.Name)
		}
		seen[strings.ToLower(h.Name)] = true
	}
	return headers, nil
}

// size returns how many bytes the names in h have.
func (h *ParamHeader) size() int {
	n := len(h.Name)
	for _, name := range h.Path {
		n += len(name)
	}
	return n
}

// walkSchema visits a schema and everything in it. Reachable says that only
// properties led here.
func walkSchema(schema jsonrpc.Value, path []string, reachable bool, headers *[]ParamHeader) error {
	if !schema.IsObject() {
		for _, item := range jsonrpc.Elements(schema.Raw()) {
			if err := walkSchema(jsonrpc.Trusted(item), path, false, headers); err != nil {
				return err
			}
		}
		return nil
	}
	for key, value := range schema.Members() {
		switch {
		case key == headerAnnotation:
			h, err := newParamHeader(&schema, value, path, reachable)
			if err != nil {
				return err
			}
			*headers = append(*headers, h)
		case key == "properties":
			properties := jsonrpc.Trusted(value)
			for name, property := range properties.Members() {
				if err := walkSchema(jsonrpc.Trusted(property), append(slices.Clip(path), name), reachable, headers); err != nil {
					return err
				}
			}
		case slices.Contains(literalKeywords, key):
		case slices.Contains(namedSchemas, key):
			named := jsonrpc.Trusted(value)
			for _, schema := range named.Members() {
				if err := walkSchema(jsonrpc.Trusted(schema), path, false, headers); err != nil {
					return err
				}
			}
		default:
			if err := walkSchema(jsonrpc.Trusted(value), path, false, headers); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	// literalKeywords hold values or names, not schemas.
	literalKeywords = []string{"const", "enum", "default", "examples", "dependentRequired"}
	// namedSchemas hold schemas under names that are no keywords.
	namedSchemas = []string{"$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}
)

func newParamHeader(schema *jsonrpc.Value, value []byte, path []string, reachable bool) (ParamHeader, error) {
	name, ok := jsonrpc.Unquote(value)
	switch {
	case !ok || !isToken(name):
		return ParamHeader{}, fmt.Errorf("%s %s is no header name", headerAnnotation, value)
	case !reachable || len(path) == 0:
		return ParamHeader{}, fmt.Errorf("%s %q stands where properties alone do not lead", headerAnnotation, name)
	}
	kind, _ := schema.LookupString("type")
	if kind != "string" && kind != "integer" && kind != "boolean" {
		return ParamHeader{}, fmt.Errorf("%s %q is on a parameter that is neither string, integer nor boolean", headerAnnotation, name)
	}
	return ParamHeader{Name: name, Path: slices.Clone(path), Type: kind}, nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// maxHeaderInteger is the largest integer that a header may carry.
var maxHeaderInteger = big.NewInt(1<<53 - 1)

var errHeaderValue = errors.New("value cannot be mirrored into a header")

// Value returns what the header of h carries for a call's arguments, before
// encoding, and false if the arguments have no value there.
func (h *ParamHeader) Value(arguments jsonrpc.Value) (string, bool, error) {
	v := arguments
	for _, name := range h.Path {
		if !v.IsObject() {
			return "", false, nil
		}
		if hasTwice(&v, name) { // of which whoever runs the tool may take either
			return "", true, fmt.Errorf("%s%s: %w", HeaderPrefix, h.Name, errHeaderValue)
		}
		v = v.Get(name)
	}
	if v.IsZero() || v.IsNull() {
		return "", false, nil
	}
	text, err := headerText(v.Raw(), h.Type)
	if err != nil {
		return "", true, fmt.Errorf("%s%s: %w", HeaderPrefix, h.Name, err)
	}
	return text, true, nil
}

func hasTwice(object *jsonrpc.Value, name string) bool {
	n := 0
	for member := range object.Members() {
		if member == name {
			n++
		}
	}
	return n > 1
}

func headerText(raw []byte, kind string) (string, error) {
	switch kind {
	case "string":
		if text, ok := jsonrpc.Unquote(raw); ok {
			return text, nil
		}
	case "boolean":
		if s := string(raw); s == "true" || s == "false" {
			return s, nil
		}
	case "integer":
		n, ok := lenient.Integer(string(raw))
		if ok && n.CmpAbs(maxHeaderInteger) <= 0 {
			return n.String(), nil
		}
	}
	return "", errHeaderValue
}

// Matches reports whether the decoded value of a header equals what the
// arguments say; integers are compared as numbers.
func (h *ParamHeader) Matches(header, body string) bool {
	if header == body {
		return true
	}
	if h.Type != "integer" {
		return false
	}
	v, err := jsonrpc.ParseValue([]byte(header)) // so that it is a number as JSON writes them
	if err != nil {
		return false
	}
	text, err := headerText(v.Raw(), h.Type)
	return err == nil && text == body
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// EncodeHeader returns text as a header's value: as it is if that is safe, else
// in Base64 between markers (2026-07-28, streamable-http, Value Encoding).
func EncodeHeader(text string) string {
	if isPlainHeader(text) {
		return text
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(text)) + base64Suffix
}

func isPlainHeader(text string) bool {
	if text == "" || strings.HasPrefix(text, base64Prefix) && strings.HasSuffix(text, base64Suffix) {
		return text == ""
	}
	for i := range len(text) {
		if c := text[i]; (c < 0x20 && c != '\t') || c > 0x7e {
			return false
		}
	}
	return text[0] != ' ' && text[0] != '\t' && text[len(text)-1] != ' ' && text[len(text)-1] != '\t'
}

// DecodeHeader returns the text that a header's value stands for, and false if
// it holds characters that it must not or Base64 that is none.
func DecodeHeader(value string) (string, bool) {
	for i := range len(value) {
		if c := value[i]; (c < 0x20 && c != '\t') || c > 0x7e {
			return "", false
		}
	}
	if !strings.HasPrefix(value, base64Prefix) || !strings.HasSuffix(value, base64Suffix) ||
		len(value) < len(base64Prefix)+len(base64Suffix) {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(value[len(base64Prefix) : len(value)-len(base64Suffix)])
	if err != nil || !utf8.Valid(text) {
		return "", false
	}
	return string(text), true
}

// Mirror returns the headers, encoded, that a call of a tool with these params
// must carry. Keys are full header names.
func Mirror(headers []ParamHeader, params *jsonrpc.Value) (map[string]string, error) {
	arguments := params.Get("arguments")
	out := make(map[string]string, len(headers))
	for i := range headers {
		text, ok, err := headers[i].Value(arguments)
		if err != nil {
			return nil, err
		}
		if ok {
			out[HeaderPrefix+headers[i].Name] = EncodeHeader(text)
		}
	}
	return out, nil
}

// Sorted returns the keys of headers in order, for a stable wire.
func Sorted(headers map[string]string) []string { return slices.Sorted(maps.Keys(headers)) }
