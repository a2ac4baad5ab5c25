package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func prompts() *server.Server {
	s := newServer(nil)
	s.AddPrompt(mcp.Prompt{
		Name: "greet", Arguments: []mcp.PromptArgument{{Name: "name", Required: true}, {Name: "tone"}},
	}, func(_ context.Context, _ *server.Call, args map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{
			Description: "d",
			Messages: []mcp.PromptMessage{
				server.UserText("Hello " + args["name"] + args["tone"]),
				{Role: mcp.Assistant, Content: &mcp.Image{Data: []byte{1}, MIMEType: "image/png"}},
			},
		}, nil
	})
	s.AddPrompt(mcp.Prompt{Name: "nil"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil })
	s.AddPrompt(mcp.Prompt{Name: "bad"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.User}}}, nil
	})
	return s
}

func TestPromptsAreMade(t *testing.T) {
	const meta = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}`
	for params, want := range map[string]string{
		`{"name":"greet","arguments":{"name":"Ada","tone":"\u0021"}}`: `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"Hello Ada!"}},` +
			`{"role":"assistant","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}],` + meta,
		`{"name":"greet","arguments":{"name":"","more":"x"}}`: `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"Hello "}},` +
			`{"role":"assistant","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}],` + meta,
		`{"name":"greet","arguments":{"name":"Ada","tone":null}}`: `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"Hello Ada"}},` +
			`{"role":"assistant","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}],` + meta,
		`{"name":"nil"}`:                  `{"messages":[],` + meta,
		`{"name":"nil","arguments":null}`: `{"messages":[],` + meta,
	} {
		if got, err := handle(t, prompts(), mcp.MethodGetPrompt, params); err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", params, got, err, want)
		}
	}
}

func TestPromptsThatCannotBeMade(t *testing.T) {
	for params, want := range map[string]string{
		`{}`: "name must be a string", `{"name":1}`: "name must be a string", `{"name":"x"}`: `unknown prompt "x"`,
		`{"name":"greet","arguments":{"name":null}}`: `argument "name" is missing`,
		`{"name":"greet"}`:                           `argument "name" is missing`, `{"name":"greet","arguments":{"Name":"x"}}`: `argument "name" is missing`,
		`{"name":"greet","arguments":{"name":1}}`: "object of strings", `{"name":"greet","arguments":[]}`: "object of strings",
		`{"name":"greet","arguments":{"name":"a","name":"b"}}`: "object of strings",
	} {
		_, err := handle(t, prompts(), mcp.MethodGetPrompt, params)
		if !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	s.AddPrompt(mcp.Prompt{Name: "bad"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.User}}}, nil
	})
	_, err := handle(t, s, mcp.MethodGetPrompt, `{"name":"bad"}`)
	log.hasIncident(t, err, "a block of content is nil")
}

func TestPromptsAreListedAndRemoved(t *testing.T) {
	s := prompts()
	s.RemovePrompts("bad", "none")
	got, err := handle(t, s, mcp.MethodListPrompts, `{}`)
	if want := `"prompts":[{"name":"greet","arguments":[{"name":"name","required":true},{"name":"tone"}]},{"name":"nil"}],"ttlMs":0,"cacheScope":"public"}`; err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("%s, %v", got, err)
	}
}
