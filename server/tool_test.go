package server_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// request returns a request of a modern client.
func request(method, params string) *mcp.Request {
	req := &mcp.Request{Method: method, ID: jsonrpc.IntID(7), Params: jsonrpc.Trusted([]byte(params))}
	req.Meta.Revision = mcp.NewestModern
	return req
}

// handle has a server answer a request of a modern client.
func handle(t *testing.T, s *server.Server, method, params string) (string, error) {
	t.Helper()
	result, err := s.Handle(t.Context(), request(method, params), mcp.NoCaller{})
	return string(result.Raw()), err
}

// callTool calls a tool as a modern client and returns the result.
func callTool(t *testing.T, s *server.Server, name, arguments string) (mcp.CallToolResult, error) {
	t.Helper()
	raw, err := handle(t, s, mcp.MethodCallTool, `{"name":"`+name+`","arguments":`+arguments+`}`)
	if err != nil {
		return mcp.CallToolResult{}, err
	}
	var decoded mcp.CallToolResult
	if err := mcp.JSON(raw).Decode(&decoded); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return decoded, nil
}

func textOf(t *testing.T, r mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("the result has %d blocks of content, not one", len(r.Content))
	}
	text, ok := r.Content[0].(*mcp.Text)
	if !ok {
		t.Fatalf("the content is a %T, not text", r.Content[0])
	}
	return text.Text
}

// result calls a tool of the function's types with arguments and returns what the
// client gets: its structured content, or a text after "failed: " or "text: ".
func result[In, Out any](t *testing.T, definition mcp.Tool, arguments string, run server.ToolFunc[In, Out]) string {
	t.Helper()
	s := newServer(nil)
	definition.Name = "t"
	server.AddTool(s, definition, run)
	got, err := callTool(t, s, "t", arguments)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case got.Failed():
		return "failed: " + textOf(t, got)
	case got.StructuredContent == nil:
		return "text: " + textOf(t, got)
	case textOf(t, got) != string(got.StructuredContent):
		t.Errorf("the text %s is not the structured content %s", textOf(t, got), got.StructuredContent)
	}
	return string(got.StructuredContent)
}

// echoed returns what a tool that gives back its arguments says to some.
func echoed[T any](t *testing.T, arguments string) string {
	t.Helper()
	return result(t, mcp.Tool{}, arguments, func(_ context.Context, _ *server.Call, in T) (T, error) { return in, nil })
}

type Base struct {
	ID string `json:"id"`
}

type named []byte

type everything struct {
	Base
	Optional *int               `json:"optional,omitempty"`
	Nested   struct{ N int }    `json:"nested"`
	Bytes    []byte             `json:"bytes"`
	Named    named              `json:"named"`
	Fixed    [2]byte            `json:"fixed"`
	Raw      mcp.JSON           `json:"raw"`
	RawPtr   *mcp.JSON          `json:"rawPtr,omitempty"`
	StdRaw   stdjson.RawMessage `json:"stdRaw"`
	Object   mcp.Object         `json:"object"`
	Any      any                `json:"any"`
	Map      map[string]int     `json:"map"`
	List     []string           `json:"list"`
	Time     time.Time          `json:"time"`
	Took     time.Duration      `json:"took"`
	Addr     netip.Addr         `json:"addr"`
	Big      *big.Int           `json:"big,omitempty"`
	Hidden   int                `json:"-"`
}

func TestArgumentsOfEveryKindAreDecodedAndEncoded(t *testing.T) {
	full := `{"id":"i","optional":1,"nested":{"N":2},"bytes":"aGk=","named":"aGk=","fixed":"AQI=","raw":{"x":[1.50]},` +
		`"rawPtr":"\u0041","stdRaw":[1],"object":{"a":1e2},"any":null,"map":{"k":1},"list":["a"],"time":"2026-07-28T00:00:00Z",` +
		`"took":5,"addr":"::1","big":123456789012345678901234567890}`
	if got := echoed[everything](t, full); got != full {
		t.Errorf("got  %s\nwant %s", got, full)
	}
	for _, bad := range [][2]string{
		{`"bytes":"aGk="`, `"bytes":[1]`}, {`"bytes":"aGk="`, `"bytes":"?"`}, {`"fixed":"AQI="`, `"fixed":"AQ=="`},
		{`"addr":"::1"`, `"addr":"x"`}, {`"N":2`, `"n":2`}, {`"id":"i",`, ``}, {`"ID"`, `"ID"`}, {`"time":"2026`, `"time":"x`},
	} {
		if bad[0] == bad[1] {
			continue
		}
		arguments := strings.Replace(full, bad[0], bad[1], 1)
		if got := echoed[everything](t, arguments); !strings.HasPrefix(got, "failed: invalid arguments: ") {
			t.Errorf("%s: %s", bad[1], got)
		}
	}
}

func TestIntegersAreExact_B017(t *testing.T) {
	type numbers struct {
		I   int64    `json:"i"`
		U   uint64   `json:"u"`
		F   float64  `json:"f"`
		N8  int8     `json:"n8"`
		Raw mcp.JSON `json:"raw"`
	}
	tests := []struct{ in, want string }{
		{`{"i":-9223372036854775808,"u":18446744073709551615,"f":0.1,"n8":127,"raw":9007199254740993.000}`, ``},
		{`{"i":9007199254740993,"u":9007199254740993,"f":1,"n8":0,"raw":123456789012345678901234567890}`, ``},
		{`{"i":7.0,"u":1e3,"f":2.0,"n8":-1.28e2,"raw":7.0}`, `{"i":7,"u":1000,"f":2,"n8":-128,"raw":7.0}`},
		{`{"i":1e08,"u":10e-01,"f":0,"n8":0,"raw":0}`, `{"i":100000000,"u":1,"f":0,"n8":0,"raw":0}`},
		{`{"i":9007199254740993.0,"u":0,"f":0,"n8":0,"raw":0}`, `{"i":9007199254740993,"u":0,"f":0,"n8":0,"raw":0}`},
		{`{"i":9223372036854775808,"u":0,"f":0,"n8":0,"raw":0}`, `failed: invalid arguments: /i does not fit: value out of range`},
		{`{"i":1e30,"u":0,"f":0,"n8":0,"raw":0}`, `failed: invalid arguments: /i does not fit: invalid syntax`},
		{`{"i":0,"u":-1,"f":0,"n8":0,"raw":0}`, `failed: invalid arguments: /u must not be less than 0`},
		{`{"i":0,"u":0,"f":0,"n8":128,"raw":0}`, `failed: invalid arguments: /n8 must not be more than 127`},
		{`{"i":1.5,"u":0,"f":0,"n8":0,"raw":0}`, `failed: invalid arguments: /i must be of type integer`},
		{`{"i":0,"u":0,"f":1e999,"n8":0,"raw":0}`, `failed: invalid arguments: /f does not fit: value out of range`},
	}
	for _, test := range tests {
		if test.want == "" {
			test.want = test.in
		}
		if got := echoed[numbers](t, test.in); got != test.want {
			t.Errorf("%s became %s", test.in, got)
		}
	}
}

func TestNamesAreCaseSensitive(t *testing.T) {
	type arguments struct {
		Text string `json:"text,omitempty"`
	}
	if got := echoed[arguments](t, `{"TEXT":"x"}`); got != `failed: invalid arguments: /TEXT is not allowed` {
		t.Error(got)
	}
	// Nor is a name found in another case where nothing is checked.
	s := newServer(&server.Options{SkipValidation: true})
	server.AddTool(s, mcp.Tool{Name: "t"}, func(_ context.Context, _ *server.Call, in arguments) (string, error) { return in.Text, nil })
	if got, err := callTool(t, s, "t", `{"TEXT":"x"}`); err != nil || textOf(t, got) != "" {
		t.Errorf("got %v, %v", got, err)
	}
	if got := echoed[arguments](t, `{"text":"a","text":"b"}`); !strings.Contains(got, "duplicate") {
		t.Error(got)
	}
}

func TestArgumentsOfAnyType_B031(t *testing.T) {
	tests := []struct{ name, got, want string }{
		{"JSON", echoed[mcp.JSON](t, `{"a":1.0}`), `{"a":1.0}`},
		{"an object", echoed[mcp.Object](t, `{"a":"\u0041"}`), `{"a":"\u0041"}`},
		{"any", echoed[any](t, `{"a":1}`), `{"a":1}`},
		{"a map", echoed[map[string]int](t, `{"a":1}`), `{"a":1}`},
		{"a pointer", echoed[*Base](t, `{"id":"x"}`), `{"id":"x"}`},
		{"nothing", echoed[struct{}](t, `{"made":"up"}`), `{}`},
		{"no object", echoed[map[string]int](t, `[1]`), `error: Invalid params: arguments must be an object (-32602)`},
		{"a string", echoed[map[string]int](t, `"x"`), `error: Invalid params: arguments must be an object (-32602)`},
		{"null", echoed[map[string]int](t, `null`), `{}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %s, want %s", test.got, test.want)
			}
		})
	}
}

func TestAbsentPropertiesHaveTheirDefaults(t *testing.T) {
	type options struct{ A, B int }
	type arguments struct {
		N    int            `json:"n"`
		Text string         `json:"text"`
		Opts *options       `json:"opts"`
		Map  map[string]int `json:"map"`
		List []int          `json:"list"`
	}
	definition := mcp.Tool{InputSchema: mcp.JSON(`{"type":"object","properties":{"n":{"type":"integer","default":5},` +
		`"text":{"default":"t"},"opts":{"default":{"A":1,"B":2}},"map":{"default":{"x":1}},"list":{"default":[1,2]}}}`)}
	run := func(_ context.Context, _ *server.Call, in arguments) (arguments, error) { return in, nil }
	tests := []struct{ in, want string }{
		{`{}`, `{"n":5,"text":"t","opts":{"A":1,"B":2},"map":{"x":1},"list":[1,2]}`},
		{`{"n":0,"text":"","opts":{"A":3},"map":{"y":2},"list":[]}`, `{"n":0,"text":"","opts":{"A":3,"B":0},"map":{"y":2},"list":[]}`},
		{`{"opts":null}`, `{"n":5,"text":"t","opts":null,"map":{"x":1},"list":[1,2]}`},
	}
	for _, test := range tests {
		if got := result(t, definition, test.in, run); got != test.want {
			t.Errorf("%s became %s", test.in, got)
		}
	}
	raw := func(_ context.Context, _ *server.Call, in mcp.JSON) (mcp.JSON, error) { return in, nil }
	if got := result(t, definition, `{"n":1.0}`, raw); !strings.HasPrefix(got, `{"n":1.0,"text":"t",`) {
		t.Errorf("got %s", got)
	}
	defer func() {
		if reason := recover(); reason == nil {
			t.Error("a default of another type is taken")
		}
	}()
	definition.InputSchema = mcp.JSON(`{"type":"object","properties":{"n":{"default":"five"}}}`)
	result(t, definition, `{}`, run)
}

func TestResultsOfEveryKind(t *testing.T) {
	output := func(schema string) mcp.Tool { return mcp.Tool{OutputSchema: mcp.JSON(schema)} }
	yes := true
	tests := []struct{ name, got, want string }{
		{"a string", returned(t, mcp.Tool{}, "a\"\n\x00é\xff"), "text: a\"\n\x00é\ufffd"},
		{"a structured string", returned(t, output(`{"type":"string"}`), "x"), `"x"`},
		{"contents", returned(t, mcp.Tool{}, mcp.Contents{&mcp.Text{Text: "\xffx"}}), "text: \ufffdx"},
		{"a result", returned(t, mcp.Tool{}, &mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: "no"}}, IsError: &yes}), "failed: no"},
		{"a failed result without structure", returned(t, output(`{"type":"object"}`), &mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: "no"}}, IsError: &yes}), "failed: no"},
		{"a struct", returned(t, mcp.Tool{}, Base{"x"}), `{"id":"x"}`},
		{"a pointer", returned(t, mcp.Tool{}, &Base{"x"}), `{"id":"x"}`},
		{"a slice", returned(t, mcp.Tool{}, []int{1}), `[1]`},
		{"a nil slice", returned(t, mcp.Tool{}, []int(nil)), `[]`},
		{"a map", returned(t, mcp.Tool{}, map[string]int{"b": 2, "a": 1}), `{"a":1,"b":2}`},
		{"a nil map", returned(t, mcp.Tool{}, map[string]int(nil)), `{}`},
		{"a number", returned(t, mcp.Tool{}, 1<<62), `4611686018427387904`},
		{"a nil interface", returned(t, mcp.Tool{}, any(nil)), `null`},
		{"JSON", returned(t, mcp.Tool{}, mcp.JSON(`{"a":"\u0041","n":1.50}`)), `{"a":"\u0041","n":1.50}`},
		{"text that is not UTF-8", returned(t, mcp.Tool{}, Base{"\xff"}), "{\"id\":\"\ufffd\"}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %q, want %q", test.got, test.want)
			}
		})
	}
}

// returned returns what the client of a tool gets that returns out.
func returned[Out any](t *testing.T, definition mcp.Tool, out Out) string {
	t.Helper()
	return result(t, definition, `{}`, func(context.Context, *server.Call, struct{}) (Out, error) { return out, nil })
}

func TestResultsWithoutContent_B032(t *testing.T) {
	s := newServer(nil)
	server.AddTool(s, mcp.Tool{Name: "nil"}, func(context.Context, *server.Call, struct{}) (*mcp.CallToolResult, error) { return nil, nil })
	server.AddTool(s, mcp.Tool{Name: "contents"}, func(context.Context, *server.Call, struct{}) (mcp.Contents, error) { return nil, nil })
	s.AddTool(mcp.Tool{Name: "raw"}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.RawResult([]byte(`{"content":[],"_meta":{"a":1}}`)), nil
	})
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}`
	other := mcp.Object{mcp.MetaServerInfo: mcp.JSON(`{"name":"other"}`)}
	server.AddTool(s, mcp.Tool{Name: "other"}, func(context.Context, *server.Call, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{ResultMembers: mcp.ResultMembers{Meta: other}}, nil
	})
	for name, want := range map[string]string{
		"nil":      `{"content":[],"resultType":"complete","_meta":{` + info + `}}`,
		"contents": `{"content":[],"resultType":"complete","_meta":{` + info + `}}`,
		"other":    `{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}}}`,
		"raw":      `{"content":[],"_meta":{"a":1,` + info + `},"resultType":"complete"}`,
	} {
		if got, err := handle(t, s, mcp.MethodCallTool, `{"name":"`+name+`"}`); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// What a tool gives that is not as it promised is nobody's business but its
// author's.
func TestInvalidOutputIsAnInternalErrorThatIsLogged_B163(t *testing.T) {
	type out = mcp.CallToolResult
	schema := mcp.JSON(`{"type":"object","properties":{"secret":{"type":"string"}},"required":["secret"]}`)
	tests := []struct {
		name   string
		give   any
		reason string
	}{
		{"another type", &out{StructuredContent: mcp.JSON(`{"secret":42}`)}, `/secret must be of type string`},
		{"nothing", &out{}, `gave no structured content`},
		{"no JSON", &out{StructuredContent: mcp.JSON(`{"secret":`)}, `structured content`},
		{"no bytes", &out{StructuredContent: mcp.JSON(``)}, `structured content`},
		{"nil", (*out)(nil), `gave no structured content`},
		{"a block that is nil", &out{StructuredContent: mcp.JSON(`{"secret":""}`), Content: mcp.Contents{nil}}, `a block of content is nil`},
		{"a block that is a nil pointer", &out{StructuredContent: mcp.JSON(`{"secret":""}`), Content: mcp.Contents{(*mcp.Text)(nil)}}, `a block of content is nil`},
		{"a block of bad JSON", &out{StructuredContent: mcp.JSON(`{"secret":""}`), Content: mcp.Contents{&mcp.UnknownContent{Raw: mcp.JSON("{")}}}, `mcp.Contents`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log := new(logged)
			s := newServer(&server.Options{Logger: log.logger()})
			server.AddTool(s, mcp.Tool{Name: "t", OutputSchema: schema}, func(context.Context, *server.Call, struct{}) (*out, error) {
				return test.give.(*out), nil
			})
			_, err := callTool(t, s, "t", `{}`)
			log.hasIncident(t, err, test.reason)
		})
	}
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	server.AddTool(s, mcp.Tool{Name: "nan"}, func(context.Context, *server.Call, struct{}) (float64, error) { return math.NaN(), nil })
	_, err := callTool(t, s, "nan", `{}`)
	log.hasIncident(t, err, "NaN")
	server.AddTool(s, mcp.Tool{Name: "nilptr"}, func(context.Context, *server.Call, struct{}) (*Base, error) { return nil, nil })
	_, err = callTool(t, s, "nilptr", `{}`)
	log.hasIncident(t, err, "must be of type object")
}

func TestErrorsOfTools_B148(t *testing.T) {
	peer := jsonrpc.ReadError(value(`{"code":-1,"message":"rejected"}`))
	lost := &mcp.CallError{Kind: mcp.ConnectionLost, Outcome: mcp.MaybeExecuted, Err: errors.New("a secret")}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"any", errors.New("no luck"), "failed: no luck"},
		{"one of the protocol", jsonrpc.Errorf(-32099, "mine"), "error: mine (-32099)"},
		{"one that wraps it", errors.Join(jsonrpc.Errorf(-32099, "mine")), "error: mine (-32099)"},
		{"a peer's", peer, "failed: rejected (-1)"},
		{"a lost connection", lost, "error: " + lost.Error()},
		{"a context's that is not the call's", context.Canceled, "failed: context canceled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := result(t, mcp.Tool{}, `{}`, func(context.Context, *server.Call, struct{}) (string, error) { return "", test.err })
			if got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
	if wire := jsonrpc.ToWire(lost); strings.Contains(wire.Message, "secret") {
		t.Errorf("the client is told %v", wire)
	}
}

func value(raw string) *jsonrpc.Value {
	v := jsonrpc.Trusted([]byte(raw))
	return &v
}

func TestCancelledCallsFailWithTheReasonOfTheirEnd_B136(t *testing.T) {
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	server.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *server.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Handle(ctx, request(mcp.MethodCallTool, `{"name":"wait"}`), mcp.NoCaller{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if got := log.String(); got != "" {
		t.Errorf("it is logged as a failure: %s", got)
	}
}

func TestCallsOfWhatIsNoTool_B031(t *testing.T) {
	s := newServer(nil)
	if _, err := handle(t, s, mcp.MethodCallTool, `{"name":"t"}`); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}) {
		t.Errorf("a server without tools says %v", err)
	}
	server.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, *server.Call, struct{}) (string, error) { return "", nil })
	for _, params := range []string{`{}`, `{"name":1}`, `{"name":"T"}`, `{"name":"t","arguments":[]}`, `{"name":"t","arguments":"{}"}`} {
		if _, err := handle(t, s, mcp.MethodCallTool, params); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestDefinitionsThatAreNoneEndTheProgram(t *testing.T) {
	type tree struct{ Children []*tree }
	none := func(context.Context, *server.Call, struct{}) (mcp.Contents, error) { return nil, nil }
	for name, define := range map[string]func(s *server.Server){
		"no name":                    func(s *server.Server) { server.AddTool(s, mcp.Tool{}, none) },
		"no name of a raw tool":      func(s *server.Server) { s.AddTool(mcp.Tool{}, nil) },
		"a raw tool without objects": func(s *server.Server) { s.AddTool(mcp.Tool{Name: "t", InputSchema: mcp.JSON(`true`)}, nil) },
		"a raw tool's bad output":    func(s *server.Server) { s.AddTool(mcp.Tool{Name: "t", OutputSchema: mcp.JSON(`{`)}, nil) },
		"contents with a schema":     func(s *server.Server) { server.AddTool(s, mcp.Tool{Name: "t", OutputSchema: mcp.JSON(`{}`)}, none) },
		"a type that holds itself": func(s *server.Server) {
			server.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, *server.Call, tree) (string, error) { return "", nil })
		},
		"a type that JSON does not have": func(s *server.Server) {
			server.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, *server.Call, struct{ C chan int }) (string, error) { return "", nil })
		},
		"a header annotation that nobody can follow": func(s *server.Server) {
			s.AddTool(mcp.Tool{Name: "t", InputSchema: mcp.JSON(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"X\r\nY"}}}`)}, nil)
		},
		"a short key":         func(*server.Server) { newServer(&server.Options{StateKey: make([]byte, 15)}) },
		"a method of ours":    func(s *server.Server) { s.Method("tools/call", nil) },
		"a nameless prompt":   func(s *server.Server) { s.AddPrompt(mcp.Prompt{}, nil) },
		"a nameless resource": func(s *server.Server) { s.AddResource(mcp.Resource{URI: "u:1"}, nil) },
		"a bad template": func(s *server.Server) {
			s.AddResourceTemplate(mcp.ResourceTemplate{Name: "n", URITemplate: "u:{"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if reason, ok := recover().(string); !ok || !strings.HasPrefix(reason, "server: ") {
					t.Errorf("it ended with %q", reason)
				}
			}()
			define(newServer(nil))
		})
	}
}

func TestInferredSchemas(t *testing.T) {
	type arguments struct {
		City  string `json:"city" jsonschema:"where"`
		Days  uint8  `json:"days,omitempty"`
		Bytes []byte `json:"bytes,omitzero"`

		List []netip.Addr          `json:"list,omitzero"`
		Map  map[string]netip.Addr `json:"map,omitzero"`
	}
	s := newServer(nil)
	server.AddTool(s, mcp.Tool{Name: "a"}, func(context.Context, *server.Call, arguments) (Base, error) { return Base{}, nil })
	server.AddTool(s, mcp.Tool{Name: "b"}, func(context.Context, *server.Call, mcp.JSON) (mcp.JSON, error) { return nil, nil })
	raw, err := handle(t, s, mcp.MethodListTools, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"a","inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"where"},` +
		`"days":{"type":"integer","minimum":0,"maximum":255},"bytes":{"type":"string","contentEncoding":"base64"},` +
		`"list":{"type":["null","array"],"items":{"type":"string"}},"map":{"type":"object","additionalProperties":{"type":"string"}}},` +
		`"required":["city"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"id":{"type":"string"}},` +
		`"required":["id"],"additionalProperties":false}},{"name":"b","inputSchema":{"type":"object"}}]`
	list := value(raw)
	tools, _ := list.Lookup("tools")
	if diff := cmp.Diff(want, string(tools)); diff != "" {
		t.Error(diff)
	}
}
