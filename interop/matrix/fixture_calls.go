package main

import (
	"context"
	"fmt"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// keyed are the arguments of tools whose calls have to do with each other.
type keyed struct {
	Key string `json:"key"`
}

// addCalls adds the tools that take their time or say something meanwhile.
func (f *fixture) addCalls() {
	tool(f, "count", count)
	tool(f, "log", func(ctx context.Context, c *server.Call, _ none) (string, error) {
		for _, level := range []mcp.Level{"debug", "info", "warning", "error"} {
			if err := c.Log(ctx, level, "fixture", "at "+string(level)); err != nil {
				return "", err
			}
		}
		return "logged", nil
	})
	// Hold returns when it is cancelled. Held tells that one has begun, and
	// released that it was cancelled.
	tool(f, "hold", func(ctx context.Context, _ *server.Call, in keyed) (string, error) {
		f.events.happen("held " + in.Key)
		<-ctx.Done()
		f.events.happen("released " + in.Key)
		return "", ctx.Err()
	})
	for _, name := range []string{"held", "released"} {
		tool(f, name, func(ctx context.Context, _ *server.Call, in keyed) (string, error) {
			return name, f.events.await(ctx, name+" "+in.Key)
		})
	}
	tool(f, "meet", f.meet)
	tool(f, "touch", func(_ context.Context, _ *server.Call, in struct {
		URI string `json:"uri"`
	}) (string, error) {
		f.Changed(in.URI)
		return "touched", nil
	})
	tool(f, "grow", func(context.Context, *server.Call, none) (string, error) {
		name := fmt.Sprintf("grown-%d", f.grown.Add(1))
		tool(f, name, func(context.Context, *server.Call, none) (string, error) { return name, nil })
		return name, nil
	})
}

// count tells of its progress.
func count(ctx context.Context, c *server.Call, in struct {
	Steps int `json:"steps"`
},
) (string, error) {
	for step := 1; step <= in.Steps; step++ {
		if err := c.Progress(ctx, float64(step), float64(in.Steps), fmt.Sprintf("step %d", step)); err != nil {
			return "", err
		}
	}
	return "counted", nil
}

// meet returns who called when another one is there as well, and has told of
// its progress under the name that it was given.
func (f *fixture) meet(ctx context.Context, c *server.Call, in struct {
	Key  string `json:"key"`
	Name string `json:"name"`
},
) (string, error) {
	if err := f.events.meet(ctx, in.Key); err != nil {
		return "", err
	}
	return in.Key + " " + in.Name, c.Progress(ctx, 1, 1, in.Key+" "+in.Name)
}
