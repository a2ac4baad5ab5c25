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

// twoClients has two further clients do the same at one time, each over a
// connection of its own. If one fails, the other does not wait for it.
func (c *cell) twoClients(ctx context.Context, options func(name string) *client.Options,
	do func(ctx context.Context, name string, other *client.Client) error,
) (wires [2]*wire, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		working sync.WaitGroup
		errs    [2]error
	)
	for i, name := range []string{"one", "two"} {
		wires[i] = newWire(c.clientSide)
		working.Go(func() {
			if errs[i] = c.asClient(ctx, wires[i], options(name), func(other *client.Client) error {
				return do(ctx, name, other)
			}); errs[i] != nil {
				cancel()
			}
		})
	}
	working.Wait()
	return wires, errors.Join(errs[:]...)
}

// asClient connects one more client.
func (c *cell) asClient(ctx context.Context, w *wire, opts *client.Options, do func(*client.Client) error) error {
	other, err := client.Connect(ctx, c.facing(w), opts)
	if err != nil {
		return fmt.Errorf("connecting client %s: %w", opts.Info.Name, err)
	}
	return errors.Join(do(other), other.Close())
}

// undeclared are the options of a client that can be asked nothing.
func (c *cell) undeclared(name string) *client.Options {
	return &client.Options{Info: mcp.Implementation{Name: name, Version: "1"}, Era: c.clientSide.era}
}

// inParallel calls f for 0 to n-1 at once.
func inParallel(n int, f func(i int) error) error {
	var working sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		working.Go(func() { errs[i] = f(i) })
	}
	working.Wait()
	return errors.Join(errs...)
}

// checkEqualIDs has two clients make calls that end when the other one has made the
// same. They can be asked nothing, so that they have one connection to a server that
// can be shared.
func checkEqualIDs(ctx context.Context, c *cell) error {
	const calls = 8
	wires, err := c.twoClients(ctx, c.undeclared, func(ctx context.Context, name string, other *client.Client) error {
		return inParallel(calls, func(i int) error { return meet(ctx, other, fmt.Sprintf("key-%d", i), name) })
	})
	if err != nil {
		return err
	}
	// A client takes an id now and then for what never is on the wire.
	equal := 0
	for _, id := range wires[0].callIDs() {
		if slices.Contains(wires[1].callIDs(), id) {
			equal++
		}
	}
	if !c.clientSide.direct && equal < calls/2 {
		return fmt.Errorf("the clients' ids are not equal: %q, %q", wires[0].callIDs(), wires[1].callIDs())
	}
	return nil
}

// meet makes a call that ends when the other client has made it, too.
func meet(ctx context.Context, other *client.Client, key, name string) error {
	var progress collected
	got, err := textOf(other.CallTool(ctx, "meet", map[string]any{"key": key, "name": name},
		&client.CallOptions{Progress: progress.progress}))
	if err != nil {
		return err
	}
	want := key + " " + name
	return errors.Join(differ("the answer", got, want), differ("the progress", progress.String(), "1 of 1: "+want))
}

// checkApart has calls of two clients ask at one time.
func checkApart(ctx context.Context, c *cell) error {
	options := func(name string) *client.Options { return newUser(c.clientSide, name).options() }
	_, err := c.twoClients(ctx, options, func(ctx context.Context, name string, other *client.Client) error {
		return inParallel(4, func(i int) error {
			text := fmt.Sprintf("%s asks %d", name, i)
			got, err := textOf(other.CallTool(ctx, "sample", map[string]any{"text": text}, nil))
			if err != nil {
				return err
			}
			return differ("what the server was told", got, "re: "+text+" by model of "+name)
		})
	})
	return err
}

// checkUndeclared has a server ask a client that has declared nothing: nothing of
// that comes to the client, not even to be refused.
func checkUndeclared(ctx context.Context, c *cell) error {
	w := newWire(c.clientSide)
	err := c.asClient(ctx, w, c.undeclared("silent"), func(other *client.Client) error {
		for question := range boldQuestions {
			got, err := textOf(other.CallTool(ctx, boldTool, map[string]any{"question": question}, nil))
			if err != nil {
				return fmt.Errorf("%s: %w", question, err)
			}
			if !strings.HasPrefix(got, "refused: ") {
				return fmt.Errorf("the question %s was %s", question, got)
			}
		}
		return nil
	})
	if asked := w.questions(); len(asked) > 0 {
		err = errors.Join(err, fmt.Errorf("the client was asked %q", asked))
	}
	return err
}
