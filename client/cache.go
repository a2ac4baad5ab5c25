package client

import (
	"bytes"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// Bounds of what is cached.
const (
	// MaxCached is how many pages are kept, and MaxCachedBytes how large they
	// are together. Further ones are not kept until others have expired.
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

func (k *cacheKey) size(raw []byte) int { return len(k.cursor) + len(raw) }

func (c *cache) init() {
	c.pages, c.generations = make(map[cacheKey]cached), make(map[string]int)
}

// get returns a fresh page, nil if there is none, and the generation of its list.
func (c *cache) get(method string, cursor []byte) ([]byte, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{method, string(cursor)}
	page, ok := c.pages[key]
	if ok && time.Now().Before(page.until) {
		return page.raw, c.generations[method]
	}
	if ok {
		c.drop(key)
	}
	return nil, c.generations[method]
}

// put keeps a page for as long as the server says, unless its list has changed
// since it was asked for. It reports whether the page is kept.
func (c *cache) put(method string, cursor []byte, page *mcp.Result, generation int) bool {
	ttl := lifeOf(page)
	if ttl <= 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{method, string(cursor)}
	c.drop(key)
	size := key.size(page.Raw())
	if c.generations[method] != generation {
		return false
	}
	if !c.hasRoom(size) {
		c.expire(time.Now())
	}
	if !c.hasRoom(size) {
		return false
	}
	c.pages[key] = cached{bytes.Clone(page.Raw()), time.Now().Add(ttl)}
	c.bytes += size
	return true
}

// hasRoom reports whether a page of size bytes may be kept. c.mu is held.
func (c *cache) hasRoom(size int) bool {
	return len(c.pages) < MaxCached && c.bytes+size <= MaxCachedBytes
}

// expire forgets pages that are not fresh any more: those under cursors that do not
// come again are asked for by nobody. c.mu is held.
func (c *cache) expire(now time.Time) {
	for key, page := range c.pages {
		if !now.Before(page.until) {
			c.drop(key)
		}
	}
}

// lifeOf returns how long a page may be kept, 0 if not at all. Who it may be shown
// to (cacheScope) does not matter here: it is one client's.
func lifeOf(page *mcp.Result) time.Duration {
	raw, _ := page.Lookup("ttlMs")
	var ms float64
	if json.Unmarshal(raw, &ms) != nil || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, float64(MaxTTL/time.Millisecond))) * time.Millisecond
}

// drop forgets a page. c.mu is held.
func (c *cache) drop(key cacheKey) {
	if page, ok := c.pages[key]; ok {
		c.bytes -= key.size(page.raw)
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
