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

// clientName is what the cell's own client calls itself.
const clientName = "matrix-client"

// What the client says of itself, and the roots that it has.
var (
	clientInfo  = mcp.Implementation{Name: clientName, Title: "Zoë", Version: "4.5.6"}
	clientRoots = []mcp.Root{{URI: "file:///tmp/a%20b", Name: "gr\u00fcn"}, {URI: "file:///srv"}}
)

// model is what samples for the cell's own client.
const model = "model of " + clientName

// A user answers what a server asks the client.
type user struct {
	side side   // the client's
	name string // of the client

	mu    sync.Mutex
	lost  []error            // why the connection was made again; guarded by mu
	pages []string           // opened; guarded by mu
	asked []mcp.ElicitParams // forms; guarded by mu
	left  chan struct{}      // who waits for the other of two questions; guarded by mu
	// What is done before a question is answered, by its text; guarded by mu.
	before map[string]func(ctx context.Context) error
}

func newUser(s side, name string) *user {
	return &user{side: s, name: name, before: make(map[string]func(context.Context) error)}
}

// whenAsked has f called before a question is answered.
func (u *user) whenAsked(text string, f func(ctx context.Context) error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before[text] = f
}

// options are those of a client that declares what its revision has.
func (u *user) options() *client.Options {
	info := clientInfo
	info.Name = u.name
	opts := &client.Options{
		Info: info, Era: u.side.era,
		Sample: u.sample,
		Roots:  func(context.Context) ([]mcp.Root, error) { return clientRoots, nil },
		State:  u.changed,
	}
	if u.side.revision >= mcp.Revision20250618 {
		opts.Elicit = u.elicit
	}
	opts.ElicitURL = u.side.revision >= mcp.Revision20251125
	return opts
}

// changed keeps why the connection was lost. A client that heals would hide it.
func (u *user) changed(state client.State, err error) {
	if state == client.Connected || state == client.Closed || err == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost = append(u.lost, fmt.Errorf("%s: %w", state, err))
}

// lostConnections returns why the client had to connect again, and forgets it.
func (u *user) lostConnections() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := errors.Join(u.lost...)
	u.lost = nil
	return err
}

// capabilities are what options declare.
func (u *user) capabilities() string {
	switch {
	case u.side.revision >= mcp.Revision20251125:
		return `{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{}}`
	case u.side.revision >= mcp.Revision20250618:
		return `{"elicitation":{},"roots":{"listChanged":true},"sampling":{}}`
	}
	return `{"roots":{"listChanged":true},"sampling":{}}`
}

// elicit does what the message says, and opens every page.
func (u *user) elicit(_ context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if params.Mode == mcp.ElicitURL {
		page := params.URL
		if params.ElicitationID != "" {
			page += withID
		}
		u.pages = append(u.pages, page)
		return &mcp.ElicitResult{Action: mcp.Accept}, nil
	}
	u.asked = append(u.asked, *params)
	answer := &mcp.ElicitResult{Action: mcp.ElicitAction(params.Message)}
	if answer.Action == mcp.Accept {
		answer.Content = mcp.JSON(`{"name":"Zoë"}`)
	}
	return answer, nil
}

// withID stands after the address of a page that has an id.
const withID = " with an id"

// opened returns the pages that were opened, and forgets them.
func (u *user) opened() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	pages := u.pages
	u.pages = nil
	return pages
}

// sample repeats what is asked. Questions that are put together are answered when
// both are there.
func (u *user) sample(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if len(params.Messages) != 1 {
		return nil, fmt.Errorf("asked with %d messages", len(params.Messages))
	}
	text, err := onlyText(params.Messages[0].Content)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	before := u.before[text]
	u.mu.Unlock()
	if strings.HasPrefix(text, "together: ") {
		before = u.together
	}
	if before != nil {
		if err := before(ctx); err != nil {
			return nil, err
		}
	}
	return &mcp.CreateMessageResult{
		Role: mcp.Assistant, Model: "model of " + u.name, StopReason: "endTurn", Content: mcp.Contents{&mcp.Text{Text: "re: " + text}},
	}, nil
}

// together waits until two questions are there.
func (u *user) together(ctx context.Context) error {
	u.mu.Lock()
	if u.left != nil {
		close(u.left)
		u.left = nil
		u.mu.Unlock()
		return nil
	}
	left := make(chan struct{})
	u.left = left
	u.mu.Unlock()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
