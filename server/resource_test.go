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

// library is a server with resources.
func library() *server.Server {
	s := newServer(nil)
	s.AddResource(mcp.Resource{URI: "file:///a.txt", Name: "a"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents("text/plain", "a"), nil
	})
	give := func(result *mcp.ReadResourceResult, err error) server.ReadFunc {
		return func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
			return result, err
		}
	}
	ttl := int64(5)
	other := "o"
	s.AddResource(mcp.Resource{URI: "u:blob", Name: "b"}, give(server.BlobContents("image/png", []byte{1, 2}), nil))
	s.AddResource(mcp.Resource{URI: "u:empty-blob", Name: "b"}, give(server.BlobContents("", nil), nil))
	s.AddResource(mcp.Resource{URI: "u:neither", Name: "n"}, give(&mcp.ReadResourceResult{Contents: make([]mcp.ResourceContents, 1)}, nil))
	s.AddResource(mcp.Resource{URI: "u:none", Name: "n"}, give(&mcp.ReadResourceResult{}, nil))
	s.AddResource(mcp.Resource{URI: "u:nil", Name: "n"}, give(nil, nil))
	s.AddResource(mcp.Resource{URI: "u:gone", Name: "n"}, give(nil, server.NotFound("u:gone")))
	s.AddResource(mcp.Resource{URI: "u:hints", Name: "n"}, give(&mcp.ReadResourceResult{
		Contents:      []mcp.ResourceContents{{URI: "u:other", Text: &other}},
		CacheHints:    mcp.CacheHints{TTLMs: &ttl, CacheScope: mcp.Public},
		ResultMembers: mcp.ResultMembers{Meta: mcp.Object{"k": mcp.JSON("1")}},
	}, nil))
	echo := func(prefix string) server.ReadFunc {
		return func(_ context.Context, _ *server.Call, uri string, variables map[string]string) (*mcp.ReadResourceResult, error) {
			raw, err := mcp.NewJSON(variables)
			return server.TextContents("", prefix+string(raw)), err
		}
	}
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "file:///{name}", Name: "files"}, echo("files"))
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "file:///{name}.txt", Name: "texts"}, echo("texts"))
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "tree:///{+path}", Name: "trees"}, echo("tree"))
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "find:{what}{?depth}", Name: "find"}, echo("find"))
	return s
}

func TestOneResultForManyResources(t *testing.T) {
	s := newServer(nil)
	shared := server.TextContents("", "x")
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "t:{a}", Name: "t"},
		func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
			return shared, nil
		})
	for _, uri := range []string{"t:1", "t:2"} {
		got, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`"}`)
		if err != nil || !strings.HasPrefix(got, `{"contents":[{"uri":"`+uri+`","text":"x"}]`) {
			t.Errorf("%s: %s, %v", uri, got, err)
		}
	}
	if shared.Contents[0].URI != "" || shared.Meta != nil {
		t.Errorf("the function's result became %v", shared)
	}
}

func TestReadingResources(t *testing.T) {
	const meta = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}`
	text := func(uri, text string) string {
		raw, _ := mcp.NewJSON(text)
		return `{"contents":[{"uri":"` + uri + `","text":` + string(raw) + `}],` + meta
	}
	s := library()
	for uri, want := range map[string]string{
		"file:///a.txt":         `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"a"}],` + meta,
		"u:blob":                `{"contents":[{"uri":"u:blob","mimeType":"image/png","blob":"AQI="}],` + meta,
		"u:empty-blob":          `{"contents":[{"uri":"u:empty-blob","blob":""}],` + meta,
		"u:neither":             text("u:neither", ""),
		"u:none":                `{"contents":[],` + meta,
		"u:hints":               `{"contents":[{"uri":"u:other","text":"o"}],"ttlMs":5,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"k":1}}`,
		"file:///b":             text("file:///b", `files{"name":"b"}`),
		"file:///b%2F..%2Fc":    text("file:///b%2F..%2Fc", `files{"name":"b/../c"}`), // decoded: whoever opens files must look
		"file:///b.txt":         text("file:///b.txt", `files{"name":"b.txt"}`),
		"tree:///a/b/c?depth=2": text("tree:///a/b/c?depth=2", `tree{"path":"a/b/c?depth=2"}`),
		"tree:///":              text("tree:///", `tree{"path":""}`),
		"find:x?depth=2":        text("find:x?depth=2", `find{"depth":"2","what":"x"}`),
		"find:x":                text("find:x", `find{"depth":"","what":"x"}`),
	} {
		if got, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`"}`); err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", uri, got, err, want)
		}
	}
}

func TestResourcesThatAreNot(t *testing.T) {
	s := library()
	for _, uri := range []string{"u:nil", "u:gone", "u:unknown", "file:///a/b", ""} {
		_, err := handle(t, s, mcp.MethodReadResource, `{"uri":"`+uri+`"}`)
		wire := jsonrpc.ToWire(err)
		if wire.Code != jsonrpc.CodeResourceNotFound || string(wire.Data.Raw()) != `{"uri":"`+uri+`"}` {
			t.Errorf("%q: %v, %s", uri, wire, wire.Data.Raw())
		}
	}
	for _, params := range []string{`{}`, `{"uri":1}`, `{"uri":null}`} {
		if _, err := handle(t, s, mcp.MethodReadResource, params); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestResourcesAndTemplatesAreListedAndRemoved(t *testing.T) {
	s := library()
	for method, wants := range map[string][]string{
		mcp.MethodListResources:         {`"resources":[{"uri":"file:///a.txt","name":"a"},`, `"u:nil"`},
		mcp.MethodListResourceTemplates: {`"resourceTemplates":[{"uriTemplate":"file:///{name}","name":"files"},{"uriTemplate":"file:///{name}.txt"`},
	} {
		got, err := handle(t, s, method, `{}`)
		for _, want := range wants {
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %s, %v", method, got, err)
			}
		}
	}
	s.RemoveResources("file:///a.txt", "none")
	s.RemoveResourceTemplates("file:///{name}.txt")
	got, err := handle(t, s, mcp.MethodReadResource, `{"uri":"file:///a.txt"}`)
	if err != nil || !strings.Contains(got, `files{\"name\":\"a.txt\"}`) {
		t.Errorf("after the removals: %s, %v", got, err)
	}
}

// TestResultsOfToolsAreOfTheirRevision, also those that are put together by hand.
func TestResultsOfToolsAreOfTheirRevision(t *testing.T) {
	s := newServer(nil)
	server.AddTool(s, mcp.Tool{Name: "text"}, func(context.Context, *server.Call, struct{}) (string, error) { return "a", nil })
	server.AddTool(s, mcp.Tool{Name: "failed"}, func(context.Context, *server.Call, struct{}) (string, error) { return "", errors.New("a") })
	server.AddTool(s, mcp.Tool{Name: "structured"}, func(context.Context, *server.Call, struct{}) (map[string]int, error) {
		return map[string]int{"a": 1}, nil
	})
	const modern = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}},`
	for name, want := range map[string]string{
		"text":       `"content":[{"type":"text","text":"a"}]}`,
		"failed":     `"content":[{"type":"text","text":"a"}],"isError":true}`,
		"structured": `"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`,
	} {
		for _, revision := range []mcp.Revision{mcp.NewestLegacy, mcp.NewestModern, ""} {
			req := request(mcp.MethodCallTool, `{"name":"`+name+`"}`)
			req.Meta.Revision = revision
			got, err := s.Handle(t.Context(), req, mcp.NoCaller{})
			whole := "{" + want
			if revision != mcp.NewestLegacy {
				whole = "{" + modern + want
			}
			if err != nil || string(got.Raw()) != whole {
				t.Errorf("%s for %q:\ngot  %s, %v\nwant %s", name, revision, got.Raw(), err, whole)
			}
		}
	}
}

func TestALegacyClientGetsNoModernMembers(t *testing.T) {
	s := library()
	addTools(s, "t")
	s.AddPrompt(mcp.Prompt{Name: "p"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil })
	for method, params := range map[string]string{
		mcp.MethodReadResource: `{"uri":"u:blob"}`, mcp.MethodListResources: `{}`, mcp.MethodListTools: `{}`, mcp.MethodGetPrompt: `{"name":"p"}`,
		mcp.MethodComplete: `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
	} {
		req := request(method, params)
		req.Meta.Revision = mcp.NewestLegacy
		if method == mcp.MethodComplete {
			s.CompletePrompt("p", "a", func(context.Context, *server.Call, string, map[string]string) ([]string, error) { return nil, nil })
		}
		result, err := s.Handle(t.Context(), req, mcp.NoCaller{})
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"resultType", "ttlMs", "cacheScope", "_meta"} {
			if _, there := result.Lookup(member); there {
				t.Errorf("%s: %s", method, result.Raw())
			}
		}
	}
}
