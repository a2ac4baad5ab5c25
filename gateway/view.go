package gateway

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A view is what the backends have shown a client, or a class of clients: those of one
// principal under one grant, with the same capabilities, in revisions of one era. Nothing
// of it is ever shown to anybody of another class, since backends may show each something
// else. Of a client of whom nothing is kept, what is kept of its class is.
type view struct {
	// Set at construction.
	key   string
	class string // the key of the class; its own key if it is one
	// audience is the key without the grant: a client that gets a new token listens with
	// the one before.
	audience string

	used atomic.Int64

	// Guarded by Gateway.mu.
	entries map[*backend]*entry
	bytes   int
	trail   *trail // one for all views of an audience
}

// An entry is what one backend has shown. It is guarded by Gateway.mu.
type entry struct {
	can     *capabilities // nil if not known
	canAt   time.Time     // when it was told
	lists   [lists]*list  // nil for those not known
	fresh   [lists]time.Time
	changes [lists]int       // how often a list was said to have changed
	told    [lists]time.Time // when its coming late was told of
	telling [lists]bool      // it will be told of again
	misses  [lists]int       // how often in a row it could not be had
	asking  [lists]bool      // it will be asked for again
	flights [kinds]*flight
	next    [kinds]*flight // those that wait for the one in flight to land
}

// appendClass appends the key of a client's class. A token need not show what another
// one of the same principal does (2026-07-28, server/utilities/caching, Cache Scope
// Field).
func appendClass(key []byte, m *mcp.Metadata) []byte {
	return appendAudience(strconv.AppendQuote(key, m.Grant), m)
}

func appendAudience(key []byte, m *mcp.Metadata) []byte {
	// Quoted, so that no name can reach into the next one.
	key = strconv.AppendInt(key, int64(m.Revision.Era()), 10)
	key = strconv.AppendQuote(key, m.Principal.Issuer)
	key = strconv.AppendQuote(key, m.Principal.Subject)
	return append(key, m.Capabilities...)
}

// appendView appends the key of a client's own view.
func appendView(key []byte, m *mcp.Metadata) []byte {
	return appendClient(appendClass(key, m), m)
}

func appendClient(key []byte, m *mcp.Metadata) []byte {
	if m.Session != "" {
		return strconv.AppendQuote(append(key, " session "...), m.Session)
	}
	return append(append(key, " client "...), m.Client...)
}

// maxKey is how long a key is kept as it is. What a client says of itself may be long.
const maxKey = 512

func bounded(key []byte) []byte {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256(key)
	return sum[:]
}

// viewOf returns the view of whoever has made a request.
func (g *Gateway) viewOf(m *mcp.Metadata) *view {
	var memory [maxKey]byte
	key := bounded(appendView(memory[:0], m))
	g.mu.RLock()
	v := g.views[string(key)]
	g.mu.RUnlock()
	if v == nil {
		v = g.newView(&view{
			key:      string(key),
			class:    string(bounded(appendClass(nil, m))),
			audience: string(bounded(appendClient(appendAudience(nil, m), m))),
		})
	}
	v.used.Store(g.ticks.Add(1))
	return v
}

// current returns the view that has the keys of another one now.
func (g *Gateway) current(v *view) *view {
	g.mu.RLock()
	now := g.views[v.key]
	g.mu.RUnlock()
	if now == nil {
		return g.newView(v)
	}
	now.used.Store(g.ticks.Add(1))
	return now
}

// newView returns the view with the keys of another one, or makes one, and that of its
// class if need be.
func (g *Gateway) newView(of *view) *view {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addView(&view{key: of.class, class: of.class})
	v := g.addView(&view{key: of.key, class: of.class, audience: of.audience})
	g.evict(v)
	return v
}

func (g *Gateway) addView(v *view) *view {
	if old := g.views[v.key]; old != nil {
		v = old
	} else {
		v.entries, v.trail = make(map[*backend]*entry), g.trailOf(v.audience)
		g.views[v.key] = v
	}
	v.used.Store(g.ticks.Add(1))
	return v
}

// trailOf returns the trail of an audience: a client may get a new token while its user
// thinks. g.mu is held.
func (g *Gateway) trailOf(audience string) *trail {
	for _, v := range g.views {
		if audience != "" && v.audience == audience {
			return v.trail
		}
	}
	return newTrail()
}

// evict forgets views that have not been used for longest, but not that of now, until
// they are within the limits. g.mu is held.
func (g *Gateway) evict(now *view) {
	for len(g.views) > g.opts.MaxViews || g.kept > g.opts.MaxKept {
		var oldest *view
		for _, v := range g.views {
			if v.key != now.key && v.key != now.class && (oldest == nil || v.used.Load() < oldest.used.Load()) {
				oldest = v
			}
		}
		if oldest == nil {
			return
		}
		delete(g.views, oldest.key)
		g.kept -= oldest.bytes
	}
}

// entry returns what a backend has shown. g.mu is held.
func (v *view) entry(b *backend) *entry {
	e := v.entries[b]
	if e == nil {
		e = new(entry)
		v.entries[b] = e
	}
	return e
}

// weight is what counts of an entry as kept.
func (e *entry) weight() (n int) {
	if e.can != nil {
		n = len(e.can.instructions)
	}
	for _, l := range e.lists {
		if l != nil {
			n += l.weight()
		}
	}
	return n
}

// layers are a view and that of its class, for what the first one does not know.
type layers [2]*view

// layers returns those of a view. g.mu is held.
func (g *Gateway) layers(v *view) layers { return layers{v, g.views[v.class]} }

// list returns the list of a backend that was last seen, nil if there is none.
// Gateway.mu is held.
func (ls layers) list(b *backend, k kind) *list {
	for _, v := range ls {
		if v == nil {
			continue
		}
		if e := v.entries[b]; e != nil && e.lists[k] != nil {
			return e.lists[k]
		}
	}
	return nil
}

// known is layers.list for one backend. g.mu is held.
func (g *Gateway) known(v *view, b *backend, k kind) *list { return g.layers(v).list(b, k) }

// knownCapabilities is known for what a backend can do.
func (g *Gateway) knownCapabilities(v *view, b *backend) (can *capabilities, at time.Time) {
	for _, layer := range g.layers(v) {
		if layer == nil {
			continue
		}
		if e := layer.entries[b]; e != nil && e.can != nil {
			return e.can, e.canAt
		}
	}
	return nil, time.Time{}
}

// fresh returns a list that its backend has allowed to be used again, and until when.
func (g *Gateway) fresh(v *view, b *backend, k kind) (*list, time.Time) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	e := v.entries[b]
	if e == nil || e.lists[k] == nil || !time.Now().Before(e.fresh[k]) {
		return nil, time.Time{}
	}
	return e.lists[k], e.fresh[k]
}

// keep takes up what a flight has brought, for its client and the class of that. g.mu
// is held.
func (g *Gateway) keep(v *view, b *backend, k kind, f *flight) {
	if b.ctx.Err() != nil {
		return // it was removed
	}
	for _, layer := range g.layers(v) {
		if layer == nil {
			continue
		}
		layer.used.Store(g.ticks.Add(1)) // classes are used by nothing else
		e := layer.entry(b)
		size := -e.weight()
		if f.can != nil {
			e.can, e.canAt = f.can, time.Now()
		}
		if f.list != nil {
			if k == resources && !f.list.equals(e.lists[k]) {
				g.announce(layer, 0) // which backend is listened to for one
			}
			e.lists[k] = f.list
		}
		size += e.weight()
		if g.views[layer.key] != layer {
			continue // it has been forgotten meanwhile
		}
		layer.bytes += size
		g.kept += size
	}
	if f.list != nil {
		v.entry(b).fresh[k] = f.until
	}
	g.evict(v)
}

// changed takes up that lists of a backend have changed: none of them may be used again
// without asking.
func (g *Gateway) changed(b *backend, c mcp.Changes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doubt(b)
	for _, v := range g.views {
		e := v.entries[b]
		if e == nil {
			continue
		}
		for k := range lists {
			if changedBy[k]&c != 0 {
				e.changes[k]++
				e.fresh[k] = time.Time{}
			}
		}
	}
}

// doubt has the next list of a backend ask what it can do: it may be another version of
// itself. g.mu is held.
func (g *Gateway) doubt(b *backend) {
	for _, v := range g.views {
		if e := v.entries[b]; e != nil {
			e.canAt = time.Time{}
		}
	}
}

// forget forgets a backend that was removed. g.mu is held.
func (g *Gateway) forget(b *backend) {
	for _, v := range g.views {
		if e := v.entries[b]; e != nil {
			v.bytes -= e.weight()
			g.kept -= e.weight()
			for _, f := range e.next {
				if f != nil {
					f.err = closed(mcp.MethodDiscover)
					close(f.done)
				}
			}
			delete(v.entries, b)
		}
		v.trail.forget(b)
	}
	maps.DeleteFunc(g.conflicts, func(c Conflict, _ struct{}) bool { return c.Shown == b.name || c.Hidden == b.name })
}

// lasting returns the metadata of requests that the gateway makes for a client: a copy,
// without what belongs to one request.
func lasting(m *mcp.Metadata) mcp.Metadata {
	return mcp.Metadata{
		Revision: m.Revision, Principal: m.Principal, Grant: m.Grant, Session: m.Session,
		Client: bytes.Clone(m.Client), Capabilities: withoutTasks(bytes.Clone(m.Capabilities)),
	}
}

// newRequest returns a request that the gateway makes for a client, with the metadata of
// that: a modern one carries them in its params.
func newRequest(method string, params jsonrpc.Value, meta *mcp.Metadata) *mcp.Request {
	req := &mcp.Request{Method: method, Params: params, Meta: *meta}
	if meta.Revision.Era() == mcp.Modern {
		bare := *req
		bare.Meta.Revision = "" // as if nothing were there yet
		req.Params = mcp.ForModern(&bare, meta.Revision, jsonrpc.ID{})
	}
	return req
}
