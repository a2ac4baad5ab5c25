package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// TestMain lets the test binary be the agent's server.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_SERVER") == "" {
		m.Run()
		return
	}
	s := server.New(mcp.Implementation{Name: "kitchen", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "cook", Description: "Cooks a dish."},
		func(_ context.Context, _ *server.Call, in struct {
			Dish string `json:"dish"`
		}) (string, error) {
			if in.Dish == "" {
				return "", errors.New("there is no recipe for that")
			}
			return in.Dish + " is ready", nil
		})
	server.AddTool(s, mcp.Tool{Name: "wash", Description: "Washes the dishes."},
		func(context.Context, *server.Call, struct{}) (string, error) { return "all is clean", nil })
	server.AddTool(s, mcp.Tool{Name: "burn", Description: "Burns the kitchen down."},
		func(context.Context, *server.Call, struct{}) (string, error) {
			os.Exit(3)
			return "", nil
		})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		os.Exit(1)
	}
}

// TestAgent calls tools one after the other, one of which is its server's end.
func TestAgent(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := targetOf([]string{exe, "-unused"}).(*client.CommandTarget)
	target.Command.Env = map[string]string{"BE_THE_SERVER": "1", "GORACE": "atexit_sleep_ms=0", "GOCOVERDIR": t.TempDir()}
	decisions := strings.Join([]string{`cook {"dish":"soup"}`, `cook {"dish":""}`, `burn {}`, `cook {"dish":"fish"}`, `wash`, `dance {}`, `cook [`}, "\n")
	var out strings.Builder
	if err := run(t.Context(), target, strings.NewReader(decisions), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"cook: Cooks a dish.\n", "soup is ready\n", "there is no recipe for that\n",
		"maybe executed: the server exited: ", "fish is ready\n", "all is clean\n", "error: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "error:"); n != 3 {
		t.Errorf("%d errors:\n%s", n, out.String())
	}
}

func TestTargets(t *testing.T) {
	for arg, want := range map[string]string{"http://127.0.0.1:1/mcp": "http://127.0.0.1:1/mcp", "server": "server"} {
		if got := targetOf([]string{arg, "secret"}).String(); got != want {
			t.Errorf("%s is %s", arg, got)
		}
	}
}
