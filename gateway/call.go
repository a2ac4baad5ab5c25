package gateway

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A route is where a name leads: a backend, and the name there as JSON, nil if it is
// the same.
type route struct {
	backend *backend
	key     []byte
}

// call brings a call of a tool, or a request for a prompt, to its backend.
func (g *Gateway) call(ctx context.Context, req *mcp.Request, caller mcp.Caller, k kind) (mcp.Result, error) {
	name, ok := req.Params.LookupString("name")
	if !ok {
		return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: name must be a string")
	}
	r, err := g.find(ctx, req, k, name)
	if err != nil {
		return mcp.Result{}, err
	}
	if r.key == nil {
		return g.exchange(ctx, r.backend, attempt{req, caller}, name)
	}
	return g.exchange(ctx, r.backend, attempt{req, caller}, name, jsonrpc.Edit{Name: "name", Value: r.key})
}

// deliver gives a request to a backend, with edits of its params.
func (g *Gateway) deliver(ctx context.Context, b *backend, req *mcp.Request, caller mcp.Caller, edits ...jsonrpc.Edit) (mcp.Result, error) {
	result, err := b.give(ctx, forwarded(req, edits), caller)
	b.ended(g.opts.Logger, req.Method, err)
	if err == nil && req.Method == mcp.MethodCallTool && result.Type() == mcp.TaskCreated {
		return mcp.Result{}, &mcp.CallError{
			Method: req.Method, Kind: mcp.Unsupported, Outcome: mcp.Answered,
			Public: fmt.Sprintf("backend %q has made a task of the call, which nobody has asked for", b.name),
		}
	}
	return result, err
}

// find returns the route of a name. Backends whose it may be are asked for their lists
// first if nothing is known of these, or if the name is in none that is known: it may have
// been shown to another client of the view. They are waited for: how long a call may take
// is its caller's business.
func (g *Gateway) find(ctx context.Context, req *mcp.Request, k kind, name string) (route, error) {
	v := g.viewOf(&req.Meta)
	if r, ok := g.lookup(v, k, name); ok {
		return r, nil
	}
	g.learn(ctx, v, &req.Meta, func(b *backend) bool { return g.mayOwn(b, name) }, k)
	if ctx.Err() != nil {
		return route{}, givenUp(ctx, req.Method)
	}
	if r, ok := g.lookup(v, k, name); ok {
		return r, nil
	}
	failure := unknown(k, name)
	for b, err := range g.learnLate(ctx, v, req, k, func(b *backend) bool { return g.mayOwn(b, name) }) {
		if r, ok := g.lookup(v, k, name); ok {
			return r, nil
		}
		switch {
		case err != nil:
			failure = err
		case g.isMissing(v, b, k):
			failure = &mcp.CallError{
				Method: req.Method, Kind: mcp.Unreachable, Outcome: mcp.NotSent,
				Public: fmt.Sprintf("%.200q may be of backend %q, which has not said what it has", name, b.name),
			}
		}
	}
	if ctx.Err() != nil {
		return route{}, givenUp(ctx, req.Method)
	}
	return route{}, failure
}

// unknown is the error of a name that no backend has (2026-07-28, server/tools, Error
// Handling).
func unknown(k kind, name string) error {
	if k == resources {
		return jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "Resource not found: %.200s", name) // a modern edge changes the code
	}
	what := [lists]string{tools: "tool", prompts: "prompt", templates: "resource template"}[k]
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown %s: %.200s", what, name)
}

// mayOwn reports whether a name may be one of a backend's.
func (g *Gateway) mayOwn(b *backend, name string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return mayExpose(g.prefix(b), name, g.opts.MaxName)
}

// lookup finds a name, or a URI, among those that were shown, or are for whoever asks.
func (g *Gateway) lookup(v *view, k kind, name string) (route, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	layers := g.layers(v)
	for _, b := range g.backends {
		l := layers.list(b, k)
		if l == nil {
			continue
		}
		i, ok := l.routesOf(k, g.prefix(b), g.opts.MaxName).items[name]
		if !ok {
			continue
		}
		if l.items[i].name == name {
			return route{backend: b}, true
		}
		return route{b, l.items[i].key}, true
	}
	return route{}, false
}

// complete brings a completion to the backend whose prompt or template it is of.
func (g *Gateway) complete(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	ref := req.Params.Get("ref")
	switch kind, _ := ref.LookupString("type"); kind {
	case mcp.RefPrompt:
		name, _ := ref.LookupString("name")
		r, err := g.find(ctx, req, prompts, name)
		if err != nil {
			return mcp.Result{}, err
		}
		if r.key == nil {
			return g.deliver(ctx, r.backend, req, caller)
		}
		ref = jsonrpc.Edited(&ref, jsonrpc.Edit{Name: "name", Value: r.key})
		return g.deliver(ctx, r.backend, req, caller, jsonrpc.Edit{Name: "ref", Value: ref.Raw()})
	case mcp.RefResource:
		uri, _ := ref.LookupString("uri")
		b, err := g.ownerOfTemplate(ctx, req, uri)
		if err != nil {
			return mcp.Result{}, err
		}
		return g.deliver(ctx, b, req, caller)
	}
	return mcp.Result{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: ref must be of type %s or %s", mcp.RefPrompt, mcp.RefResource)
}

// forwarded returns a request as a backend is given it: with edits of its params, and
// without what would let it make a task. The request itself, if nothing is to be changed.
func forwarded(req *mcp.Request, edits []jsonrpc.Edit) *mcp.Request {
	if req.Method == mcp.MethodCallTool && req.Meta.Revision.Era() != mcp.Modern {
		if _, asks := req.Params.Lookup("task"); asks {
			edits = append(edits, jsonrpc.Edit{Name: "task"})
		}
	}
	declares := declaresTasks(req.Meta.Capabilities)
	if len(edits) == 0 && !declares && !req.Meta.TakesTasks {
		return req
	}
	out := *req
	out.Meta.TakesTasks = false
	if declares {
		out.Meta.Capabilities = withoutTasks(req.Meta.Capabilities)
		meta := req.Params.Get("_meta")
		if _, told := meta.Lookup(mcp.MetaClientCapabilities); told {
			meta = jsonrpc.Edited(&meta, jsonrpc.Edit{Name: mcp.MetaClientCapabilities, Value: out.Meta.Capabilities})
			edits = append(edits, jsonrpc.Edit{Name: "_meta", Value: meta.Raw()})
		}
	}
	if len(edits) > 0 {
		out.Params = edited(&req.Params, edits)
	}
	return &out
}

// edited returns params with edits of members that differ, indexed. Large ones are not
// passed over for that.
func edited(params *jsonrpc.Value, edits []jsonrpc.Edit) jsonrpc.Value {
	size := len(params.Raw()) + 64
	for _, e := range edits {
		size += len(e.Value)
	}
	b := jsonrpc.NewBuilder(size)
	done := 0
	for quoted, raw := range params.RawMembers() {
		name := string(bytes.Trim(quoted, `"`))
		if !isLegal(name) { // its form might change
			v := jsonrpc.Edited(params, edits...)
			return v.Indexed()
		}
		if i := slices.IndexFunc(edits, func(e jsonrpc.Edit) bool { return e.Name == name }); i >= 0 {
			done++
			if raw = edits[i].Value; raw == nil {
				continue
			}
		}
		b.AddRaw(name, raw)
	}
	if done < len(edits) {
		v := jsonrpc.Edited(params, edits...)
		return v.Indexed()
	}
	return b.Value()
}

// declaresTasks reports whether a client's capabilities hold the extension of tasks. Some
// libraries write slashes with a backslash before them.
func declaresTasks(declared []byte) bool {
	if !bytes.Contains(declared, []byte(mcp.ExtensionTasks)) && bytes.IndexByte(declared, '\\') < 0 {
		return false
	}
	all := jsonrpc.Trusted(declared)
	extensions := all.Get("extensions")
	_, there := extensions.Lookup(mcp.ExtensionTasks)
	return there
}

// withoutTasks returns a client's capabilities without the extension of tasks.
func withoutTasks(declared []byte) []byte {
	if !declaresTasks(declared) {
		return declared
	}
	all := jsonrpc.Trusted(declared)
	extensions := all.Get("extensions")
	extensions = jsonrpc.Edited(&extensions, jsonrpc.Edit{Name: mcp.ExtensionTasks})
	edited := jsonrpc.Edited(&all, jsonrpc.Edit{Name: "extensions", Value: extensions.Raw()})
	return edited.Raw()
}

// notified brings a client's notification to those that it concerns: that its roots have
// changed, to all backends. Others are about a request, which has found its backend by
// other means, or are of an extension.
func (g *Gateway) notified(ctx context.Context, req *mcp.Request) error {
	if req.Method != mcp.NotificationRootsListChanged {
		g.opts.Logger.Debug("a notification is not passed on", "method", strings.ToValidUTF8(req.Method, "?"))
		return nil
	}
	copied := &mcp.Request{
		Method: req.Method, Params: jsonrpc.Trusted(bytes.Clone(req.Params.Raw())), Notification: true, Meta: lasting(&req.Meta),
	}
	for _, b := range g.all() {
		if !g.start() {
			return closed(req.Method)
		}
		go func() {
			defer g.running.Done()
			ctx, cancel := context.WithTimeout(b.ctx, g.opts.ListBudget)
			defer cancel()
			if err := b.enter(copied.Method, copied.Meta.Principal); err != nil {
				g.opts.Logger.Debug("a notification is not passed on", "backend", b.name, "err", err)
				return
			}
			defer b.calls.leave(copied.Meta.Principal)
			_, err := b.ask(ctx, copied, mcp.NoCaller{})
			b.ended(g.opts.Logger, copied.Method, err)
		}()
	}
	return ctx.Err()
}
