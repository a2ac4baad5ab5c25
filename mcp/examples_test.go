package mcp_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// exact decodes JSON so that numbers are compared digit for digit.
func exact(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// examples returns the example messages of the specification (2026-07-28) by
// the paths of their files.
func examples(t testing.TB) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	dir := os.DirFS("testdata/examples")
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		all[name], err = fs.ReadFile(dir, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 129 {
		t.Fatalf("%d examples: some are missing", len(all))
	}
	return all
}

// rewritten returns a message as it is passed on.
func rewritten(t testing.TB, m *jsonrpc.Message) []byte {
	t.Helper()
	switch {
	case m.Kind == jsonrpc.Request:
		return jsonrpc.AppendRequest(nil, m.ID, string(m.Method), &m.Body)
	case m.Kind == jsonrpc.Notification:
		return jsonrpc.AppendNotification(nil, string(m.Method), &m.Body)
	case m.Failed:
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.ReadError(&m.Body))
	case m.Kind == jsonrpc.Response:
		return jsonrpc.AppendResult(nil, m.ID, &m.Body)
	}
	t.Fatalf("message of kind %d", m.Kind)
	return nil
}

func TestExamplesOfTheSpecificationPassUnchanged(t *testing.T) {
	kinds := make(map[jsonrpc.Kind]int)
	for name, raw := range examples(t) {
		t.Run(name, func(t *testing.T) {
			v, err := jsonrpc.ParseValue(raw)
			if err != nil {
				t.Fatal(err)
			}
			want := exact(t, raw)
			line := v.AppendTo(nil)
			if diff := cmp.Diff(want, exact(t, line)); diff != "" {
				t.Errorf("as a value: %s", diff)
			}
			if bytes.ContainsAny(line, "\r\n") {
				t.Error("as a value it has several lines")
			}
			if _, ok := v.Lookup("jsonrpc"); !ok {
				return
			}
			var m jsonrpc.Message
			if err := jsonrpc.Scan(raw, &m); err != nil {
				t.Fatal(err)
			}
			kinds[m.Kind]++
			line = rewritten(t, &m)
			if diff := cmp.Diff(want, exact(t, line)); diff != "" {
				t.Errorf("as a message: %s", diff)
			}
			if bytes.ContainsAny(line, "\r\n") {
				t.Error("as a message it has several lines")
			}
		})
	}
	if kinds[jsonrpc.Request] == 0 || kinds[jsonrpc.Notification] == 0 || kinds[jsonrpc.Response] == 0 {
		t.Errorf("messages of each kind: %v", kinds)
	}
}

func TestExampleRequestsCrossTheErasAndBack(t *testing.T) {
	seen := 0
	for name, raw := range examples(t) {
		var m jsonrpc.Message
		if err := jsonrpc.Scan(raw, &m); err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			meta, rerr := mcp.ReadMetadata(&m.Meta)
			if rerr != nil {
				t.Fatal(rerr)
			}
			req := &mcp.Request{Method: mcp.MethodName(m.Method), Params: m.Body, Meta: meta}
			if same := mcp.ForModern(req, mcp.Revision20260728, meta.ProgressToken); !bytes.Equal(same.Raw(), m.Body.Raw()) {
				t.Errorf("modern to modern: %s", same.Raw())
			}
			legacy := mcp.ForLegacy(req, meta.ProgressToken)
			if bytes.Contains(legacy.Raw(), []byte("io.modelcontextprotocol/")) {
				t.Errorf("a legacy server gets %s", legacy.Raw())
			}
			meta.Revision = mcp.Revision20251125
			back := mcp.ForModern(&mcp.Request{Method: req.Method, Params: legacy, Meta: meta}, mcp.Revision20260728, meta.ProgressToken)
			if diff := cmp.Diff(exact(t, m.Body.Raw()), exact(t, back.Raw())); diff != "" {
				t.Errorf("there and back: %s", diff)
			}
		})
	}
	if seen < 10 {
		t.Errorf("%d requests only", seen)
	}
}

func TestExampleResultsNeedNoEditsForAModernClient(t *testing.T) {
	defs := schema(t)
	seen := 0
	for method, name := range requests(t, defs, "ClientRequest") {
		for file, raw := range examples(t) {
			if !strings.HasPrefix(file, name+"Result/") && !(mcp.MayNeedInput(method) && strings.HasPrefix(file, "InputRequiredResult/")) {
				continue
			}
			seen++
			if _, edits := mcp.ForModernClient(method, *result(t, string(raw))); len(edits) > 0 {
				t.Errorf("%s as a result of %s gets the edits %v", file, method, edits)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d results only", seen)
	}
}

func TestExampleToolsHaveNoAnnotations(t *testing.T) {
	var h mcp.ToolHeaders
	for file, raw := range examples(t) {
		if strings.HasPrefix(file, "ListToolsResult/") {
			in := result(t, string(raw))
			if out, bad := h.Learn(*in); bad != nil || !bytes.Equal(out.Raw(), in.Raw()) {
				t.Errorf("%s: %v: %s", file, bad, out.Raw())
			}
		}
	}
	if headers, ok := h.Lookup("get_weather"); !ok || len(headers) != 0 {
		t.Errorf("get_weather is known: %t, with %v", ok, headers)
	}
}
