package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

var capable = mcp.Metadata{Capabilities: []byte(everyCapability)}

func answering(answer string) *client {
	return &client{answer: func(*mcp.Request) (string, error) { return answer, nil }}
}

func TestFormsAreMadeOfStructs(t *testing.T) {
	type fields struct {
		Name string  `json:"name" jsonschema:"who"`
		Age  uint8   `json:"age"`
		Good *bool   `json:"good,omitempty"`
		Size float64 `json:"size,omitempty"`
	}
	c := answering(`{"action":"accept","content":{"name":"Ada","age":36.0}}`)
	within(t, c, capable, func(ctx context.Context, call *server.Call) {
		got, action, err := server.Elicit[fields](ctx, call, "Who?")
		if err != nil || action != mcp.Accept || got.Name != "Ada" || got.Age != 36 || got.Good != nil {
			t.Errorf("got %+v, %s, %v", got, action, err)
		}
	})
	want := `elicitation/create {"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"who"},` +
		`"age":{"type":"integer","minimum":0,"maximum":255},"good":{"type":"boolean"},"size":{"type":"number"}},"required":["name","age"]}}`
	if len(c.asked) != 1 || c.asked[0] != want {
		t.Errorf("asked %q", c.asked)
	}
	refused := map[string]func(ctx context.Context, call *server.Call) error{
		"a list":     elicits[struct{ L []string }],
		"a struct":   elicits[struct{ S fields }],
		"a map":      elicits[struct{ M map[string]int }],
		"anything":   elicits[struct{ A any }],
		"no struct":  elicits[string],
		"a map only": elicits[map[string]string],
		"no fields":  elicits[struct{}],
	}
	for name, f := range refused {
		within(t, c, capable, func(ctx context.Context, call *server.Call) {
			if err := f(ctx, call); err == nil || !strings.HasPrefix(err.Error(), "form: ") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func elicits[T any](ctx context.Context, call *server.Call) error {
	_, _, err := server.Elicit[T](ctx, call, "?")
	return err
}

func TestAnswersToElicitation_SEC115(t *testing.T) {
	form := mcp.ElicitParams{Message: "?", RequestedSchema: mcp.JSON(`{"type":"object","properties":{"n":{"type":"integer","maximum":5}},"required":["n"]}`)}
	url := mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "?", URL: "https://example.com/"}
	tests := []struct {
		params       mcp.ElicitParams
		answer, want string
	}{
		{form, `{"action":"accept","content":{"n":5}}`, `accept {"n":5}`},
		{form, `{"action":"accept","content":{"n":6}}`, `does not fit the form: /n must not be more than 5`},
		{form, `{"action":"accept"}`, `does not fit the form: the value lacks the member "n"`},
		{form, `{"action":"accept","content":null}`, `does not fit the form: the value lacks the member "n"`},
		{form, `{"action":"accept","content":[]}`, `does not fit the form: the value must be of type object`},
		{form, `{"action":"decline"}`, `decline `},
		{form, `{"action":"cancel","content":{"n":"ignored"}}`, `cancel {"n":"ignored"}`},
		{form, `{"action":"maybe"}`, `unknown action "maybe"`},
		{form, `{}`, `unknown action ""`},
		{form, `{"action":1}`, `the client's answer to elicitation/create`},
		{url, `{"action":"accept"}`, `accept `},
		{mcp.ElicitParams{Message: "?"}, `{"action":"accept","content":{"a":1}}`, `accept {"a":1}`},
	}
	for _, test := range tests {
		within(t, answering(test.answer), capable, func(ctx context.Context, call *server.Call) {
			got, err := call.Elicit(ctx, test.params)
			said := fmt.Sprint(err)
			if err == nil {
				said = string(got.Action) + " " + string(got.Content)
			}
			if !strings.Contains(said, test.want) {
				t.Errorf("%s: %s", test.answer, said)
			}
		})
	}
}

func TestURLElicitationOfALegacyClientHasAnID_B151(t *testing.T) {
	for revision, want := range map[mcp.Revision]bool{mcp.NewestLegacy: true, mcp.NewestModern: false} {
		c := answering(`{"action":"accept"}`)
		within(t, c, mcp.Metadata{Revision: revision, Capabilities: capable.Capabilities}, func(ctx context.Context, call *server.Call) {
			if _, err := call.Elicit(ctx, mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "?", URL: "https://example.com/"}); err != nil {
				t.Error(err)
			}
		})
		if got := strings.Contains(c.asked[0], `"elicitationId":"`); got != want {
			t.Errorf("%s: asked %q", revision, c.asked)
		}
	}
}

// questions are one of each kind.
var questions = map[string]struct {
	ask  func(ctx context.Context, call *server.Call) error
	need string // requiredCapabilities
}{
	"a form": {func(ctx context.Context, call *server.Call) error { return elicits[person](ctx, call) }, `{"elicitation":{}}`},
	"a URL": {func(ctx context.Context, call *server.Call) error {
		_, err := call.Elicit(ctx, mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "?", URL: "https://example.com/"})
		return err
	}, `{"elicitation":{"url":{}}}`},
	"sampling": {func(ctx context.Context, call *server.Call) error { _, err := call.Sample(ctx, sampling()); return err }, `{"sampling":{}}`},
	"sampling with tools": {func(ctx context.Context, call *server.Call) error {
		params := sampling()
		params.ToolChoice = &mcp.ToolChoice{Mode: "none"}
		_, err := call.Sample(ctx, params)
		return err
	}, `{"sampling":{"tools":{}}}`},
	"roots": {func(ctx context.Context, call *server.Call) error { _, err := call.Roots(ctx); return err }, `{"roots":{}}`},
	"several": {func(_ context.Context, _ *server.Call) error {
		return server.NeedInput(map[string]mcp.InputRequest{"r": server.RootsRequest()}, nil)
	}, `{"roots":{}}`},
}

func TestWhatTheClientHasNotDeclaredIsNotAsked_SEC14_SEC103(t *testing.T) {
	for name, q := range questions {
		for _, capabilities := range []string{``, `{}`, `{"elicitation":null,"sampling":true,"roots":[]}`} {
			c := answering(`{}`)
			s := newServer(nil)
			s.AddTool(mcp.Tool{Name: "t"}, func(ctx context.Context, call *server.Call) (mcp.Result, error) {
				return mcp.Result{}, fmt.Errorf("asking: %w", q.ask(ctx, call))
			})
			req := request(mcp.MethodCallTool, `{"name":"t"}`)
			req.Meta.Capabilities = []byte(capabilities)
			_, err := s.Handle(t.Context(), req, c)
			wire := jsonrpc.ToWire(err)
			if wire.Code != jsonrpc.CodeMissingCapability || string(wire.Data.Raw()) != `{"requiredCapabilities":`+q.need+`}` {
				t.Errorf("%s with %q: %v, %s", name, capabilities, err, wire.Data.Raw())
			}
			if len(c.asked) > 0 {
				t.Errorf("%s with %q: asked %q", name, capabilities, c.asked)
			}
		}
	}
}

func TestQuestionsThatFail(t *testing.T) {
	rejected := jsonrpc.ReadError(value(`{"code":-1,"message":"User rejected"}`))
	c := &client{answer: func(*mcp.Request) (string, error) { return "", rejected }}
	s := newServer(nil)
	server.AddTool(s, mcp.Tool{Name: "t"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		_, err := call.Sample(ctx, sampling())
		return "", err
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.Meta = capable
	got, err := s.Handle(t.Context(), req, c)
	if err != nil || !strings.Contains(string(got.Raw()), `"text":"sampling/createMessage: User rejected (-1)"`) {
		t.Errorf("a rejection becomes %s, %v", got.Raw(), err)
	}
	// A question that holds what is no JSON is not put.
	c = answering(`{}`)
	within(t, c, capable, func(ctx context.Context, call *server.Call) {
		params := sampling()
		params.Metadata = mcp.JSON("{")
		if _, err := call.Sample(ctx, params); err == nil || len(c.asked) > 0 {
			t.Errorf("asked %q: %v", c.asked, err)
		}
	})
	c = answering(`{"action":"accept","content":{}}`)
	within(t, c, capable, func(ctx context.Context, call *server.Call) {
		params := mcp.ElicitParams{Message: "?", RequestedSchema: mcp.JSON(`{"type":"object","properties":{"a":{"pattern":"("}}}`)}
		if _, err := call.Elicit(ctx, params); err == nil || len(c.asked) > 0 {
			t.Errorf("asked %q with a form that cannot be checked: %v", c.asked, err)
		}
	})
	within(t, answering(`{"roots":1}`), capable, func(ctx context.Context, call *server.Call) {
		if _, err := call.Roots(ctx); err == nil {
			t.Error("an answer that is none is taken")
		}
	})
}

// stepwise is a server with a tool that asks twice, by results.
func stepwise(opts *server.Options) *server.Server {
	s := newServer(opts)
	step := func(_ context.Context, call *server.Call) (mcp.Result, error) {
		state, err := call.State()
		if err != nil {
			return mcp.Result{}, err
		}
		if again, err := call.State(); err != nil || string(again) != string(state) {
			return mcp.Result{}, fmt.Errorf("the second look finds %q, %w", again, err)
		}
		var roots mcp.ListRootsResult
		if !call.Answer("roots", &roots) {
			return mcp.Result{}, server.NeedInput(map[string]mcp.InputRequest{"roots": server.RootsRequest()}, append(state, '+'))
		}
		return mcp.NewResult(mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: string(state)}}})
	}
	s.AddTool(mcp.Tool{Name: "t"}, step)
	s.AddTool(mcp.Tool{Name: "other"}, step)
	return s
}

// retry calls a tool with what came of an earlier call, and returns the state in
// the result, or the text.
func retry(s *server.Server, name, arguments, state, answers string, who mcp.Principal) (string, error) {
	req := request(mcp.MethodCallTool, `{"name":"`+name+`","arguments":`+arguments+`,"requestState":`+state+`,"inputResponses":`+answers+`,"_meta":{"x":1}}`)
	req.Meta = capable
	req.Meta.Revision, req.Meta.Principal = mcp.NewestModern, who
	if state == "" {
		req.Params = jsonrpc.Trusted([]byte(`{"name":"` + name + `","arguments":` + arguments + `}`))
	}
	result, err := s.Handle(context.Background(), req, mcp.NoCaller{})
	if err != nil {
		return "", err
	}
	var got struct {
		ResultType, RequestState string
		InputRequests            map[string]any
		Content                  []struct{ Text string }
	}
	if err := json.Unmarshal(result.Raw(), &got); err != nil {
		return "", err
	}
	if got.ResultType == mcp.InputRequired {
		if len(got.InputRequests) != 1 || got.RequestState == "" {
			return "", fmt.Errorf("the result is %s", result.Raw())
		}
		return `"` + got.RequestState + `"`, nil
	}
	return got.Content[0].Text, nil
}

func TestStateComesBackForItsRequestOnly_TG5_SEC101(t *testing.T) {
	const args, answer = `{"a":1,"b":[2]}`, `{"roots":{"roots":[]}}`
	who := mcp.Principal{Subject: "ada"}
	synctest.Test(t, func(t *testing.T) {
		s := stepwise(&server.Options{StateLife: time.Minute})
		fresh := func() string {
			state, err := retry(s, "t", args, "", "", who)
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		state := fresh()
		if got, err := retry(s, "t", `{ "b":[2], "\u0061":1}`, state, answer, who); err != nil || got != "+" {
			t.Errorf("the retry gives %q, %v", got, err)
		}
		second, err := retry(s, "t", args, fresh(), `{}`, who) // without the answer
		if err != nil {
			t.Fatal(err)
		}
		if got, err := retry(s, "t", args, second, answer, who); err != nil || got != "++" {
			t.Errorf("the second retry gives %q, %v", got, err)
		}
		other := fresh()
		tampered := []byte(fresh())
		tampered[20] ^= 1
		for name, refused := range map[string]func() (string, error){
			"used":            func() (string, error) { return retry(s, "t", args, state, answer, who) },
			"other arguments": func() (string, error) { return retry(s, "t", `{"a":2,"b":[2]}`, other, answer, who) },
			"another tool":    func() (string, error) { return retry(s, "other", args, other, answer, who) },
			"somebody else":   func() (string, error) { return retry(s, "t", args, other, answer, mcp.Principal{}) },
			"another server":  func() (string, error) { return retry(stepwise(nil), "t", args, other, answer, who) },
			"tampered":        func() (string, error) { return retry(s, "t", args, string(tampered), answer, who) },
			"truncated":       func() (string, error) { return retry(s, "t", args, other[:20]+`"`, answer, who) },
			"empty":           func() (string, error) { return retry(s, "t", args, `""`, answer, who) },
			"no string":       func() (string, error) { return retry(s, "t", args, `1`, answer, who) },
			"expired": func() (string, error) {
				old := fresh()
				time.Sleep(time.Minute)
				return retry(s, "t", args, old, answer, who)
			},
		} {
			if got, err := refused(); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) || !strings.Contains(fmt.Sprint(err), "requestState") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		// A refusal does not use it up.
		other = fresh()
		_, _ = retry(s, "other", args, other, answer, who)
		if got, err := retry(s, "t", args, other, answer, who); err != nil || got != "+" {
			t.Errorf("after a refusal the retry gives %q, %v", got, err)
		}
		time.Sleep(time.Minute - time.Second)
	})
}

func TestServersWithOneKeyTakeEachOthersRetries(t *testing.T) {
	key := []byte("0123456789abcdef")
	state, err := retry(stepwise(&server.Options{StateKey: key}), "t", `{}`, "", "", mcp.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := retry(stepwise(&server.Options{StateKey: key}), "t", `{}`, state, `{"roots":{"roots":[]}}`, mcp.Principal{})
	if err != nil || got != "+" {
		t.Errorf("the retry gives %q, %v", got, err)
	}
}

func TestNeedInputWorksForResourcesAndPromptsToo(t *testing.T) {
	need := server.NeedInput(map[string]mcp.InputRequest{"r": server.RootsRequest()}, []byte("s"))
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	s.AddResource(mcp.Resource{URI: "u:1", Name: "r"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, need
	})
	s.AddPrompt(mcp.Prompt{Name: "p"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
		return nil, fmt.Errorf("wrapped: %w", need)
	})
	s.AddTool(mcp.Tool{Name: "none"}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.Result{}, server.NeedInput(nil, nil)
	})
	s.AddTool(mcp.Tool{Name: "state"}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.Result{}, server.NeedInput(nil, []byte{})
	})
	s.AddTool(mcp.Tool{Name: "bad"}, func(context.Context, *server.Call) (mcp.Result, error) {
		return mcp.Result{}, server.NeedInput(map[string]mcp.InputRequest{"q": {Method: mcp.MethodElicit}}, nil)
	})
	s.Method("x/y", func(context.Context, *server.Call) (mcp.Result, error) { return mcp.Result{}, need })
	ask := func(method, params string) (string, error) {
		req := request(method, params)
		req.Meta = capable
		result, err := s.Handle(t.Context(), req, mcp.NoCaller{})
		return string(result.Raw()), err
	}
	for method, params := range map[string]string{mcp.MethodReadResource: `{"uri":"u:1"}`, mcp.MethodGetPrompt: `{"name":"p"}`} {
		if got, err := ask(method, params); err != nil || !strings.HasPrefix(got, `{"inputRequests":{"r":{"method":"roots/list","params":{}}},"requestState":"`) {
			t.Errorf("%s: %s, %v", method, got, err)
		}
	}
	if got, err := ask(mcp.MethodCallTool, `{"name":"state"}`); err != nil || strings.Contains(got, "inputRequests") || !strings.Contains(got, `"requestState":"`) {
		t.Errorf("a state alone: %s, %v", got, err)
	}
	for request, reason := range map[[2]string]string{
		{mcp.MethodCallTool, `{"name":"none"}`}: "neither a question nor a state",
		{mcp.MethodCallTool, `{"name":"bad"}`}:  "no JSON",
		{"x/y", `{}`}:                           "input is required",
	} {
		_, err := ask(request[0], request[1])
		log.hasIncident(t, err, reason)
	}
}
