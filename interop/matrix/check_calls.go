package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func checkLog(ctx context.Context, c *cell) error {
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
		_, err := c.callWith(ctx, "log", nil, &client.CallOptions{
			LogLevel: want.level,
			Log:      func(p *mcp.LogParams) { got.add(fmt.Sprintf("%s %s %s", p.Logger, p.Level, p.Data)) },
		})
		if err != nil {
			return err
		}
		if err := differ(fmt.Sprintf("the log at level %q", want.level), got.String(), want.heard); err != nil {
			return err
		}
	}
	return nil
}

func checkCancel(ctx context.Context, c *cell) error {
	key := map[string]any{"key": "cancel"}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(cancelled, "hold", key)
		ended <- err
	}()
	_, err := c.call(ctx, "held", key)
	cancel()
	ending := <-ended
	if err != nil {
		return err
	}
	if failure, ok := errors.AsType[*mcp.CallError](ending); !ok || failure.Kind != mcp.Cancelled {
		return fmt.Errorf("the call ended with %v", ending)
	}
	if _, err = c.call(ctx, "released", key); err != nil {
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

// checkEqualIDs has two clients make the same calls at the same time. They can be
// asked nothing, so that they have one connection to a server that can be shared.
func checkEqualIDs(ctx context.Context, c *cell) error {
	const calls = 8
	var (
		calling sync.WaitGroup
		ids     [2][]string
		errs    [2]error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, name := range []string{"one", "two"} {
		calling.Go(func() {
			if ids[i], errs[i] = c.meetAll(ctx, name, calls); errs[i] != nil {
				cancel() // the other one waits in vain
			}
		})
	}
	calling.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	// A client takes an id now and then for what never is on the wire.
	equal := 0
	for _, id := range ids[0] {
		if slices.Contains(ids[1], id) {
			equal++
		}
	}
	if c.clientSide.name != "memory-modern" && equal < calls/2 {
		return fmt.Errorf("the clients' ids are not equal: %q, %q", ids[0], ids[1])
	}
	return nil
}

// meetAll connects one more client, which makes some calls at once that end when
// the other client has made them, too. It returns their ids.
func (c *cell) meetAll(ctx context.Context, name string, calls int) ([]string, error) {
	w := newWire(c.clientSide)
	other, err := client.Connect(ctx, c.facing(w), &client.Options{
		Info: mcp.Implementation{Name: name, Version: "1"}, Era: c.clientSide.era,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting client %s: %w", name, err)
	}
	var calling sync.WaitGroup
	errs := make([]error, calls)
	for i := range calls {
		calling.Go(func() {
			key := fmt.Sprintf("key-%d", i)
			var progress collected
			want := key + " " + name
			got, err := textOf(other.CallTool(ctx, "meet", map[string]any{"key": key, "name": name},
				&client.CallOptions{Progress: progress.progress}))
			if err == nil {
				err = errors.Join(differ("the answer", got, want), differ("the progress", progress.String(), "1 of 1: "+want))
			}
			errs[i] = err
		})
	}
	calling.Wait()
	return w.callIDs(), errors.Join(append(errs, other.Close())...)
}
