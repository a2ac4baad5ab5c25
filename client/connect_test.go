package client_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A lame Handler refuses everything.
type lame struct{}

func (lame) Handle(context.Context, *mcp.Request, mcp.Caller) (mcp.Result, error) {
	return mcp.Result{}, errDial
}

func TestErrorOfConnectingNamesTheServerOnce(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + closed.Addr().String() + "/mcp"
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]client.Target{
		address:                    client.URL(address),
		"no-such-program":          client.Command("no-such-program"),
		"a server in this process": client.Handler(lame{}),
	} {
		_, err := client.Connect(t.Context(), target, nil)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Count(err.Error(), "connecting to") > 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
