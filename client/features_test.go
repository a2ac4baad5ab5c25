package client_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// everywhere runs a test against the demo server, in this process and over HTTP in
// each era.
func everywhere(t *testing.T, opts client.Options, test func(t *testing.T, c *client.Client)) {
	for name, target := range targets(t) {
		eras(t, func(t *testing.T, era mcp.Era) {
			t.Run(name, func(t *testing.T) {
				own := opts
				own.Era = era
				test(t, connect(t, target, &own))
			})
		})
	}
}

// names returns the names in a list.
func names[Item any](t *testing.T, list func(func(Item, error) bool), name func(Item) string) string {
	t.Helper()
	var all []string
	for item, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name(item))
	}
	return strings.Join(all, " ")
}

func TestEachMethodHasItsFunction(t *testing.T) {
	everywhere(t, client.Options{}, func(t *testing.T, c *client.Client) {
		ctx := t.Context()
		if d, err := c.Server(ctx); err != nil || d.Capabilities.Tools == nil {
			t.Errorf("server/discover: %v, %v", d, err)
		}
		if err := c.Ping(ctx); err != nil {
			t.Errorf("ping: %v", err)
		}
		if got := names(t, c.Resources(ctx), func(r mcp.Resource) string { return r.Name }); !strings.Contains(got, "clock") {
			t.Errorf("resources/list: %s", got)
		}
		if got := names(t, c.ResourceTemplates(ctx), func(r mcp.ResourceTemplate) string { return r.Name }); got != "echo" {
			t.Errorf("resources/templates/list: %s", got)
		}
		if got := names(t, c.Prompts(ctx), func(p mcp.Prompt) string { return p.Name }); !strings.Contains(got, "greeting") {
			t.Errorf("prompts/list: %s", got)
		}
		if r, err := c.ReadResource(ctx, "demo://text", nil); err != nil || len(r.Contents) != 1 {
			t.Errorf("resources/read: %v, %v", r, err)
		}
		if p, err := c.GetPrompt(ctx, "greeting", map[string]string{"name": "Ada"}, nil); err != nil || len(p.Messages) == 0 {
			t.Errorf("prompts/get: %v, %v", p, err)
		}
		params := &mcp.CompleteParams{
			Ref: mcp.Reference{Type: mcp.RefPrompt, Name: "greeting"}, Argument: mcp.CompleteArgument{Name: "name", Value: "A"},
		}
		if got, err := c.Complete(ctx, params, nil); err != nil || len(got.Values) == 0 {
			t.Errorf("completion/complete: %v, %v", got, err)
		}
		if err := c.RootsChanged(ctx); err != nil {
			t.Errorf("notifications/roots/list_changed: %v", err)
		}
		if r, err := c.CallTool(ctx, "fail", nil, nil); err != nil || !r.Failed() {
			t.Errorf("a tool that fails: %v, %v", r, err)
		}
		if _, err := c.CallTool(ctx, "crash", nil, nil); !jsonrpc.FromPeer(err) && mcp.OutcomeOf(err) != mcp.MaybeExecuted {
			t.Errorf("a server that fails: %v", err)
		}
	})
}

// TestLogMessagesOfACall go to its own function, at its own level.
func TestLogMessagesOfACall(t *testing.T) {
	common := make(chan string, 100)
	opts := client.Options{LogLevel: "alert", Log: func(p *mcp.LogParams) { common <- string(p.Level) }}
	everywhere(t, opts, func(t *testing.T, c *client.Client) {
		if _, err := c.CallTool(t.Context(), "log", map[string]string{"text": "x"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := []string{<-common, <-common}; fmt.Sprint(got) != "[alert emergency]" {
			t.Errorf("the client got %s", got)
		}
		var own []string
		if _, err := c.CallTool(t.Context(), "log", map[string]string{"text": "x"}, &client.CallOptions{
			LogLevel: "error", Log: func(p *mcp.LogParams) { own = append(own, string(p.Level)) },
		}); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(own) != "[error critical alert emergency]" || len(common) != 0 {
			t.Errorf("the call got %s, the client %d", own, len(common))
		}
	})
}

// TestChangesAreHeardOf in all eras and ways: of lists and of a resource.
func TestChangesAreHeardOf(t *testing.T) {
	everywhere(t, client.Options{}, func(t *testing.T, c *client.Client) {
		s := listen(t, c, mcp.Filter{ToolsListChanged: true})
		before := names(t, c.Tools(t.Context()), func(t mcp.Tool) string { return t.Name })
		for range 2 {
			if _, err := c.CallTool(t.Context(), "toggle", map[string]string{"what": "tool"}, nil); err != nil {
				t.Fatal(err)
			}
			if got := nextEvent(t, s); got != mcp.NotificationToolsListChanged {
				t.Errorf("there came %s", got)
			}
		}
		if after := names(t, c.Tools(t.Context()), func(t mcp.Tool) string { return t.Name }); after != before {
			t.Errorf("there are %s, not %s", after, before)
		}
	})
}

// TestMetaOfACall is sent with it, and headers with each request.
func TestMetaOfACall(t *testing.T) {
	var header http.Header
	var meta string
	handler := streamable.NewHandler(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			raw, _ := req.Params.Lookup("_meta")
			meta = string(raw)
		}
		return demo.New("1").Handle(ctx, req, caller)
	}), nil)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		listener.Close()
		handler.Close()
	})
	plain := client.URL(listener.URL + "?token=secret")
	target := plain.WithHeader("Authorization", "Bearer x")
	if plain.Options.Header != nil || strings.Contains(target.String(), "secret") {
		t.Errorf("%v, %s", plain.Options.Header, target)
	}
	c := connect(t, target, &client.Options{Era: mcp.Modern})
	_, err := c.CallTool(t.Context(), "echo", map[string]string{"text": "x"}, &client.CallOptions{Meta: mcp.Object{"vendor/x": mcp.JSON(`1.0`)}})
	if err != nil || !strings.Contains(meta, `"vendor/x":1.0`) || header.Get("Authorization") != "Bearer x" {
		t.Errorf("%s, %v, %v", meta, slices.Sorted(maps.Keys(header)), err)
	}
}
