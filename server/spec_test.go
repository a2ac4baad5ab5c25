package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A spec is the specification's schema of one revision.
type spec struct {
	schema  jsonschema.Schema
	defs    string            // where its definitions are
	names   map[string]bool   // of definitions
	methods map[string]string // definition by method, of requests and notifications

	mu       sync.Mutex
	resolved map[string]*jsonschema.Resolved // guarded by mu
}

var revisions = []mcp.Revision{
	mcp.Revision20241105, mcp.Revision20250326, mcp.Revision20250618, mcp.Revision20251125, mcp.Revision20260728,
}

// specs reads the schemas once.
var specs = sync.OnceValues(func() (map[mcp.Revision]*spec, error) {
	all := make(map[mcp.Revision]*spec)
	for _, revision := range revisions {
		s, err := readSpec(revision)
		if err != nil {
			return nil, err
		}
		all[revision] = s
	}
	return all, nil
})

func readSpec(revision mcp.Revision) (*spec, error) {
	raw, err := os.ReadFile(filepath.Join("testdata", string(revision), "schema.json"))
	if err != nil {
		return nil, err
	}
	var whole struct {
		Definitions, Defs map[string]struct {
			Properties struct{ Method struct{ Const string } }
		}
	}
	raw = []byte(strings.Replace(string(raw), `"$defs":`, `"defs":`, 1))
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	s := &spec{defs: "definitions", names: make(map[string]bool), methods: make(map[string]string), resolved: make(map[string]*jsonschema.Resolved)}
	all := whole.Definitions
	if all == nil {
		s.defs, all = "$defs", whole.Defs
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(raw), `"defs":`, `"$defs":`, 1)), &s.schema); err != nil {
		return nil, err
	}
	for name, definition := range all {
		s.names[name] = true
		if method := definition.Properties.Method.Const; method != "" {
			s.methods[method] = name
		}
	}
	if len(s.methods) == 0 {
		return nil, fmt.Errorf("the schema of %s names no methods", revision)
	}
	return s, nil
}

// check returns why raw is not as a definition has it.
func (s *spec) check(definition string, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[definition] {
		return fmt.Errorf("the revision has no %s", definition)
	}
	resolved := s.resolved[definition]
	if resolved == nil {
		schema := s.schema // what it holds is shared
		schema.Ref = "#/" + s.defs + "/" + definition
		var err error
		if resolved, err = schema.Resolve(nil); err != nil {
			return err
		}
		s.resolved[definition] = resolved
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if err := resolved.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", definition, err)
	}
	return nil
}

// result returns the definition of a method's result.
func (s *spec) result(method, resultType string) string {
	if resultType == mcp.InputRequired {
		return "InputRequiredResult"
	}
	if name := strings.TrimSuffix(s.methods[method], "Request") + "Result"; s.names[name] {
		return name
	}
	return "EmptyResult"
}

// first returns the first of several names that the revision defines.
func (s *spec) first(names ...string) string {
	for _, name := range names {
		if s.names[name] {
			return name
		}
	}
	return ""
}

// message checks one message of a server. Asked is the method of the request that
// a response answers.
func (s *spec) message(raw []byte, asked string) error {
	var m struct {
		ID, Result, Error json.RawMessage
		Method            string
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	switch {
	case m.Method != "" && s.methods[m.Method] == "":
		return fmt.Errorf("the revision has no method %s", m.Method)
	case m.Method != "":
		if err := s.check(s.methods[m.Method], raw); err != nil {
			return err
		}
		if m.ID == nil {
			return s.check("JSONRPCNotification", raw)
		}
		return s.check("JSONRPCRequest", raw)
	case m.Error != nil:
		return s.check(s.first("JSONRPCErrorResponse", "JSONRPCError"), raw)
	}
	if err := s.check(s.first("JSONRPCResultResponse", "JSONRPCResponse"), raw); err != nil {
		return err
	}
	var head struct{ ResultType string }
	if err := json.Unmarshal(m.Result, &head); err != nil {
		return err
	}
	if s.methods[asked] == "" {
		return nil // an extension's
	}
	return s.check(s.result(asked, head.ResultType), m.Result)
}

// The schemas must find what is wrong, or they prove nothing.
func TestSchemasOfRevisionsFindFaults(t *testing.T) {
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		s := all[revision]
		for raw, asked := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}],"resultType":"complete"}}`:            mcp.MethodCallTool,
			`{"jsonrpc":"2.0","id":1,"result":{"content":{},"resultType":"complete"}}`:                           mcp.MethodCallTool,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`:                                        mcp.MethodListTools,
			`{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}`:                                        "",
			`{"jsonrpc":"1.0","id":1,"result":{"resultType":"complete"}}`:                                        "x/y",
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":1}}`:              "",
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`:                        "",
			`{"jsonrpc":"2.0","method":"notifications/unheard"}`:                                                 "",
			`{"jsonrpc":"2.0","id":1,"result":{"messages":[{"role":"x","content":{}}],"resultType":"complete"}}`: mcp.MethodGetPrompt,
		} {
			if s.message([]byte(raw), asked) == nil {
				t.Errorf("%s lets %s through for %q", revision, raw, asked)
			}
		}
	}
}
