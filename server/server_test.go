package server_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func TestDiscoverSaysWhatTheServerHas(t *testing.T) {
	const (
		head = `{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{`
		tail = `,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}`
	)
	s := newServer(&server.Options{ListTTL: -time.Second})
	if got, err := handle(t, s, mcp.MethodDiscover, `{}`); err != nil || got != head+`"logging":{}},"ttlMs":0`+tail {
		t.Errorf("%s, %v", got, err)
	}
	s = newServer(&server.Options{
		ListTTL: 1500 * time.Millisecond, Instructions: "i",
		Capabilities: mcp.ServerCapabilitySet{
			Tools: &mcp.ListCapability{}, Logging: mcp.Object{"x": mcp.JSON("1")},
			Extensions: mcp.Object{"com.example/e": mcp.JSON(`{"v":1.0}`)},
		},
	})
	addTools(s, "t")
	s.AddPrompt(mcp.Prompt{Name: "p"}, nil)
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "u:{a}", Name: "n"}, nil)
	s.CompletePrompt("p", "a", func(context.Context, *server.Call, string, map[string]string) ([]string, error) { return nil, nil })
	want := head + `"tools":{},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},` +
		`"logging":{"x":1},"extensions":{"com.example/e":{"v":1.0}}},"instructions":"i","ttlMs":1500` + tail
	if got, err := handle(t, s, mcp.MethodDiscover, `{}`); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if got, err := handle(t, s, mcp.MethodListTools, `{}`); err != nil || !strings.HasSuffix(got, `"ttlMs":1500,"cacheScope":"public"}`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestMethodsOfTheServersOwn(t *testing.T) {
	s := newServer(nil)
	var noted []string
	s.Method("com.example/a", func(_ context.Context, call *server.Call) (mcp.Result, error) {
		noted = append(noted, call.Request().Method)
		return mcp.RawResult([]byte(`{"x":1}`)), nil
	})
	s.Method("notifications/com.example/b", func(_ context.Context, call *server.Call) (mcp.Result, error) {
		noted = append(noted, call.Request().Method)
		return mcp.Result{}, nil
	})
	want := `{"x":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}},"resultType":"complete"}`
	if got, err := handle(t, s, "com.example/a", `{}`); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, method := range []string{"notifications/com.example/b", "notifications/unknown", mcp.NotificationRootsListChanged} {
		note := &mcp.Request{Method: method, Notification: true}
		if _, err := s.Handle(t.Context(), note, mcp.NoCaller{}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if strings.Join(noted, " ") != "com.example/a notifications/com.example/b" {
		t.Errorf("the functions saw %q", noted)
	}
	s.Method("com.example/a", nil)
	if _, err := handle(t, s, "com.example/a", `{}`); !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}) {
		t.Errorf("the removed method says %v", err)
	}
	s.Method(mcp.NotificationRootsListChanged, func(context.Context, *server.Call) (mcp.Result, error) { return mcp.Result{}, nil })
}

// TestARequestWithoutAnIDIsNotExecuted_B035, whichever edge lets it through.
func TestARequestWithoutAnIDIsNotExecuted_B035(t *testing.T) {
	s := newServer(nil)
	s.AddTool(mcp.Tool{Name: "t"}, func(context.Context, *server.Call) (mcp.Result, error) {
		t.Error("the tool was run")
		return mcp.Result{}, nil
	})
	req := request(mcp.MethodCallTool, `{"name":"t"}`)
	req.Notification = true
	if got, err := s.Handle(t.Context(), req, mcp.NoCaller{}); err != nil || !got.IsZero() {
		t.Errorf("got %s, %v", got.Raw(), err)
	}
}

func TestASchemaIsCheckedNoFurtherThanOneIsAsked(t *testing.T) {
	s := newServer(&server.Options{SkipValidation: true})
	server.AddTool(s, mcp.Tool{Name: "t", OutputSchema: mcp.JSON(`{"type":"object","required":["b"]}`)},
		func(_ context.Context, _ *server.Call, in struct{ A int }) (map[string]int, error) {
			return map[string]int{"a": in.A}, nil
		})
	if got, err := callTool(t, s, "t", `{"A":1,"unknown":true}`); err != nil || string(got.StructuredContent) != `{"a":1}` {
		t.Errorf("got %s, %v", got.StructuredContent, err)
	}
	if got, err := callTool(t, s, "t", `{"A":"x"}`); err != nil || !got.Failed() {
		t.Errorf("what cannot be decoded: %v, %v", got, err)
	}
}

func TestEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(nil)
		var busy sync.WaitGroup
		for range 4 {
			l := listen(t, s, `{"toolsListChanged":true,"resourceSubscriptions":["u:a"]}`)
			busy.Go(func() {
				for l.next() != "" {
				}
				l.cancel()
				<-l.ended
			})
		}
		for i := range 4 {
			busy.Go(func() {
				for range 50 {
					addTools(s, "x")
					s.Changed("u:a", "u:a/b")
					s.RemoveTools("x")
					s.Method("x/y", func(context.Context, *server.Call) (mcp.Result, error) { return mcp.Result{}, nil })
					s.CompleteResource("u:{+rest}", "rest", nil)
					if _, err := handle(t, s, mcp.MethodListTools, `{}`); err != nil {
						t.Errorf("%d: %v", i, err)
					}
					if _, err := handle(t, s, mcp.MethodDiscover, `{}`); err != nil {
						t.Errorf("%d: %v", i, err)
					}
				}
			})
		}
		busy.Wait()
	})
}
