package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// tryWait is how long a backend may take that is asked for a resource which it has not
// listed, while there are others that may have it.
const tryWait = 10 * time.Second

// read brings the reading of a resource to the backend that lists it. One that nobody
// lists is read at those whose templates it fits, and then at all others that have
// resources, one after the other: reading is safe to repeat. The retry of a request that
// needed input goes where that was answered, and to nobody else.
func (g *Gateway) read(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	uri, ok := req.Params.LookupString("uri")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: uri must be a string")
	}
	v := g.viewOf(&req.Meta)
	a := attempt{req, caller}
	retry := isRetry(&req.Params)
	if b := g.foundAt(v, uri); b != nil && retry {
		return g.readAt(ctx, v, uri, b, a)
	}
	if b := g.ownerOf(v, uri); b != nil {
		return g.readAt(ctx, v, uri, b, a)
	}
	g.learn(ctx, v, &req.Meta, anyBackend, resources, templates)
	if ctx.Err() != nil {
		return mcp.Result{}, givenUp(ctx, req.Method)
	}
	if b := g.ownerOf(v, uri); b != nil {
		return g.readAt(ctx, v, uri, b, a)
	}
	candidates := g.candidates(v, uri)
	if retry && len(candidates) > 1 {
		return mcp.Result{}, errOtherAsked()
	}
	return g.try(ctx, v, uri, candidates, a)
}

// readAt reads a resource at the backend that has it. One that needs input is where the
// retry goes, even if another one lists the resource by then.
func (g *Gateway) readAt(ctx context.Context, v *view, uri string, b *backend, a attempt) (mcp.Result, error) {
	result, err := g.exchange(ctx, b, a, uri)
	switch {
	case err == nil && result.Type() == mcp.InputRequired:
		g.learnOwner(v, uri, b)
	case isNotFound(err):
		g.mu.Lock()
		delete(v.trail.found, uri) // it may be elsewhere now
		g.mu.Unlock()
	}
	return result, err
}

// isNotFound reports whether an error may say that a backend has no such resource.
func isNotFound(err error) bool {
	return hasCode(err, jsonrpc.CodeResourceNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound)
}

func anyBackend(*backend) bool { return true }

// ownerOf returns the backend that lists a resource, or was found to have it; nil if
// none is known.
func (g *Gateway) ownerOf(v *view, uri string) *backend {
	if r, ok := g.lookup(v, resources, uri); ok {
		return r.backend
	}
	return g.foundAt(v, uri)
}

// foundAt returns the backend that a resource was found at, nil if it was at none.
func (g *Gateway) foundAt(v *view, uri string) *backend {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return v.trail.found[uri]
}

// An attempt is a request and its Caller.
type attempt struct {
	req    *mcp.Request
	caller mcp.Caller
}

// try reads a resource at one backend after the other, until one has it. One whose
// template it fits, and that cannot read it, has it; from another one that may be how it
// says that it has not.
func (g *Gateway) try(ctx context.Context, v *view, uri string, candidates []candidate, a attempt) (mcp.Result, error) {
	failure, known := unknown(resources, uri), missing
	for i, c := range candidates {
		result, begun, err := g.tryOne(ctx, c.backend, uri, i == len(candidates)-1, a)
		if err == nil {
			g.learnOwner(v, uri, c.backend)
			return result, nil
		}
		if begun || ctx.Err() != nil || c.fit >= 0 && isAnswer(err) && !isNotFound(err) {
			return mcp.Result{}, err
		}
		if said := whatSays(err); i == 0 || said > known {
			failure, known = err, said
		}
	}
	return mcp.Result{}, failure
}

// What the failure to read a resource says of it; the more, the sooner the client is told
// of that one.
const (
	missing = iota // a backend has no such resource
	unclear        // it may have
	lost           // it could not be asked
)

func whatSays(err error) int {
	switch {
	case isNotFound(err):
		return missing
	case isAnswer(err):
		return unclear
	}
	return lost
}

// tryOne reads a resource at one backend, for which it has tryWait unless it is the last
// one. Begun says that nobody else is to be asked.
func (g *Gateway) tryOne(ctx context.Context, b *backend, uri string, last bool, a attempt) (result mcp.Result, begun bool, err error) {
	if last {
		result, err = g.exchange(ctx, b, a, uri)
		return result, false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(tryWait, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	t := &trial{relay: relay{a.caller}, keep: func() { timer.Stop() }}
	result, err = g.exchange(ctx, b, attempt{a.req, t}, uri)
	return result, t.begun.Load(), err
}

func (g *Gateway) learnOwner(v *view, uri string, b *backend) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.ctx.Err() == nil && len(uri) <= maxKey {
		remember(v.trail.found, strings.Clone(uri), b)
	}
}

// A candidate is a backend that may have a resource which nobody lists.
type candidate struct {
	backend *backend
	fit     int // with its templates; -1 if it fits none
}

// candidates returns the backends that may have a resource which nobody lists: first
// those with templates that it fits, those with the longest literal text first, then
// those that have resources.
func (g *Gateway) candidates(v *view, uri string) []candidate {
	var all []candidate
	g.mu.RLock()
	for _, b := range g.backends {
		can, _ := g.knownCapabilities(v, b)
		if can != nil && !can.has[resources] {
			continue
		}
		c := candidate{b, -1}
		if l := g.known(v, b, templates); l != nil {
			for i := range l.items {
				c.fit = max(c.fit, fit(l.items[i].name, uri))
			}
		}
		all = append(all, c)
	}
	g.mu.RUnlock()
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.fit, a.fit) })
	return all
}

// fit returns how much literal text a URI shares with a template that it may have been
// made of, -1 if it was not. It takes time in proportion to both, and may take what
// stands between literals for a value that it is not; the backend knows better.
func fit(template, uri string) int {
	before, rest, found := strings.Cut(template, "{")
	if !found {
		if uri == template {
			return len(uri)
		}
		return -1
	}
	if !strings.HasPrefix(uri, before) {
		return -1
	}
	n := len(before)
	uri = uri[len(before):]
	for {
		_, after, closed := strings.Cut(rest, "}")
		if !closed {
			return -1
		}
		literal, more, again := strings.Cut(after, "{")
		n += len(literal)
		if !again {
			if strings.HasSuffix(uri, literal) {
				return n
			}
			return -1
		}
		i := strings.Index(uri, literal)
		if i < 0 {
			return -1
		}
		uri, rest = uri[i+len(literal):], more
	}
}

// ownerOfTemplate returns the backend that lists a resource template, or a resource of
// that URI.
func (g *Gateway) ownerOfTemplate(ctx context.Context, req *mcp.Request, uri string) (*backend, error) {
	v := g.viewOf(&req.Meta)
	find := func() *backend {
		if r, ok := g.lookup(v, templates, uri); ok {
			return r.backend
		}
		return g.ownerOf(v, uri)
	}
	if b := find(); b != nil {
		return b, nil
	}
	g.learn(ctx, v, &req.Meta, anyBackend, resources, templates)
	if ctx.Err() != nil {
		return nil, givenUp(ctx, req.Method)
	}
	if b := find(); b != nil {
		return b, nil
	}
	if candidates := g.candidates(v, uri); len(candidates) > 0 && candidates[0].fit >= 0 {
		return candidates[0].backend, nil
	}
	return nil, unknown(templates, uri)
}
