package demo_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/demo"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/google/go-cmp/cmp"
)

// names returns what the entries of a list are called, in their order.
func names(t *testing.T, h mcp.Handler, method, member, key string) []string {
	t.Helper()
	result, err := h.Handle(t.Context(), &mcp.Request{Method: method}, mcp.NoCaller{})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := result.Lookup(member)
	var all []string
	for _, item := range jsonrpc.Elements(raw) {
		entry := jsonrpc.Trusted(item)
		name, _ := entry.LookupString(key)
		all = append(all, name)
	}
	return all
}

func TestToggleChangesTheLists(t *testing.T) {
	for _, tt := range []struct{ what, method, member, key, want string }{
		{"tool", mcp.MethodListTools, "tools", "name", "add ask big crash echo fail image log order roots sample slow structured toggle"},
		{"resource", mcp.MethodListResources, "resources", "uri", "demo://clock demo://picture demo://text"},
		{"prompt", mcp.MethodListPrompts, "prompts", "name", "greeting"},
		{"", mcp.MethodListResourceTemplates, "resourceTemplates", "uriTemplate", "demo://echo/{text}"},
	} {
		t.Run(tt.member, func(t *testing.T) {
			server := demo.New("")
			for _, extra := range []int{0, 1, 0} {
				got := names(t, server, tt.method, tt.member, tt.key)
				i := slices.IndexFunc(got, func(name string) bool { return strings.HasSuffix(name, "extra") })
				if i >= 0 {
					got = slices.Delete(got, i, i+1)
				}
				if strings.Join(got, " ") != tt.want || tt.what != "" && (i >= 0) != (extra == 1) {
					t.Errorf("got %s and an extra one at %d, want %s and %d", got, i, tt.want, extra)
				}
				call(t, server, "toggle", fmt.Sprintf(`{"what":%q}`, tt.what))
			}
		})
	}
}

func TestExtraFeaturesWork(t *testing.T) {
	server := demo.New("")
	for _, tt := range []struct{ what, method, params, want string }{
		{`{}`, mcp.MethodReadResource, `{"uri":"demo://extra"}`, `{"contents":[{"uri":"demo://extra","mimeType":"text/plain","text":"I am extra."}]}`},
		{`{"what":"tool"}`, mcp.MethodCallTool, `{"name":"extra"}`, textResult("I am extra.")},
		{`{"what":"prompt"}`, mcp.MethodGetPrompt, `{"name":"extra"}`, `{"description":"An extra prompt","messages":[{"role":"user","content":{"type":"text","text":"Say something extra."}}]}`},
	} {
		call(t, server, "toggle", tt.what)
		if got := handle(t, server, tt.method, tt.params); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestResources(t *testing.T) {
	for _, tt := range []struct{ uri, want string }{
		{"demo://text", `"text":"A text that never changes.\nGrüße, 世界, 👋.\n"`},
		{"demo://picture", `"blob":"iVBORw0KGgo`},
		{"demo://echo/hello%20world", `"text":"hello world"`},
		{"demo://echo/", "error -32002"},
		{"demo://echo/a/b", "error -32002"},
		{"demo://echo/%zz", "error -32002"},
	} {
		t.Run(tt.uri, func(t *testing.T) {
			if got := handle(t, demo.New(""), mcp.MethodReadResource, fmt.Sprintf(`{"uri":%q}`, tt.uri)); !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestPrompt(t *testing.T) {
	for _, tt := range []struct{ params, want string }{
		{`{"name":"greeting","arguments":{"name":"Ada"}}`, `{"description":"A greeting of Ada","messages":[{"role":"user","content":{"type":"text","text":"Greet Ada warmly, in one sentence."}}]}`},
		{`{"name":"greeting"}`, "error -32602: Invalid params: the argument \"name\" is missing"},
		{`{"name":"greeting","arguments":[]}`, "error -32602: Invalid params: arguments must be an object of strings"},
	} {
		if got := handle(t, demo.New(""), mcp.MethodGetPrompt, tt.params); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	const greeting = `"ref":{"type":"ref/prompt","name":"greeting"}`
	for _, tt := range []struct{ params, want string }{
		{`{` + greeting + `,"argument":{"name":"name","value":"d"}}`, `{"completion":{"values":["Dennis","Donald"],"total":2,"hasMore":false}}`},
		{`{` + greeting + `,"argument":{"name":"name","value":"x"}}`, `{"completion":{"values":[],"total":0,"hasMore":false}}`},
		{`{"ref":{"type":"ref/resource","uri":"demo://echo/{text}"},"argument":{"name":"text","value":"hello"}}`, `{"completion":{"values":["hello","hello%20world"],"total":2,"hasMore":false}}`},
		{`{` + greeting + `,"argument":{"name":"mood","value":"x"}}`, `{"completion":{"values":[],"total":0,"hasMore":false}}`},
		{`{"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"name","value":"x"}}`, "error -32602: Invalid params: nothing to complete has that name"},
		{`{` + greeting + `,"argument":{"name":"name","value":7}}`, "error -32602: Invalid params: /argument/value does not fit: it is of type number"},
	} {
		if got := handle(t, demo.New(""), mcp.MethodComplete, tt.params); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

const clockUpdated = `notifications/resources/updated {"uri":"demo://clock"}`

func TestListenTellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := demo.New(""), &client{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan string)
		go func() {
			ended <- shown(s.Handle(ctx, request(t, mcp.MethodListen, `{"notifications":{"toolsListChanged":true,
				"resourcesListChanged":true,"resourceSubscriptions":["demo://clock","demo://none"],"session":true}}`), c))
		}()
		expect := func(want ...string) {
			t.Helper()
			time.Sleep(server.DefaultCoalesce)
			synctest.Wait()
			if diff := cmp.Diff(want, c.heard()); diff != "" {
				t.Error(diff)
			}
		}
		expect(`notifications/subscriptions/acknowledged {"notifications":{"toolsListChanged":true,` +
			`"resourcesListChanged":true,"resourceSubscriptions":["demo://clock"]}}`)

		before := handle(t, s, mcp.MethodReadResource, `{"uri":"demo://clock"}`)
		for range 2 {
			time.Sleep(3 * time.Second)
			expect(clockUpdated)
		}
		if now := handle(t, s, mcp.MethodReadResource, `{"uri":"demo://clock"}`); now == before {
			t.Errorf("the clock stands still at %s", now)
		}
		call(t, s, "toggle", `{}`)
		expect("notifications/resources/list_changed")
		call(t, s, "toggle", `{"what":"prompt"}`)
		call(t, s, "toggle", `{"what":"tool"}`)
		expect("notifications/tools/list_changed")

		cancel()
		if got := <-ended; got != "{}" {
			t.Errorf("ended with %s", got)
		}
	})
}

func TestListenWithoutTheClockIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := demo.New("").Handle(ctx, request(t, mcp.MethodListen, `{"notifications":{}}`), c); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{`notifications/subscriptions/acknowledged {"notifications":{}}`}, c.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestServesBothEras(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel() // the clock takes its time
			edge := connect(t, demo.New(""), era)
			info := edge.Server()
			if got := string(mcp.ServerInfo(&info.Discover)); !strings.Contains(got, demo.Name) || info.Era != era {
				t.Errorf("%v server %s", info.Era, got)
			}
			if got := call(t, edge, "echo", `{"text":"hi"}`); !strings.Contains(got, `"text":"hi"`) {
				t.Errorf("got %s", got)
			}
			listens(t, edge)
		})
	}
}

// listens checks that the clock can be subscribed to over an edge.
func listens(t *testing.T, edge mcp.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := hears{make(chan string, 8)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The end is ours, however it is spelt.
		_, _ = edge.Handle(ctx, request(t, mcp.MethodListen, `{"notifications":{"resourceSubscriptions":["demo://clock"]}}`), c)
	}()
	for _, want := range []string{mcp.NotificationAcknowledged, mcp.NotificationResourceUpdated} {
		select {
		case got := <-c.methods:
			if got != want {
				t.Errorf("heard %s, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("heard no %s", want)
		}
	}
	cancel()
	<-ended
}

type hears struct{ methods chan string }

func (h hears) Notify(_ context.Context, n *mcp.Notification) error {
	h.methods <- n.Method
	return nil
}

func (h hears) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}

// connect serves a handler over pipes and dials it.
func connect(t *testing.T, h mcp.Handler, era mcp.Era) *transport.Conn {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	closeAll := func() error {
		_ = fromClient.Close()
		_ = toServer.Close()
		_ = fromServer.Close()
		return toClient.Close()
	}
	served := make(chan error, 1)
	go func() {
		link := transport.NewLineLink(fromClient, toClient, closeAll, transport.LineOptions{})
		served <- transport.Serve(context.Background(), link, h, transport.ServeOptions{})
	}()
	link := transport.NewLineLink(fromServer, toServer, closeAll, transport.LineOptions{})
	edge, err := transport.Dial(t.Context(), link, transport.DialOptions{Era: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := edge.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return edge
}
