package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// MaxPages is how many pages of a list are followed.
const MaxPages = 1000

// Pages yields the pages of a list as they came, also of one that this package has no
// method for, such as that of an extension: the results of method and of the cursors in
// them, as they are asked for. An error ends it; what has no end is cut as the other
// lists are ([MaxPages]). The server is asked each time, whatever it says of caching,
// since nothing may tell that such a list has changed.
func (c *Client) Pages(ctx context.Context, method string) iter.Seq2[mcp.Result, error] {
	ask := func(cursor mcp.JSON) ([]byte, error) {
		result, err := c.raw(ctx, method, pageParams{cursor}, nil)
		return result.Raw(), err
	}
	return func(yield func(mcp.Result, error) bool) {
		for raw, err := range c.follow(method, ask) {
			if err != nil {
				yield(mcp.Result{}, err)
				return
			}
			if !yield(mcp.RawResult(raw), nil) {
				return
			}
		}
	}
}

// pages yields the items of all pages of a list. Items returns those of a page, and
// gets what toolBook.asOf said before that was asked for.
func pages[Item, Page any](ctx context.Context, c *Client, method string, items func(page *Page, asOf moment) []Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		var asOf moment
		ask := func(cursor mcp.JSON) ([]byte, error) {
			asOf = c.tools.asOf()
			raw, kept, err := c.page(ctx, method, cursor)
			if kept {
				asOf.count = 0
			}
			return raw, err
		}
		for raw, err := range c.follow(method, ask) {
			if err != nil {
				yield(none, err)
				return
			}
			var page Page
			if err := readPage[Item](c, method, raw, &page); err != nil {
				yield(none, err)
				return
			}
			for _, item := range items(&page, asOf) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// follow yields all pages of a list, which ask gets, the first one without a cursor.
func (c *Client) follow(method string, ask func(cursor mcp.JSON) ([]byte, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		at := place{method: method}
		for at.more() {
			raw, err := ask(at.cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			if at.repeats(raw) || !yield(raw, nil) {
				return
			}
			at.advance(raw, c.Verdict().Era)
		}
		if at.err != nil {
			yield(nil, at.err)
		}
	}
}

// readPage decodes a page of a list. An item that cannot be read is left out: it is
// not to hide the others.
func readPage[Item any](c *Client, method string, raw []byte, page any) error {
	result := mcp.RawResult(raw)
	err := result.Decode(page)
	if err == nil {
		return nil
	}
	whole, member := jsonrpc.Trusted(raw), itemsOf[method]
	items, _ := whole.Lookup(member)
	readable := []byte{'['}
	for _, item := range jsonrpc.Elements(items) {
		if itemErr := mcp.JSON(item).Decode(new(Item)); itemErr != nil {
			named := jsonrpc.Trusted(item)
			name, _ := named.LookupString("name")
			c.opts.Logger.Warn("what cannot be read is left out of the list", "method", method, "name", name, "err", itemErr)
			continue
		}
		if len(readable) > 1 {
			readable = append(readable, ',')
		}
		readable = append(readable, item...)
	}
	if len(readable) == 1 {
		return badReply(method, err)
	}
	readable = append(readable, ']')
	rest := mcp.RawResult(jsonrpc.AppendEdited(nil, &whole, jsonrpc.Edit{Name: member, Value: readable}))
	if rest.Decode(page) != nil {
		return badReply(method, err)
	}
	return nil
}

// itemsOf are the members of pages that hold their items, by method.
var itemsOf = map[string]string{
	mcp.MethodListTools: "tools", mcp.MethodListPrompts: "prompts",
	mcp.MethodListResources: "resources", mcp.MethodListResourceTemplates: "resourceTemplates",
}

// A place is how far a list has been followed. Servers have lists without end.
type place struct {
	method string
	cursor mcp.JSON // as it came; nil for the first page
	pages  int
	end    bool
	err    error // why it ended too early
	last   []byte
	seen   map[[sha256.Size]byte]bool // cursors
}

// more reports whether there is another page to get.
func (p *place) more() bool {
	if !p.end && p.pages == MaxPages {
		p.end, p.err = true, &mcp.CallError{
			Method: p.method, Kind: mcp.LimitExceeded, Limit: "MaxPages", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the list has more than %d pages", MaxPages),
		}
	}
	p.pages++
	return !p.end
}

// isEmpty reports whether a cursor is the empty string, which is one like any other
// (2026-07-28, server/utilities/pagination). Legacy servers end their lists with it,
// also those that a bridge shows as modern ones.
func isEmpty(cursor []byte) bool { return string(cursor) == `""` }

// repeats reports whether a page is the last one again, under a cursor that meant
// that there is none.
func (p *place) repeats(raw []byte) bool { return isEmpty(p.cursor) && bytes.Equal(raw, p.last) }

// advance goes on to the page that one of a server of an era names.
func (p *place) advance(raw []byte, era mcp.Era) {
	page := jsonrpc.Trusted(raw)
	cursor, ok := page.Lookup("nextCursor")
	if !ok || string(cursor) == "null" || isEmpty(cursor) && era == mcp.Legacy {
		p.end = true
		return
	}
	sum := sha256.Sum256(cursor)
	if p.seen[sum] {
		p.end = true
		if !isEmpty(cursor) {
			p.err = badReply(p.method, fmt.Errorf("the cursor %.80s comes again: the list has no end", cursor))
		}
		return
	}
	if p.seen == nil {
		p.seen = make(map[[sha256.Size]byte]bool)
	}
	p.seen[sum] = true
	p.cursor, p.last = bytes.Clone(cursor), raw
}

// pageParams are mcp.PageParams whose cursor keeps the form in which it came.
type pageParams struct {
	Cursor mcp.JSON `json:"cursor,omitzero"`
}

// page gets a page of a list, from the cache if that is fresh. Kept reports that it
// came from there.
func (c *Client) page(ctx context.Context, method string, cursor mcp.JSON) (raw []byte, kept bool, _ error) {
	raw, generation := c.cache.get(method, cursor)
	if raw != nil {
		return raw, true, nil
	}
	result, err := c.raw(ctx, method, pageParams{cursor}, nil)
	if err != nil {
		if cursor != nil && jsonrpc.FromPeer(err) {
			// The pages before it are of a list that the server does not know any more
			// (2026-07-28, server/utilities/caching, Interaction with Pagination).
			c.cache.changed(method)
		}
		return nil, false, err
	}
	if c.cache.put(method, cursor, &result, generation) {
		c.watch()
	}
	return result.Raw(), false, nil
}
