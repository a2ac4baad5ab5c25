package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// TestQuestionsAsALegacyClientGetsThem: a URL must have an elicitationId in
// 2025-11-25, and 2026-07-28 has none.
func TestQuestionsAsALegacyClientGetsThem(t *testing.T) {
	const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"clientInfo":{"name":"c","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}}}`
	for _, tt := range []struct{ name, question, want string }{
		{"a URL", `{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}`,
			`"method":"elicitation/create","params":{"mode":"url","url":"https://a","elicitationId":"`},
		{"a URL with an id", `{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e"}}`,
			`"method":"elicitation/create","params":{"mode":"url","elicitationId":"e"}}`},
		{"a form", `{"method":"elicitation/create","params":{"message":"\u00e9"}}`,
			`"method":"elicitation/create","params":{"message":"\u00e9"}}`},
		{"sampling", `{"method":"sampling/createMessage","params":{"mode":"url"}}`,
			`"method":"sampling/createMessage","params":{"mode":"url"}}`},
		{"roots", `{"method":"roots/list"}`, `"method":"roots/list"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session.NewServer(&backend{serve: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (mcp.Result, error) {
				if answers, there := req.Params.Lookup("inputResponses"); there {
					return mcp.RawResult(answers), nil
				}
				return mcp.RawResult([]byte(`{"resultType":"input_required","inputRequests":{"k":` + tt.question + `}}`)), nil
			}}, session.ServerOptions{ID: "s"})
			t.Cleanup(s.Close)
			if _, err := s.Handle(t.Context(), scan(t, handshake), nil); err != nil {
				t.Fatal(err)
			}
			out := make(outlet, 1)
			ended := make(chan string, 1)
			call := scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
			go func() {
				result, err := s.Handle(t.Context(), call, out)
				ended <- string(result.Raw()) + errorText(err)
			}()
			asked := receive(t, "the question", out)
			if !strings.Contains(asked, tt.want) {
				t.Errorf("asked %s", asked)
			}
			var m jsonrpc.Message
			if err := jsonrpc.Scan([]byte(asked), &m); err != nil {
				t.Fatal(err)
			}
			if !s.Answered(scan(t, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"z":-0}}`)) {
				t.Error("the answer answers nothing")
			}
			if got := receive(t, "the result", ended); got != `{"k":{"z":-0}}` {
				t.Errorf("got %s", got)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}
