package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

func TestPanicsAreOneFailedCallLoggedWithItsID_TK2_R43(t *testing.T) {
	var none map[string]int
	var nobody *mcp.Text
	panics := map[string]func(){
		"a value":         func() { panic("oh no") },
		"an error":        func() { panic(errors.New("oh no")) },
		"nil":             func() { panic(nil) },
		"a nil map":       func() { none["a"] = 1 },
		"a nil pointer":   func() { _ = nobody.Text },
		"an index":        func() { _ = make([]int, 0)[len(none)] },
		"a wrapped error": func() { panic(fmt.Errorf("%w", jsonrpc.Errorf(1, "x"))) },
	}
	for name, f := range panics {
		t.Run(name, func(t *testing.T) {
			log := new(logged)
			s := newServer(&server.Options{Logger: log.logger()})
			server.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, *server.Call, struct{}) (string, error) { f(); return "", nil })
			s.AddTool(mcp.Tool{Name: "raw"}, func(context.Context, *server.Call) (mcp.Result, error) { f(); return mcp.Result{}, nil })
			s.AddResource(mcp.Resource{URI: "u:1", Name: "r"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
				f()
				return nil, nil
			})
			s.AddPrompt(mcp.Prompt{Name: "p"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
				f()
				return nil, nil
			})
			s.CompletePrompt("p", "a", func(context.Context, *server.Call, string, map[string]string) ([]string, error) { f(); return nil, nil })
			s.Method("x/y", func(context.Context, *server.Call) (mcp.Result, error) { f(); return mcp.Result{}, nil })
			for method, params := range map[string]string{
				mcp.MethodCallTool:     `{"name":"t"}`,
				mcp.MethodReadResource: `{"uri":"u:1"}`,
				mcp.MethodGetPrompt:    `{"name":"p"}`,
				mcp.MethodComplete:     `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
				"x/y":                  `{}`,
			} {
				_, err := handle(t, s, method, params)
				log.hasIncident(t, err, "method="+method)
			}
			_, err := handle(t, s, mcp.MethodCallTool, `{"name":"raw"}`)
			log.hasIncident(t, err, "server_test.TestPanics") // the stack
			if _, err := handle(t, s, mcp.MethodListTools, `{}`); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestErrorsThatTheClientIsNotToldAreLogged_SEC118(t *testing.T) {
	log := new(logged)
	s := newServer(&server.Options{Logger: log.logger()})
	secret := errors.New("the password is swordfish")
	s.AddResource(mcp.Resource{URI: "u:1", Name: "r"}, func(context.Context, *server.Call, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, secret
	})
	s.AddPrompt(mcp.Prompt{Name: "p"}, func(context.Context, *server.Call, map[string]string) (*mcp.GetPromptResult, error) {
		return nil, fmt.Errorf("reading: %w", secret)
	})
	s.CompletePrompt("p", "a", func(context.Context, *server.Call, string, map[string]string) ([]string, error) { return nil, secret })
	s.Method("x/y", func(context.Context, *server.Call) (mcp.Result, error) { return mcp.Result{}, secret })
	for method, params := range map[string]string{
		mcp.MethodReadResource: `{"uri":"u:1"}`,
		mcp.MethodGetPrompt:    `{"name":"p"}`,
		mcp.MethodComplete:     `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
		"x/y":                  `{}`,
	} {
		_, err := handle(t, s, method, params)
		log.hasIncident(t, err, "swordfish")
		if !errors.Is(err, secret) {
			t.Errorf("%s: callers in this process get %v", method, err)
		}
	}
}

func TestCallTellsOfTheRequestAndWhoMadeIt(t *testing.T) {
	meta := mcp.Metadata{
		Client:       []byte(`{"name":"c","version":"2","x":1}`),
		Capabilities: []byte(`{"sampling":{},"elicitation":{"url":{}}}`),
		Principal:    mcp.Principal{Issuer: "i", Subject: "s"},
	}
	within(t, mcp.NoCaller{}, meta, func(_ context.Context, call *server.Call) {
		if got := call.Client(); got.Name != "c" || got.Version != "2" || string(got.Extra["x"]) != "1" {
			t.Errorf("the client is %+v", got)
		}
		if got := call.Capabilities(); got.Sampling == nil || got.Forms() || !got.URLs() || got.Roots != nil {
			t.Errorf("the capabilities are %+v", got)
		}
		if got := call.Principal(); got != meta.Principal {
			t.Errorf("the principal is %+v", got)
		}
		if got := call.Request().ID.String(); got != "7" {
			t.Errorf("the id is %q", got)
		}
		if got := string(call.Arguments()); got != "{}" {
			t.Errorf("the arguments are %s", got)
		}
	})
	for _, raw := range []string{`null`, `[]`, `{"name":1}`, ``} {
		within(t, mcp.NoCaller{}, mcp.Metadata{Client: []byte(raw), Capabilities: []byte(raw)}, func(_ context.Context, call *server.Call) {
			if got := call.Client(); got.Name != "" {
				t.Errorf("%s: the client is %+v", raw, got)
			}
			if got := call.Capabilities(); raw != `{"name":1}` && !cmp.Equal(got, mcp.ClientCapabilitySet{}) {
				t.Errorf("%s: the capabilities are %+v", raw, got)
			}
		})
	}
}

func TestMetaOfTheRequest(t *testing.T) {
	s := newServer(nil)
	s.Method("x/y", func(_ context.Context, call *server.Call) (mcp.Result, error) {
		return mcp.NewResult(mcp.Object{"a": call.Meta("com.example/a"), "none": call.Meta("b")})
	})
	got, err := handle(t, s, "x/y", `{"_meta":{"com.example/a":{"n":1.0}}}`)
	if err != nil || !strings.HasPrefix(got, `{"a":{"n":1.0},"none":null,`) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = handle(t, s, "x/y", `{}`); err != nil || !strings.HasPrefix(got, `{"a":null,`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestProgressGoesToWhoAsksForIt_B139(t *testing.T) {
	token, _ := jsonrpc.RawID([]byte(`"\u0041"`))
	for _, test := range []struct {
		meta mcp.Metadata
		want []string
	}{
		{mcp.Metadata{}, nil},
		{mcp.Metadata{ProgressToken: token}, []string{
			`notifications/progress {"progressToken":"\u0041","progress":0.5,"total":2,"message":"m"}`,
			`notifications/progress {"progressToken":"\u0041","progress":1}`,
		}},
	} {
		var c client
		within(t, &c, test.meta, func(ctx context.Context, call *server.Call) {
			if err := errors.Join(call.Progress(ctx, 0.5, 2, "m"), call.Progress(ctx, 1, 0, "")); err != nil {
				t.Error(err)
			}
		})
		if diff := cmp.Diff(test.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNotificationsOfTheServersOwn(t *testing.T) {
	var c client
	within(t, &c, mcp.Metadata{}, func(ctx context.Context, call *server.Call) {
		if err := errors.Join(call.Notify(ctx, "x/a", nil), call.Notify(ctx, "x/b", mcp.Object{"k": mcp.JSON(`"\u0041"`)}), call.Release(ctx)); err != nil {
			t.Error(err)
		}
		if err := call.Notify(ctx, "x/c", make(chan int)); err == nil {
			t.Error("what JSON does not have was sent")
		}
		for _, params := range []any{5, []int{1}, mcp.JSON("null")} {
			if err := call.Notify(ctx, "x/d", params); err == nil {
				t.Errorf("%v was sent as params", params)
			}
		}
	})
	if diff := cmp.Diff([]string{"x/a ", `x/b {"k":"\u0041"}`}, c.got); diff != "" {
		t.Error(diff)
	}
}

func TestACallThatIsOverReachesNobody_B059(t *testing.T) {
	var c client
	var kept *server.Call
	within(t, &c, mcp.Metadata{LogLevel: "debug", Capabilities: []byte(`{"roots":{}}`)}, func(_ context.Context, call *server.Call) { kept = call })
	if err := kept.Log(t.Context(), "error", "", "x"); err == nil {
		t.Error("a message was logged")
	}
	if err := kept.Release(t.Context()); err == nil {
		t.Error("it was released")
	}
	if _, err := kept.Roots(t.Context()); err == nil || len(c.got)+len(c.asked) > 0 {
		t.Errorf("the client got %q and was asked %q", c.got, c.asked)
	}
}
