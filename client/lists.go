package client

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// MaxPages is how many pages of a list are followed.
const MaxPages = 1000

// pages yields the items of all pages of a list. Items returns those of a page.
func pages[Item, Page any](ctx context.Context, c *Client, method string, items func(*Page) ([]Item, *mcp.ListMembers)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		cursor, seen := "", make(map[string]bool)
		for range MaxPages {
			var page Page
			if err := c.page(ctx, method, cursor, &page); err != nil {
				yield(none, err)
				return
			}
			list, members := items(&page)
			for _, item := range list {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = members.NextCursor; cursor == "" {
				return
			}
			if seen[cursor] {
				yield(none, badReply(method, fmt.Errorf("the cursor %.80q comes again: the list has no end", cursor)))
				return
			}
			seen[cursor] = true
		}
		yield(none, &mcp.CallError{
			Method: method, Kind: mcp.LimitExceeded, Limit: "MaxPages", Outcome: mcp.Answered,
			Public: fmt.Sprintf("the list has more than %d pages", MaxPages),
		})
	}
}

// page gets a page of a list, from the cache if that is fresh.
func (c *Client) page(ctx context.Context, method, cursor string, page any) error {
	raw, generation := c.cache.get(method, cursor)
	if raw == nil {
		result, err := c.raw(ctx, method, mcp.PageParams{Cursor: cursor}, nil)
		if err != nil {
			return err
		}
		raw = result.Raw()
		c.keep(method, cursor, result, generation)
	}
	if err := json.Unmarshal(raw, page); err != nil {
		return badReply(method, err)
	}
	return nil
}

// keep keeps a page for as long as the server says, and listens for changes of
// the list meanwhile.
func (c *Client) keep(method, cursor string, result mcp.Result, generation int) {
	var hints mcp.CacheHints
	if json.Unmarshal(result.Raw(), &hints) != nil || hints.TTLMs == nil || *hints.TTLMs <= 0 {
		return
	}
	if c.cache.put(method, cursor, result.Raw(), time.Duration(*hints.TTLMs)*time.Millisecond, generation) {
		c.watch()
	}
}

// Bounds of what is cached.
const (
	// MaxCached is how many pages are kept, and MaxCachedBytes how large they
	// are together. Further ones are not kept.
	MaxCached      = 1000
	MaxCachedBytes = 16 << 20
	// MaxTTL is the longest that a page is kept, whatever the server says.
	MaxTTL = 24 * time.Hour
)

// A cache keeps pages of lists. It belongs to one client and one server, so that
// private results are in nobody else's hands.
type cache struct {
	mu          sync.Mutex
	pages       map[cacheKey]cached // guarded by mu, like what follows
	bytes       int
	generations map[string]int // of each list: how often it has changed
}

type cacheKey struct{ method, cursor string }

type cached struct {
	raw   []byte
	until time.Time
}

func (c *cache) init() {
	c.pages, c.generations = make(map[cacheKey]cached), make(map[string]int)
}

// get returns a fresh page, nil if there is none, and the generation of its list.
func (c *cache) get(method, cursor string) ([]byte, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{method, cursor}
	page, ok := c.pages[key]
	if ok && time.Now().Before(page.until) {
		return page.raw, c.generations[method]
	}
	if ok {
		c.drop(key)
	}
	return nil, c.generations[method]
}

// put keeps a page, unless its list has changed since it was asked for. It reports
// whether the page is kept.
func (c *cache) put(method, cursor string, raw []byte, ttl time.Duration, generation int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{method, cursor}
	c.drop(key)
	if c.generations[method] != generation || len(c.pages) >= MaxCached || c.bytes+len(raw) > MaxCachedBytes {
		return false
	}
	c.pages[key] = cached{raw, time.Now().Add(min(ttl, MaxTTL))}
	c.bytes += len(raw)
	return true
}

// drop forgets a page. c.mu is held.
func (c *cache) drop(key cacheKey) {
	if page, ok := c.pages[key]; ok {
		c.bytes -= len(page.raw)
		delete(c.pages, key)
	}
}

// changed forgets the pages of lists that have changed.
func (c *cache) changed(methods ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, method := range methods {
		c.generations[method]++
		for key := range c.pages {
			if key.method == method {
				c.drop(key)
			}
		}
	}
}
