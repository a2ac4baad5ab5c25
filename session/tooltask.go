package session

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Bounds of finding out which tools must be called as tasks.
const (
	toolListTimeout = 10 * time.Second
	maxToolPages    = 100
	// maxTaskTools is how many such tools are remembered. Of others the server's
	// error tells each time.
	maxTaskTools = mcp.MaxAnnotatedTools
)

// toolTasks knows which tools of a server must be called as tasks (2025-11-25, tasks,
// Tool-Level Negotiation). It learns that from lists of tools that pass, and lists
// them itself once if it has to.
type toolTasks struct {
	listing turn

	mu     sync.Mutex
	tools  map[string]bool // that must; guarded by mu, like what follows
	listed bool            // no other tools of the server must
	mute   bool            // the server has not listed them
	lists  int             // how often the list has changed
}

// required reports whether a tool must be called as a task.
func (k *toolTasks) required(ctx context.Context, c *Client, tool string) bool {
	must, known := k.lookup(tool)
	if known || k.listing.take(ctx) != nil {
		return must
	}
	defer k.listing.pass()
	if must, known = k.lookup(tool); known {
		return must
	}
	k.list(ctx, c, tool)
	must, _ = k.lookup(tool)
	return must
}

// mayBePlain reports whether a tool may be called as it is, although its server has
// answered as if it must be a task: the tool may have been executed, and the error be one
// that it has met itself. A new list tells. Of a tool that is in none, or of a server that
// does not list, nothing but that error says anything.
func (k *toolTasks) mayBePlain(ctx context.Context, c *Client, tool string) bool {
	if k.listing.take(ctx) != nil {
		return true
	}
	defer k.listing.pass()
	k.mu.Lock()
	lists := !k.mute
	k.mu.Unlock()
	if !lists || !k.list(ctx, c, tool) {
		return false
	}
	must, _ := k.lookup(tool)
	return !must
}

func (k *toolTasks) lookup(tool string) (must, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	must = k.tools[tool]
	return must, must || k.listed
}

// list lists all tools, and reports whether one is among them. A server that does not do
// that in time is not asked again.
func (k *toolTasks) list(ctx context.Context, c *Client, tool string) (found bool) {
	bounded, cancel := context.WithTimeout(ctx, toolListTimeout)
	defer cancel()
	k.mu.Lock()
	lists := k.lists
	k.mu.Unlock()
	var edits []jsonrpc.Edit
	mute := false
	for range maxToolPages {
		result, err := c.request(bounded, mcp.MethodListTools, edits...)
		if err != nil {
			c.opts.Logger.Debug("listing tools for those that must be tasks", "method", mcp.MethodListTools, "err", err)
			mute = true
			break
		}
		result.Value = result.Indexed()
		k.learn(&result)
		found = found || hasTool(&result, tool)
		cursor, ok := result.Lookup("nextCursor")
		// Some servers have a next page for ever.
		if !ok || string(cursor) == "null" || len(edits) > 0 && bytes.Equal(cursor, edits[0].Value) {
			break
		}
		edits = []jsonrpc.Edit{{Name: "cursor", Value: cursor}}
	}
	if ctx.Err() != nil {
		return found
	}
	k.mu.Lock()
	k.listed, k.mute = lists == k.lists, mute
	k.mu.Unlock()
	return found
}

func hasTool(list *mcp.Result, tool string) bool {
	raw, _ := list.Lookup("tools")
	for item := range jsonrpc.Items(raw) {
		v := jsonrpc.Trusted(item)
		if name, _ := v.LookupString("name"); name == tool {
			return true
		}
	}
	return false
}

// learn takes up the tools of a list.
func (k *toolTasks) learn(list *mcp.Result) {
	raw, _ := list.Lookup("tools")
	annotated := bytes.Contains(raw, []byte("taskSupport"))
	k.mu.Lock()
	defer k.mu.Unlock()
	if !annotated && len(k.tools) == 0 {
		return
	}
	for item := range jsonrpc.Items(raw) {
		tool := jsonrpc.Trusted(item)
		name, _ := tool.LookupString("name")
		execution := tool.Get("execution")
		support, _ := execution.LookupString("taskSupport")
		k.set(name, support == "required")
	}
}

// require says that a tool must be called as a task.
func (k *toolTasks) require(tool string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(tool, true)
}

// set is require, or takes it back. k.mu is held.
func (k *toolTasks) set(tool string, must bool) {
	if !must {
		delete(k.tools, tool)
		return
	}
	if k.tools == nil {
		k.tools = make(map[string]bool)
	}
	if len(k.tools) < maxTaskTools {
		k.tools[tool] = true
	}
}

// changed says that the server's list of tools is another one now.
func (k *toolTasks) changed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.tools) // which need not be tasks any more
	k.listed = false
	k.lists++
}
