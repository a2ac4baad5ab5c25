package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func checkCompletion(ctx context.Context, c *cell) error {
	for _, ref := range []mcp.Reference{
		{Type: mcp.RefPrompt, Name: "greet"}, {Type: mcp.RefResource, URI: "memo://of/{name}"},
	} {
		for typed, want := range map[string]string{"": "Ada Alan Zoë", "Al": "Alan", "Zo": "Zoë"} {
			got, err := c.Complete(ctx, &mcp.CompleteParams{
				Ref: ref, Argument: mcp.CompleteArgument{Name: "name", Value: typed},
			}, nil)
			if err != nil {
				return err
			}
			if err := differ("the completion of "+typed, strings.Join(got.Values, " "), want); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPrompt(ctx context.Context, c *cell) error {
	var names []string
	for prompt, err := range c.Prompts(ctx) {
		if err != nil {
			return err
		}
		names = append(names, prompt.Name)
	}
	result, err := c.GetPrompt(ctx, "greet", map[string]string{"name": "Zoë"}, nil)
	if err != nil {
		return err
	}
	messages, err := mcp.NewJSON(result.Messages)
	return errors.Join(err,
		differ("the prompts", strings.Join(names, " "), "asking greet"),
		differ("the messages", sorted(messages), `[{"content":{"text":"Say grüezi to Zoë","type":"text"},"role":"user"}]`))
}

func checkRead(ctx context.Context, c *cell) error {
	for uri, want := range map[string]string{
		memo: fmt.Sprintf("text/plain %q", memoText), blob: "image/png 0001feff", "memo://of/Zo%C3%AB": `text/plain "memo of Zoë"`,
	} {
		result, err := c.ReadResource(ctx, uri, nil)
		if err != nil {
			return err
		}
		if len(result.Contents) != 1 {
			return fmt.Errorf("%s has %d contents", uri, len(result.Contents))
		}
		got := result.Contents[0]
		text := fmt.Sprintf("%s %x", got.MIMEType, got.Blob)
		if got.Text != nil {
			text = fmt.Sprintf("%s %q", got.MIMEType, *got.Text)
		}
		if err := errors.Join(differ(uri, text, want), differ("its URI", got.URI, uri)); err != nil {
			return err
		}
	}
	_, err := c.ReadResource(ctx, "memo://none", nil)
	return wantCode("a resource that there is not", err, c.notFound())
}

// notFound is the code of a resource that there is not, which differs between the
// eras (2026-07-28, server/resources, Error Handling).
func (c *cell) notFound() int {
	if c.clientSide.era == mcp.Legacy && c.serverSide.era == mcp.Legacy {
		return jsonrpc.CodeResourceNotFound
	}
	return jsonrpc.CodeInvalidParams
}

func checkUpdated(ctx context.Context, c *cell) error {
	s, err := c.Listen(ctx, mcp.Filter{ResourceSubscriptions: []string{memo}})
	if err != nil {
		return err
	}
	defer s.Close()
	if filter := s.Filter(); len(filter.ResourceSubscriptions) != 1 {
		return fmt.Errorf("the server acknowledges %+v", filter)
	}
	// What comes for the other one would come first.
	for _, uri := range []string{otherMemo, memo} {
		if _, err := c.call(ctx, "touch", map[string]any{"uri": uri}); err != nil {
			return err
		}
	}
	return wantEvent(ctx, s, mcp.NotificationResourceUpdated, memo)
}

func wantEvent(ctx context.Context, s *client.Subscription, method, uri string) error {
	event, err := s.Next(ctx)
	if err != nil {
		return fmt.Errorf("nothing was told: %w", err)
	}
	return differ("what was told", event.Method+" "+event.URI(), method+" "+uri)
}

func checkListChanged(ctx context.Context, c *cell) error {
	s, err := c.Listen(ctx, mcp.Filter{ToolsListChanged: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if !s.Filter().ToolsListChanged {
		return fmt.Errorf("the server acknowledges %+v", s.Filter())
	}
	name, err := c.call(ctx, "grow", nil)
	if err != nil {
		return err
	}
	if err := wantEvent(ctx, s, mcp.NotificationToolsListChanged, ""); err != nil {
		return err
	}
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		if tool.Name == name {
			return nil
		}
	}
	return fmt.Errorf("the tool %s is not listed", name)
}
