package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/google/go-cmp/cmp"
)

// patience bounds what only a hang would miss.
const patience = 60 * time.Second

// newServer returns a server of a name that asks, reports progress, wants a header, and
// has a resource that changes.
func newServer(name string) *server.Server {
	s := server.New(mcp.Implementation{Name: name, Version: "1"}, nil)
	type guest struct {
		Name string `json:"name"`
	}
	server.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		who, action, err := server.Elicit[guest](ctx, call, "Who asks "+name+"?")
		return fmt.Sprintf("%s %s of %s at %s", action, who.Name, call.Request().Meta.Revision.Era(), name), err
	})
	server.AddTool(s, mcp.Tool{Name: "count"}, func(ctx context.Context, call *server.Call, in struct{ To int }) (int, error) {
		for i := range in.To {
			if err := call.Progress(ctx, float64(i+1), float64(in.To), name); err != nil {
				return 0, err
			}
		}
		return in.To, nil
	})
	s.AddTool(mcp.Tool{
		Name:        "where",
		InputSchema: mcp.JSON(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}, func(_ context.Context, call *server.Call) (mcp.Result, error) {
		return mcp.NewResult(mcp.CallToolResult{Content: mcp.Contents{&mcp.Text{Text: string(call.Arguments())}}})
	})
	server.AddTool(s, mcp.Tool{Name: "roots"}, func(ctx context.Context, call *server.Call, _ struct{}) (string, error) {
		roots, err := call.Roots(ctx)
		if err != nil || len(roots) == 0 {
			return "", err
		}
		return roots[0].URI, nil
	})
	uri := name + ":1"
	s.AddResource(mcp.Resource{URI: uri, Name: "one"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return server.TextContents("text/plain", "of "+name), nil
	})
	server.AddTool(s, mcp.Tool{Name: "touch"}, func(context.Context, *server.Call, struct{}) (string, error) {
		s.Changed(uri)
		return "touched", nil
	})
	s.AddPrompt(mcp.Prompt{Name: "greet"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{server.UserText("Hello from " + name)}}, nil
	})
	return s
}

// serveChild is the legacy server that speaks stdio.
func serveChild() int {
	opts := &stdio.ServeOptions{ServeOptions: transport.ServeOptions{Era: mcp.Legacy}}
	if err := stdio.Serve(context.Background(), newServer("old"), opts); err != nil {
		return 1
	}
	return 0
}

// serveAt serves a handler over HTTP until the test ends, and returns where.
func serveAt(t *testing.T, h mcp.Handler, era mcp.Era) string {
	t.Helper()
	listener, err := streamable.Listen("127.0.0.1:0", h, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Era: era}, Drain: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return listener.URL()
}

func newPool(t *testing.T, dial func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error)) *transport.Pool {
	t.Helper()
	pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
		return dial(ctx, transport.DialOptions{Client: meta.Client, Capabilities: meta.Capabilities, Prefer: meta.Revision.Era()})
	}, transport.PoolOptions{})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("closing a pool: %v", err)
		}
	})
	return pool
}

// edges returns where a gateway is served, over a child of legacy MCP and an HTTP server
// of modern MCP.
func edges(t *testing.T) string {
	t.Helper()
	web := serveAt(t, newServer("new"), mcp.Modern)
	g := newGateway(t, unhurried, map[string]mcp.Handler{
		"old": newPool(t, func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
			command := stdio.Command{Path: os.Args[0], Env: map[string]string{childVar: "1"}}
			return stdio.Dial(ctx, command, &stdio.DialOptions{DialOptions: opts})
		}),
		"new": newPool(t, func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
			return streamable.Dial(ctx, web, &streamable.DialOptions{DialOptions: opts})
		}),
	})
	return serveAt(t, g, mcp.NoEra)
}

// connect returns a client of an era whose user has a name.
func connect(t *testing.T, url string, era mcp.Era, user string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.URL(url), &client.Options{
		Info: mcp.Implementation{Name: user, Version: "1"}, Era: era, Timeout: patience,
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///" + user}}, nil },
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.Accept, Content: mcp.JSON(fmt.Sprintf(`{"name":%q}`, user))}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func textOf(result *mcp.CallToolResult, err error) string {
	if err != nil {
		return err.Error()
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.Text); ok {
			return text.Text
		}
	}
	return fmt.Sprintf("%+v", result)
}

var allTools = []string{
	"new__ask", "new__count", "new__roots", "new__touch", "new__where",
	"old__ask", "old__count", "old__roots", "old__touch", "old__where",
}

// TestServersOfBothErasBehindOneEndpoint: clients of both eras list, call, are asked,
// read and subscribe across real edges.
func TestServersOfBothErasBehindOneEndpoint_B151_B152(t *testing.T) {
	url := edges(t)
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			c := connect(t, url, era, "Ada")
			listsEverything(t, c)
			asksConcurrently(t, url, era)
			tellsProgress(t, c)
			wantsHeaders(t, c)
			readsAndSubscribes(t, c)
			if _, err := c.CallTool(t.Context(), "old__none", nil, nil); err == nil || err.Error() != "Unknown tool: old__none (-32602)" {
				t.Errorf("an unknown tool: %v", err)
			}
		})
	}
}

// listsEverything waits for whoever is late, as a client that listens would not have to.
func listsEverything(t *testing.T, c *client.Client) {
	t.Helper()
	var names []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && len(names) < len(allTools); {
		names = nil
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
	}
	if diff := cmp.Diff(allTools, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, backend := range []string{"old", "new"} {
		prompt, err := c.GetPrompt(t.Context(), backend+"__greet", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := prompt.Messages[0].Content.(*mcp.Text); !ok || text.Text != "Hello from "+backend {
			t.Errorf("the prompt of %s says %+v", backend, prompt.Messages[0].Content)
		}
	}
}

// asksConcurrently has two clients be asked by both servers in mid-call, at once.
func asksConcurrently(t *testing.T, url string, era mcp.Era) {
	t.Helper()
	var wg sync.WaitGroup
	for _, user := range []string{"Bob", "Eve"} {
		c := connect(t, url, era, user)
		for backend, served := range map[string]mcp.Era{"old": mcp.Legacy, "new": mcp.Modern} {
			wg.Go(func() {
				want := fmt.Sprintf("accept %s of %s at %s", user, served, backend)
				if got := textOf(c.CallTool(t.Context(), backend+"__ask", nil, nil)); got != want {
					t.Errorf("%s is answered %q, want %q", user, got, want)
				}
				if got := textOf(c.CallTool(t.Context(), backend+"__roots", nil, nil)); got != "file:///"+user {
					t.Errorf("%s is asked for the roots, and %s gets %q", user, backend, got)
				}
			})
		}
	}
	wg.Wait()
}

func tellsProgress(t *testing.T, c *client.Client) {
	t.Helper()
	for _, backend := range []string{"old", "new"} {
		var got []string
		_, err := c.CallTool(t.Context(), backend+"__count", map[string]int{"To": 3}, &client.CallOptions{
			Progress: func(p *mcp.ProgressParams) { got = append(got, fmt.Sprint(p.Message, p.Progress)) },
		})
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{backend + "1", backend + "2", backend + "3"}, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	}
}

// wantsHeaders: the modern server refuses the call of a tool without the header that its
// list asks for, and so does the listening edge before the gateway.
func wantsHeaders(t *testing.T, c *client.Client) {
	t.Helper()
	for _, backend := range []string{"old", "new"} {
		if got := textOf(c.CallTool(t.Context(), backend+"__where", map[string]string{"region": "söuth"}, nil)); got != `{"region":"söuth"}` {
			t.Errorf("%s is called with %s", backend, got)
		}
	}
}

func readsAndSubscribes(t *testing.T, c *client.Client) {
	t.Helper()
	sub, err := c.Listen(t.Context(), mcp.Filter{ResourceSubscriptions: []string{"old:1", "new:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if granted := sub.Filter().ResourceSubscriptions; len(granted) != 2 {
		t.Errorf("acknowledged: %q", granted)
	}
	for _, backend := range []string{"old", "new"} {
		read, err := c.ReadResource(t.Context(), backend+":1", nil)
		if err != nil || read.Contents[0].Text == nil || *read.Contents[0].Text != "of "+backend {
			t.Errorf("%s:1 is %+v, %v", backend, read, err)
		}
		if got := textOf(c.CallTool(t.Context(), backend+"__touch", nil, nil)); got != "touched" {
			t.Errorf("touch: %s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		event, err := sub.Next(ctx)
		cancel()
		if err != nil || event.Method != mcp.NotificationResourceUpdated || event.URI() != backend+":1" {
			t.Errorf("after a change of %s: %+v, %v", backend, event, err)
		}
	}
}

// TestRealServerThatDies: the calls of the other one go on, its tools stay listed, and
// it is started again by the next call.
func TestRealServerThatDies_B149_B154(t *testing.T) {
	var mu sync.Mutex
	var children []*stdio.Conn
	g := newGateway(t, unhurried, map[string]mcp.Handler{
		"old": newPool(t, func(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
			c, err := stdio.Dial(ctx, stdio.Command{Path: os.Args[0], Env: map[string]string{childVar: "1"}}, &stdio.DialOptions{DialOptions: opts})
			if err != nil {
				return nil, err
			}
			mu.Lock()
			children = append(children, c)
			mu.Unlock()
			return c, nil
		}),
		"good": newServer("good"),
	})
	c, err := client.Connect(t.Context(), client.Handler(g), &client.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const params = `{"To":1}`
	for range 3 {
		if _, err := c.CallTool(t.Context(), "old__count", mcp.JSON(params), nil); err != nil {
			if e, ok := errors.AsType[*mcp.CallError](err); !ok || e.Outcome != mcp.NotSent {
				t.Errorf("a call of the child: %v", err)
			}
		}
		mu.Lock()
		newest := children[len(children)-1]
		mu.Unlock()
		if err := newest.Close(); err != nil {
			t.Errorf("ending the child: %v", err)
		}
		if _, err := c.CallTool(t.Context(), "good__count", mcp.JSON(params), nil); err != nil {
			t.Errorf("a call of the other server: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(children) != 3 {
		t.Errorf("the child was started %d times", len(children))
	}
}
