package cli

import (
	"context"
	"errors"
	"iter"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// pages yields the pages of a list as they came. A server without such a list has
// no pages.
func pages(ctx context.Context, c *client.Client, method string) iter.Seq2[mcp.Result, error] {
	return func(yield func(mcp.Result, error) bool) {
		first := true
		for page, err := range c.Pages(ctx, method) {
			if first && lacks(err) || !yield(page, err) {
				return
			}
			first = false
		}
	}
}

// lacks reports whether a server says that it has no such method.
func lacks(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == jsonrpc.CodeMethodNotFound
}

// collect returns what a list has. What a server does not have at all is an empty
// list.
func collect[Item any](items iter.Seq2[Item, error]) ([]Item, error) {
	var all []Item
	for item, err := range items {
		switch {
		case lacks(err) && len(all) == 0:
			return nil, nil
		case err != nil:
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
