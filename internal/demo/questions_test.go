package demo_test

import (
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

const cannot = "the client cannot be asked: it has not declared that it answers such questions, or its connection has no way for them"

func TestQuestions(t *testing.T) {
	for _, tt := range []struct{ name, tool, capabilities, asked, answer, want string }{
		{
			"a form", "ask", `{"elicitation":{}}`,
			`elicitation/create {"message":"What is your name?","requestedSchema":{"type":"object",` +
				`"properties":{"name":{"type":"string","description":"What to call you"}},"required":["name"]}}`,
			`{"action":"accept","content":{"name":"Ada"}}`, textResult("Hello, Ada!"),
		},
		{"a form that is declined", "ask", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"action":"decline"}`, textResult("No name was given: decline.")},
		{"a form without its field", "ask", `{"elicitation":{}}`, "elicitation/create", `{"action":"accept","content":{}}`, "does not fit the form"},
		{
			"a model", "sample", `{"sampling":{}}`,
			`sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Write one line about the sea."}}],"maxTokens":100}`,
			`{"role":"assistant","model":"m-1","content":{"type":"text","text":"Blue."}}`, textResult("m-1 wrote: Blue."),
		},
		{"a model without a text", "sample", `{"sampling":{}}`, "sampling/createMessage", `{"role":"assistant","model":"m-1","content":[]}`, failure("m-1 wrote no text")},
		{"roots", "roots", `{"roots":{}}`, "roots/list", `{"roots":[{"uri":"file:///a","name":"A"}]}`, textResult("Roots of the client: 1\nfile:///a A")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, mcp.MethodCallTool, `{"name":"`+tt.tool+`"}`)
			req.Meta.Capabilities = []byte(tt.capabilities)
			c := &client{answer: func(question *mcp.Request) (mcp.Result, error) {
				if got := strings.TrimSpace(question.Method + " " + string(question.Params.Raw())); !strings.HasPrefix(got, tt.asked) {
					t.Errorf("asked %s\nwant  %s", got, tt.asked)
				}
				return mcp.RawResult([]byte(tt.answer)), nil
			}}
			if got := shown(demo.New("").Handle(t.Context(), req, c)); !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestClientsThatCannotBeAskedAreTold(t *testing.T) {
	order := request(t, mcp.MethodCallTool, `{"name":"order"}`)
	if got := shown(demo.New("").Handle(t.Context(), order, &client{})); got != failure(cannot) {
		t.Errorf("order gives %s", got)
	}
	const all = `{"elicitation":{},"sampling":{},"roots":{}}`
	for _, tool := range []string{"ask", "sample", "roots"} {
		for _, tt := range []struct {
			name, capabilities string
			revision           mcp.Revision
			want               string
		}{
			{"legacy, not declared", `{}`, mcp.NewestLegacy, failure(cannot)},
			{"legacy, no way", all, mcp.NewestLegacy, failure(cannot)},
			{"modern, not declared", `{}`, mcp.NewestModern, "error -32021: Missing required client capability"},
			{"modern, no way", all, mcp.NewestModern, cannot},
			{"addresses only", `{"elicitation":{"url":{}}}`, mcp.NewestLegacy, failure(cannot)},
		} {
			t.Run(tool+", "+tt.name, func(t *testing.T) {
				req := request(t, mcp.MethodCallTool, `{"name":"`+tool+`"}`)
				req.Meta.Capabilities, req.Meta.Revision = []byte(tt.capabilities), tt.revision
				if got := shown(demo.New("").Handle(t.Context(), req, &client{})); !strings.Contains(got, tt.want) {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		}
	}
}

func TestErrorsOfQuestionsArePassedOn(t *testing.T) {
	req := request(t, mcp.MethodCallTool, `{"name":"ask"}`)
	req.Meta.Capabilities = []byte(`{"elicitation":{}}`)
	c := &client{answer: func(*mcp.Request) (mcp.Result, error) { return mcp.Result{}, jsonrpc.Errorf(-32600, "no") }}
	if got, want := shown(demo.New("").Handle(t.Context(), req, c)), "error -32600: no"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOrderKeepsItsStateWithTheClient(t *testing.T) {
	s := demo.New("")
	// order makes the call with further params, as a modern client.
	order := func(params string) mcp.Result {
		t.Helper()
		req := request(t, mcp.MethodCallTool, `{"name":"order"`+params+`}`)
		req.Meta.Revision, req.Meta.Capabilities = mcp.NewestModern, []byte(`{"elicitation":{}}`)
		result, err := s.Handle(t.Context(), req, &client{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := order("")
	if got := string(first.Raw()); !strings.Contains(got, `"inputRequests":{"drink":`) || strings.Contains(got, "requestState") {
		t.Errorf("got %s", got)
	}
	second := order(`,"inputResponses":{"drink":{"action":"accept","content":{"choice":"tea"}}}`)
	if got := string(second.Raw()); !strings.Contains(got, `"inputRequests":{"size":`) {
		t.Errorf("got %s", got)
	}
	state, ok := second.Lookup("requestState")
	if !ok {
		t.Fatalf("no state in %s", second.Raw())
	}
	last := order(`,"inputResponses":{"size":{"action":"accept","content":{"choice":"large"}}},"requestState":` + string(state))
	if got := string(last.Raw()); !strings.Contains(got, "Here is your large tea.") {
		t.Errorf("got %s", got)
	}

	refused := order(`,"inputResponses":{"drink":{"action":"cancel"}}`)
	if got := string(refused.Raw()); !strings.Contains(got, "Nothing was ordered: cancel.") {
		t.Errorf("got %s", got)
	}
	wrong := order(`,"inputResponses":{"drink":{"action":"accept","content":{"choice":"beer"}}}`)
	if got := string(wrong.Raw()); !strings.Contains(got, "the answer is not on the menu") {
		t.Errorf("got %s", got)
	}
}
