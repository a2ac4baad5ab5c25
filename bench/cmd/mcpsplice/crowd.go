package main

import (
	"context"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/crowd"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// A greeter is the server behind a crowd. It remembers every call.
type greeter struct {
	mu    sync.Mutex
	seen  map[string]struct{} // guarded by mu, like tally
	tally crowd.Tally
}

type named struct {
	Name string `json:"name"`
}

// serveCrowd serves legacy clients on stdin and stdout.
func serveCrowd() error {
	g := &greeter{seen: make(map[string]struct{})}
	s := server.New(mcp.Implementation{Name: "crowd", Version: "1.0.0"}, nil)
	server.AddTool(s, mcp.Tool{Name: crowd.ToolName, Description: "Says who calls."}, g.greet)
	server.AddTool(s, mcp.Tool{Name: crowd.TallyName, Description: "Says what was executed."},
		func(context.Context, *server.Call, struct{}) (crowd.Tally, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.tally, nil
		})
	return stdio.Serve(context.Background(), s, &stdio.ServeOptions{ServeOptions: transport.ServeOptions{Era: mcp.Legacy, MaxInFlight: 1024}})
}

func (g *greeter) count(change func(*crowd.Tally)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.tally)
}

func (g *greeter) greet(ctx context.Context, call *server.Call, in crowd.Arguments) (string, error) {
	g.count(func(t *crowd.Tally) {
		t.Executed++
		if _, again := g.seen[in.Who]; again {
			t.Twice++
		}
		g.seen[in.Who] = struct{}{}
	})
	if in.Wait > 0 {
		select {
		case <-time.After(time.Duration(in.Wait) * time.Millisecond):
		case <-ctx.Done():
			g.count(func(t *crowd.Tally) { t.Cancelled++ })
			return "", ctx.Err()
		}
	}
	if !in.Ask {
		return in.Who, nil
	}
	who, action, err := server.Elicit[named](ctx, call, in.Who)
	if ctx.Err() != nil {
		return "", err
	}
	if err != nil {
		return in.Who + crowd.Refused, nil
	}
	if action == mcp.Accept && who.Name != in.Who {
		g.count(func(t *crowd.Tally) { t.Crossed++ })
	}
	return in.Who + " " + string(action), nil
}
