package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// actionOf is what the user is told to do, by the name of the check.
var actionOf = map[string]mcp.ElicitAction{"accept": mcp.Accept, "decline": mcp.Decline, "dismiss": mcp.Cancel}

// elicitation is the check of one action of the user.
func elicitation(name, want string) check {
	message := map[string]any{"message": string(actionOf[name])}
	run := func(ctx context.Context, c *cell) error {
		got, err := c.call(ctx, "ask", message)
		if err != nil {
			return err
		}
		return differ("what the server was told", got, want)
	}
	return check{
		name: name, what: "a form of the server is answered: " + string(actionOf[name]),
		cannot: before(mcp.Revision20250618, "elicitation", "2025-06-18, client/elicitation"),
		run:    run, instead: unasked(mcp.Revision20250618, "ask", message, run),
	}
}

// unasked has the server ask what revisions before since do not have. A client of one
// has not declared it: it is not asked, and the server is told so. A server of one would
// not ask, but the bridge does not stop one that does: run is what its client sees.
func unasked(since mcp.Revision, tool string, arguments any,
	run func(context.Context, *cell) error,
) func(context.Context, *cell) error {
	return func(ctx context.Context, c *cell) error {
		if c.clientSide.revision >= since {
			return run(ctx, c)
		}
		_, err := c.call(ctx, tool, arguments)
		return wantCode("a question to a client that did not declare it", err, jsonrpc.CodeMissingCapability)
	}
}

func checkURL(ctx context.Context, c *cell) error {
	c.user.opened()
	got, err := c.call(ctx, "open", nil)
	if err != nil {
		return err
	}
	return errors.Join(
		differ("what the server was told", got, "accept"),
		differ("what the user was shown", strings.Join(c.user.opened(), " "), c.page()),
	)
}

// page is what the user is shown. Legacy clients are told by an id of the page when
// the user is done there; modern ones are not (2026-07-28, client/elicitation). Without
// a wire a legacy server's question is what it is.
func (c *cell) page() string {
	if c.clientSide.era == mcp.Legacy || c.clientSide.direct && c.serverSide.era == mcp.Legacy {
		return pageURL + withID
	}
	return pageURL
}

// checkURLError: the call is made again by itself, once the page has been opened.
func checkURLError(ctx context.Context, c *cell) error {
	c.user.opened()
	got, err := c.call(ctx, "consent", nil)
	if err != nil {
		return err
	}
	return errors.Join(
		differ("the answer", got, "consented"),
		differ("what the user was shown", strings.Join(c.user.opened(), " "), c.page()),
	)
}

func checkSampling(ctx context.Context, c *cell) error {
	got, err := c.call(ctx, "sample", map[string]any{"text": trickyText})
	if err != nil {
		return err
	}
	return differ("what the server was told", fmt.Sprintf("%q", got), fmt.Sprintf("%q", "re: "+trickyText+" by "+model))
}

func checkRoots(ctx context.Context, c *cell) error {
	got, err := c.call(ctx, "roots", nil)
	if err != nil {
		return err
	}
	var roots []mcp.Root
	if err := mcp.JSON(got).Decode(&roots); err != nil {
		return err
	}
	if !slices.EqualFunc(roots, clientRoots, func(a, b mcp.Root) bool { return a.URI == b.URI && a.Name == b.Name }) {
		return fmt.Errorf("the server was told %s", got)
	}
	return nil
}

func checkRounds(ctx context.Context, c *cell) error {
	want := "re: after re: first by " + model + " by " + model
	var errs []error
	for _, tool := range []string{"twice", "twice-sealed"} {
		got, err := c.call(ctx, tool, nil)
		if err == nil {
			err = differ("what the server was told", got, want)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", tool, err))
		}
	}
	return errors.Join(errs...)
}

// checkElsewhere: not tools alone ask. The prompt waits, the resource needs input.
func checkElsewhere(ctx context.Context, c *cell) error {
	prompt, err := c.GetPrompt(ctx, "asking", nil, nil)
	if err != nil {
		return fmt.Errorf("the prompt: %w", err)
	}
	resource, err := c.ReadResource(ctx, askingMemo, nil)
	if err != nil {
		return fmt.Errorf("the resource: %w", err)
	}
	if len(prompt.Messages) != 1 || len(resource.Contents) != 1 || resource.Contents[0].Text == nil {
		return fmt.Errorf("%d messages and %d contents", len(prompt.Messages), len(resource.Contents))
	}
	text, err := onlyText(mcp.Contents{prompt.Messages[0].Content})
	return errors.Join(err,
		differ("the prompt", text, "re: prompt by "+model),
		differ("the resource", *resource.Contents[0].Text, "re: resource by "+model),
	)
}

// checkAtOnce asks two questions at the same time. Where both are on the wire
// before one is answered, the user answers none before both are there.
func checkAtOnce(ctx context.Context, c *cell) error {
	// A modern client is put the questions of a call that waits one after the
	// other (docs/design/007-parking.md).
	legacy := c.clientSide.era == mcp.Legacy
	together := map[string]bool{
		"both":        legacy && c.serverSide.era == mcp.Legacy,
		"both-sealed": legacy || c.serverSide.era == mcp.Modern,
	}
	var errs []error
	for _, tool := range []string{"both", "both-sealed"} {
		prefix := ""
		if together[tool] {
			prefix = "together: "
		}
		left, right := prefix+"left", prefix+"right"
		got, err := c.call(ctx, tool, map[string]any{"left": left, "right": right})
		if err == nil {
			err = differ("what the server was told", got, fmt.Sprintf("re: %s by %s, re: %s by %s", left, model, right, model))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", tool, err))
		}
	}
	return errors.Join(errs...)
}
