package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// The types of a tool that panic where their values are read, written or told.
type (
	badArgument struct{}
	badResult   struct{}
	badError    struct{}
	badMatch    struct{}
)

func (*badArgument) UnmarshalJSON([]byte) error { panic("oh no") }
func (badResult) MarshalJSON() ([]byte, error)  { panic("oh no") }
func (badError) Error() string                  { panic("oh no") }
func (badMatch) Error() string                  { return "fine" }
func (badMatch) As(any) bool                    { panic("oh no") }

// TestPanicsAtEverySeam: besides those of functions, which
// TestPanicsAreOneFailedCallLoggedWithItsID_TK2_R43 has.
func TestPanicsAtEverySeam_TK2_R43(t *testing.T) {
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	server.AddTool(s, mcp.Tool{Name: "argument", InputSchema: mcp.JSON(`{"type":"object"}`)},
		func(context.Context, *server.Call, badArgument) (string, error) { return "", nil })
	server.AddTool(s, mcp.Tool{Name: "result", OutputSchema: mcp.JSON(`{}`)},
		func(context.Context, *server.Call, struct{}) (badResult, error) { return badResult{}, nil })
	server.AddTool(s, mcp.Tool{Name: "error"}, func(context.Context, *server.Call, struct{}) (string, error) { return "", badError{} })
	server.AddTool(s, mcp.Tool{Name: "match"}, func(context.Context, *server.Call, struct{}) (string, error) { return "", badMatch{} })
	server.AddTool(s, mcp.Tool{Name: "progress"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		return "", call.Notify(ctx, "x/y", badResult{})
	})
	server.AddTool(s, mcp.Tool{Name: "nil call"}, func(ctx context.Context, _ *server.Call, _ struct{}) (string, error) {
		var none *server.Call
		return "", none.Log(ctx, "error", "", 1)
	})
	s.AddResource(mcp.Resource{URI: "u:nil", Name: "r"}, nil)
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "t:{a}", Name: "t"}, nil)
	s.AddPrompt(mcp.Prompt{Name: "nil"}, nil)
	s.AddTool(mcp.Tool{Name: "nil"}, nil)
	for _, test := range [][2]string{
		{mcp.MethodCallTool, `{"name":"argument"}`}, {mcp.MethodCallTool, `{"name":"result"}`}, {mcp.MethodCallTool, `{"name":"error"}`},
		{mcp.MethodCallTool, `{"name":"match"}`}, {mcp.MethodCallTool, `{"name":"progress"}`}, {mcp.MethodCallTool, `{"name":"nil call"}`},
		{mcp.MethodCallTool, `{"name":"nil"}`}, {mcp.MethodGetPrompt, `{"name":"nil"}`},
	} {
		_, err := handle(t, s, test[0], test[1])
		log.hasIncident(t, err, "method="+test[0])
		if _, err := handle(t, s, mcp.MethodListTools, `{}`); err != nil {
			t.Errorf("after %s %s: %v", test[0], test[1], err)
		}
	}
	for _, uri := range []string{"u:nil", "t:x"} { // which nobody reads
		if _, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`"}`); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeResourceNotFound}) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestNothingDependsOnTheNameOfTheClient: clientInfo is not for "behavior or
// security decisions" (2026-07-28, basic, _meta).
func TestNothingDependsOnTheNameOfTheClient_SEC16(t *testing.T) {
	s := library()
	addTools(s, "t")
	for _, test := range [][2]string{
		{mcp.MethodDiscover, `{}`}, {mcp.MethodListTools, `{}`}, {mcp.MethodListResources, `{}`}, {mcp.MethodListResourceTemplates, `{}`},
		{mcp.MethodCallTool, `{"name":"t"}`}, {mcp.MethodCallTool, `{"name":"none"}`}, {mcp.MethodReadResource, `{"uri":"file:///b"}`},
		{mcp.MethodReadResource, `{"uri":"u:none such"}`}, {"x/y", `{}`},
	} {
		var want string
		for i, client := range []string{``, `null`, `{"name":"admin","version":"1"}`, `{"name":"../../x\u0000","version":"\u001b[2J"}`, `[1]`} {
			req := request(test[0], test[1])
			req.Meta.Client = []byte(client)
			result, err := s.Handle(t.Context(), req, mcp.NoCaller{})
			got := string(result.Raw())
			if err != nil {
				got = err.Error()
			}
			if i == 0 {
				want = got
			}
			if got != want {
				t.Errorf("%s of %s: %s instead of %s", test[0], client, got, want)
			}
		}
	}
}
