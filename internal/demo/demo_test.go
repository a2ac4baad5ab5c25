package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"strings"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client is a Caller that keeps what it is told and answers what it is asked.
type client struct {
	answer func(*mcp.Request) (mcp.Result, error)

	mu   sync.Mutex
	told []string // method and params, guarded by mu
}

func (c *client) Notify(_ context.Context, n *mcp.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, strings.TrimSpace(n.Method+" "+string(n.Params.Raw())))
	return nil
}

func (c *client) Ask(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	if c.answer == nil {
		return mcp.Result{}, mcp.ErrCannotAsk
	}
	return c.answer(req)
}

// heard returns what the client was told since it was called last.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

// request returns a request of a legacy client, whose result has no members
// beside its own.
func request(t *testing.T, method, params string) *mcp.Request {
	t.Helper()
	req := &mcp.Request{Method: method}
	req.Meta.Revision = mcp.NewestLegacy
	if params != "" {
		v, err := jsonrpc.ParseValue([]byte(params))
		if err != nil {
			t.Fatalf("%s: %v", params, err)
		}
		req.Params = v
	}
	return req
}

// handle returns the result as JSON, or the error as "error CODE: MESSAGE DATA".
func handle(t *testing.T, h mcp.Handler, method, params string) string {
	t.Helper()
	result, err := h.Handle(t.Context(), request(t, method, params), &client{})
	return shown(result, err)
}

func shown(result mcp.Result, err error) string {
	if err != nil {
		e := jsonrpc.ToWire(err)
		return strings.TrimSpace(fmt.Sprintf("error %d: %s %s", e.Code, e.Message, e.Data.Raw()))
	}
	return string(result.Raw())
}

func call(t *testing.T, h mcp.Handler, tool, args string) string {
	t.Helper()
	return handle(t, h, mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
}

// textResult is a result with a text, as JSON.
func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + string(jsonrpc.AppendString(nil, text)) + `}]}`
}

func failure(text string) string {
	return strings.TrimSuffix(textResult(text), "}") + `,"isError":true}`
}

func TestDiscover(t *testing.T) {
	result, err := demo.New("1.2.3").Handle(t.Context(), &mcp.Request{Method: mcp.MethodDiscover}, mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(mcp.ServerInfo(&result)), `{"name":"mcpsplice-demo","title":"mcpsplice demo","version":"1.2.3"}`; got != want {
		t.Errorf("serverInfo %s, want %s", got, want)
	}
	if got, want := mcp.SupportedVersions(&result)[0], mcp.NewestModern; got != want {
		t.Errorf("first version %s, want %s", got, want)
	}
	c := mcp.ReadServerCapabilities(&result.Value)
	if c.Logging == nil || !c.Tools.ListChanged || !c.Prompts.ListChanged || !c.Resources.ListChanged || !c.Resources.Subscribe {
		t.Errorf("capabilities %+v", c)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, tt := range []struct{ method, params, want string }{
		{"tasks/get", "", "error -32601: Method not found: tasks/get"},
		{mcp.MethodCallTool, `{"name":"none"}`, "error -32602: Invalid params: unknown tool \"none\""},
		{mcp.MethodCallTool, `{"name":"extra"}`, "error -32602: Invalid params: unknown tool \"extra\""},
		{mcp.MethodCallTool, `{"name":1}`, "error -32602: Invalid params: name must be a string"},
		{mcp.MethodCallTool, ``, "error -32602: Invalid params: name must be a string"},
		{mcp.MethodGetPrompt, `{"name":"none"}`, "error -32602: Invalid params: unknown prompt \"none\""},
		{mcp.MethodReadResource, `{"uri":"demo://none"}`, `error -32002: Resource not found {"uri":"demo://none"}`},
		{mcp.MethodReadResource, `{"uri":"demo://extra"}`, `error -32002: Resource not found {"uri":"demo://extra"}`},
		{mcp.MethodReadResource, `{}`, "error -32602: Invalid params: uri must be a string"},
		{mcp.MethodListTools, `{"cursor":"x"}`, "error -32602: Invalid params: cursor \"x\" is not one of this list"},
		{mcp.MethodListen, `{}`, "error -32602: Invalid params: notifications is missing"},
	} {
		t.Run(tt.method+tt.params, func(t *testing.T) {
			if got := handle(t, demo.New(""), tt.method, tt.params); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNotificationsAreTaken(t *testing.T) {
	result, err := demo.New("").Handle(t.Context(), &mcp.Request{Method: "notifications/x", Notification: true}, mcp.NoCaller{})
	if got := shown(result, err); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestMissingArgumentsAreNone(t *testing.T) {
	for _, tt := range []struct{ params, want string }{
		{`{"name":"fail"}`, failure("The tool failed, as it was asked to.")},
		{`{"name":"fail","arguments":null}`, failure("The tool failed, as it was asked to.")},
		{`{"name":"fail","arguments":{}}`, failure("The tool failed, as it was asked to.")},
		{`{"name":"fail","arguments":[]}`, "error -32602: Invalid params: arguments must be an object"},
		{`{"name":"fail","arguments":"x"}`, "error -32602: Invalid params: arguments must be an object"},
	} {
		t.Run(tt.params, func(t *testing.T) {
			if got := handle(t, demo.New(""), mcp.MethodCallTool, tt.params); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	for _, tt := range []struct{ tool, args, want string }{
		{"echo", `{"text":"a \"b\" \u00e9\n"}`, textResult("a \"b\" é\n")},

		{"add", `{"a":2,"b":3}`, textResult("5")},
		{"add", `{"a":0.1,"b":0.2}`, textResult("0.3")},
		{"add", `{"a":9007199254740993,"b":1}`, textResult("9007199254740994")},
		{"add", `{"a":1e3,"b":-2.5E-1}`, textResult("999.75")},
		{"add", `{"a":1.50,"b":1.50}`, textResult("3")},
		{"add", `{"a":1e999999999,"b":1}`, failure("invalid arguments: a is out of range")},
		{"add", `{"a":1,"b":1e-99999999999999999999}`, failure("invalid arguments: b is out of range")},

		{"fail", `{"text":"no"}`, failure("no")},
		{"crash", `{}`, `error -32603: The server failed, as it was asked to. {"demo":true}`},
		{"structured", `{"text":"zwölf Boxkämpfer\njagen"}`, `{"content":[{"type":"text","text":"{\"characters\":22,\"words\":3,\"lines\":2}"}],` +
			`"structuredContent":{"characters":22,"words":3,"lines":2}}`},

		{"big", `{"bytes":9}`, textResult("The quick")},
		{"slow", `{"steps":2,"delay_ms":0}`, textResult("Done in 2 steps.")},
	} {
		t.Run(tt.tool+tt.args, func(t *testing.T) {
			if got := call(t, demo.New(""), tt.tool, tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestToolsCheckTheirArguments(t *testing.T) {
	for _, tt := range []struct{ tool, args, about string }{
		{"echo", `{}`, `\"text\"`},
		{"echo", `{"text":7}`, "/text"},
		{"echo", `{"Text":"x"}`, "/Text"},
		{"echo", `{"text":"a","text":"b"}`, `\"text\"`},
		{"add", `{"a":"2","b":3}`, "/a"},
		{"add", `{"a":2}`, `\"b\"`},
		{"big", `{"bytes":-1}`, "/bytes"},
		{"big", `{"bytes":16777217}`, "/bytes"},
		{"slow", `{"steps":0}`, "/steps"},
		{"slow", `{"delay_ms":60001}`, "/delay_ms"},
		{"toggle", `{"what":"world"}`, "/what"},
	} {
		t.Run(tt.tool+tt.args, func(t *testing.T) {
			got := call(t, demo.New(""), tt.tool, tt.args)
			if !strings.Contains(got, `"text":"invalid arguments: `) || !strings.Contains(got, tt.about) || !strings.Contains(got, `"isError":true`) {
				t.Errorf("got %s, which does not complain of %s", got, tt.about)
			}
		})
	}
}

func TestBigIsAsLongAsItIsTold(t *testing.T) {
	for _, size := range []int{0, 1, 64, 65, 16 << 20} {
		var result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		decode(t, call(t, demo.New(""), "big", fmt.Sprintf(`{"bytes":%d}`, size)), &result)
		if got := len(result.Content[0].Text); got != size {
			t.Errorf("%d bytes, want %d", got, size)
		}
	}
}

func TestImageIsAPicture(t *testing.T) {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Data []byte `json:"data"`
		} `json:"content"`
	}
	decode(t, call(t, demo.New(""), "image", `{}`), &result)
	if result.Content[0].Type != "image" {
		t.Errorf("type %s", result.Content[0].Type)
	}
	if _, err := png.Decode(bytes.NewReader(result.Content[0].Data)); err != nil {
		t.Error(err)
	}
}

func decode(t *testing.T, raw string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
}

func TestSlowTellsItsProgress(t *testing.T) {
	req := request(t, mcp.MethodCallTool, `{"name":"slow","arguments":{"steps":2,"delay_ms":0}}`)
	req.Meta.ProgressToken = jsonrpc.StringID("p\n1")
	c := &client{}
	if _, err := demo.New("").Handle(t.Context(), req, c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`notifications/progress {"progressToken":"p\n1","progress":1,"total":2,"message":"step 1 of 2"}`,
		`notifications/progress {"progressToken":"p\n1","progress":2,"total":2,"message":"step 2 of 2"}`,
	}
	if diff := cmp.Diff(want, c.heard()); diff != "" {
		t.Error(diff)
	}
}

func TestSlowCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := demo.New("").Handle(ctx, request(t, mcp.MethodCallTool, `{"name":"slow","arguments":{"delay_ms":60000}}`), &client{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLogSendsWhatIsWanted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		revision mcp.Revision
		level    mcp.Level
		want     int
	}{
		{"modern without a level", mcp.NewestModern, "", 0},
		{"in this process without a level", "", "", 0},
		{"legacy without a level", mcp.NewestLegacy, "", 7},
		{"modern debug", mcp.NewestModern, "debug", 8},
		{"modern error", mcp.NewestModern, "error", 4},
		{"legacy emergency", mcp.Revision20241105, "emergency", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, mcp.MethodCallTool, `{"name":"log","arguments":{"text":"t"}}`)
			req.Meta.Revision, req.Meta.LogLevel = tt.revision, tt.level
			c := &client{}
			got := shown(demo.New("").Handle(t.Context(), req, c))
			if want := "Logged at 8 levels, of which you get those that you want."; !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
			heard := c.heard()
			if len(heard) != tt.want {
				t.Fatalf("heard %v", heard)
			}
			if tt.want > 0 {
				want := `notifications/message {"level":"emergency","logger":"mcpsplice-demo","data":"t"}`
				if last := heard[len(heard)-1]; last != want {
					t.Errorf("last %s, want %s", last, want)
				}
			}
		})
	}
}
