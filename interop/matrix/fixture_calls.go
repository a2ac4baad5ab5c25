package main

import (
	"context"
	"errors"
	"fmt"

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
		for _, level := range levels {
			if err := c.Log(ctx, level, "fixture", "at "+string(level)); err != nil {
				return "", err
			}
		}
		return "logged", nil
	})
	// Say has something happen, as await knows it.
	tool(f, "say", func(_ context.Context, _ *server.Call, in keyed) (string, error) {
		f.events.happen(in.Key)
		return "said", nil
	})
	tool(f, "await", func(ctx context.Context, _ *server.Call, in keyed) (string, error) {
		return "happened", f.events.await(ctx, in.Key)
	})
	// Hold returns when it is cancelled.
	tool(f, "hold", func(ctx context.Context, _ *server.Call, in keyed) (string, error) {
		f.events.happen("held " + in.Key)
		<-ctx.Done()
		f.events.happen("released " + in.Key)
		return "", ctx.Err()
	})
	tool(f, "count-asking", f.countAsking)
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

// countAsking tells of its progress before it asks, while the question is open, and
// after that.
func (f *fixture) countAsking(ctx context.Context, c *server.Call, _ none) (string, error) {
	step := func(n int) error { return c.Progress(ctx, float64(n), 3, fmt.Sprintf("step %d", n)) }
	if err := step(1); err != nil {
		return "", err
	}
	second := make(chan error, 1)
	go func() {
		err := f.events.await(ctx, askedEvent)
		if err == nil {
			err = step(2)
		}
		f.events.happen(toldEvent)
		second <- err
	}()
	text, err := sample(ctx, c, whileAsked)
	if err := errors.Join(err, <-second); err != nil {
		return "", err
	}
	return text, step(3)
}

// What the tool count-asking asks, and how the client and it know of each other.
const (
	whileAsked = "while you are asked"
	askedEvent = "asked"
	toldEvent  = "told"
)

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
