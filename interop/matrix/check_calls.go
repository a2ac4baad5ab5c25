package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// collected are texts that come while a call runs.
type collected struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

func (c *collected) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

func (c *collected) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.texts, ", ")
}

func (c *collected) progress(p *mcp.ProgressParams) {
	total := -1.0
	if p.Total != nil {
		total = *p.Total
	}
	c.add(fmt.Sprintf("%v of %v: %s", p.Progress, total, p.Message))
}

func checkProgress(ctx context.Context, c *cell) error {
	const steps = 30
	var got collected
	_, err := c.callWith(ctx, "count", map[string]any{"steps": steps}, &client.CallOptions{Progress: got.progress})
	if err != nil {
		return err
	}
	var want collected
	for step := 1; step <= steps; step++ {
		want.add(fmt.Sprintf("%d of %d: step %d", step, steps, step))
	}
	return differ("the progress", got.String(), want.String())
}

// checkProgressAround: what is told while a question is open, to a modern client
// that has no call in flight then, is not lost.
func checkProgressAround(ctx context.Context, c *cell) error {
	c.user.whenAsked(whileAsked, func(ctx context.Context) error {
		if _, err := c.call(ctx, "say", keyed{askedEvent}); err != nil {
			return err
		}
		_, err := c.call(ctx, "await", keyed{toldEvent})
		return err
	})
	var got collected
	text, err := c.callWith(ctx, "count-asking", nil, &client.CallOptions{Progress: got.progress})
	if err != nil {
		return err
	}
	return errors.Join(
		differ("the progress", got.String(), "1 of 3: step 1, 2 of 3: step 2, 3 of 3: step 3"),
		differ("what the server was told", text, "re: "+whileAsked+" by "+model),
	)
}

// checkLog has a server log that knows what its client wants, and one that does not
// care.
func checkLog(ctx context.Context, c *cell) error {
	for _, tool := range []string{"log", chatterTool} {
		for _, want := range []struct {
			level mcp.Level
			heard string
		}{
			{"warning", `fixture warning "at warning", fixture error "at error"`},
			{"error", `fixture error "at error"`},
			{"", ""},
			{"info", `fixture info "at info", fixture warning "at warning", fixture error "at error"`},
		} {
			var got collected
			c.client.logs()
			_, err := c.callWith(ctx, tool, nil, &client.CallOptions{
				LogLevel: want.level,
				Log:      func(p *mcp.LogParams) { got.add(fmt.Sprintf("%s %s %s", p.Logger, p.Level, p.Data)) },
			})
			if err != nil {
				return err
			}
			if err := errors.Join(
				differ(fmt.Sprintf("what %s logs at level %q", tool, want.level), got.String(), want.heard),
				c.sentNoMore(tool, want.level),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

// sentNoMore asserts that a modern client has been sent nothing that it does not want:
// it would leave that out itself. The level of a legacy session outlives its calls.
func (c *cell) sentNoMore(tool string, wanted mcp.Level) error {
	if c.clientSide.era != mcp.Modern {
		return nil
	}
	for _, level := range c.client.logs() {
		if !wanted.Includes(mcp.Level(level)) {
			return fmt.Errorf("what %s logs at level %s came on the wire, with level %q wanted", tool, level, wanted)
		}
	}
	return nil
}

func checkCancel(ctx context.Context, c *cell) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(cancelled, "hold", keyed{"it"})
		ended <- err
	}()
	_, err := c.call(ctx, "await", keyed{"held it"})
	cancel()
	ending := <-ended
	if err != nil {
		return err
	}
	if failure, ok := errors.AsType[*mcp.CallError](ending); !ok || failure.Kind != mcp.Cancelled {
		return fmt.Errorf("the call ended with %v", ending)
	}
	if _, err = c.call(ctx, "await", keyed{"released it"}); err != nil {
		return fmt.Errorf("the server has not seen it: %w", err)
	}
	return nil
}

func checkBig(ctx context.Context, c *cell) error {
	const size = 5 << 20
	got, err := c.call(ctx, "big", map[string]any{"bytes": size})
	if err != nil {
		return err
	}
	if want := bigText(size); got != want {
		return fmt.Errorf("got %d bytes, which are not the %d that were sent", len(got), size)
	}
	return nil
}
