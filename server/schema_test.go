package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func newServer(opts *server.Options) *server.Server {
	return server.New(mcp.Implementation{Name: "test", Version: "1"}, opts)
}

// added returns with what adding a tool panics, nil if it does not.
func added(definition mcp.Tool) (reason any) {
	defer func() { reason = recover() }()
	if definition.Name == "" {
		definition.Name = "t"
	}
	server.AddTool(newServer(nil), definition, func(context.Context, *server.Call, mcp.JSON) (string, error) { return "", nil })
	return nil
}

// doubling returns a schema in which every reference leads to two others.
func doubling() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$defs":{"d0":{"type":"string"}`)
	for i := range 40 {
		fmt.Fprintf(&b, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	return b.String() + `},"properties":{"a":{"$ref":"#/$defs/d40"}}}`
}

func TestSchemasThatCannotBeCheckedAreRefused_B164(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"no JSON", `{"type":"object"`, `unexpected EOF`},
		{"not of objects", `{"type":"string"}`, `its type must be object`},
		{"of several types", `{"type":["object","null"]}`, `its type must be object`},
		{"an unknown dialect", `{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`, `neither 2020-12 nor draft-07`},
		{"a pattern of another language", `{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}`, `invalid or unsupported Perl syntax`},
		{"a reference to nothing", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`, `refers to something outside the schema`},
		{"itself", `{"type":"object","$ref":"#"}`, `without end`},
		{"itself by a circle", `{"type":"object","anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"$ref":"#/$defs/a"}}}`, `without end`},
		{"itself dynamically", `{"type":"object","$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}`, `without end`},
		{"too long", `{"type":"object","title":"` + strings.Repeat("x", server.MaxSchemaBytes) + `"}`, `limit MaxSchemaBytes of 1048576`},
		{"too many values", `{"type":"object","enum":[` + strings.Repeat("1,", server.MaxSchemaNodes) + `1]}`, `limit MaxSchemaNodes of 20000`},
		{"too deep", `{"type":"object","properties":{"a":` + nested(5000, `{"items":`, `true`, `}`) + `}}`, `limit MaxSchemaDepth of 64`},
		{"too deep for the checker", `{"type":"object","properties":{"a":` + nested(5000, `{"not":`, `true`, `}`) + `}}`, `limit MaxSchemaDepth of 64`},
		{"a member twice", `{"type":"object","title":"a","title":"b"}`, `duplicate`},
		{"defaults that are of another type", `{"type":"object","properties":{"a":{"default":1}}}`, ``},
		{"many references", doubling(), ``}, // as long as nobody gives it an a
		{"an endless tree", `{"type":"object","properties":{"child":{"$ref":"#"}}}`, ``},
		{"a dynamic tree", `{"type":"object","$dynamicAnchor":"n","properties":{"child":{"$dynamicRef":"#n"}}}`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reason := added(mcp.Tool{InputSchema: mcp.JSON(test.schema)})
			if test.want == "" && reason != nil {
				t.Errorf("refused: %v", reason)
			}
			if test.want != "" && !strings.Contains(fmt.Sprint(reason), test.want) {
				t.Errorf("%v does not say %q", reason, test.want)
			}
		})
	}
}

func TestReferencesAreNeverFetched_B164(t *testing.T) {
	var fetched atomic.Int32
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		fmt.Fprint(w, `{}`)
	}))
	defer listener.Close()
	for _, schema := range []string{
		`{"type":"object","$ref":"%s/s.json"}`,
		`{"type":"object","properties":{"a":{"items":{"$ref":"%s/s.json#/$defs/a"}}}}`,
		`{"type":"object","$dynamicRef":"%s/s.json#a"}`,
		`{"type":"object","$id":"%s/root.json","properties":{"a":{"$ref":"s.json"}}}`,
		`{"type":"object","$schema":"%s/dialect.json"}`,
		`{"type":"object","title":"%s","$ref":"other.json"}`,
		`{"type":"object","title":"%s","$ref":"//127.0.0.1/other.json"}`,
		`{"type":"object","title":"%s","$ref":"data:application/json,{}"}`,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd","title":"%s"}}}`,
	} {
		schema = fmt.Sprintf(schema, listener.URL)
		if added(mcp.Tool{InputSchema: mcp.JSON(schema)}) == nil {
			t.Errorf("%s is accepted", schema)
		}
		if added(mcp.Tool{InputSchema: mcp.JSON(`{"type":"object"}`), OutputSchema: mcp.JSON(schema)}) == nil {
			t.Errorf("%s is accepted for the output", schema)
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d references were fetched", n)
	}
}
