package client

import (
	"slices"
	"sync"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// maxElicitations is how many pages whose end has not been told are remembered. Of
// more the oldest are forgotten, and at once those whose ids are longer than
// maxElicitationID bytes.
const (
	maxElicitations  = 1000
	maxElicitationID = 1 << 10
)

// elicitations are the pages that users were asked to open and whose end the server
// may tell: "Clients MUST ignore notifications referencing unknown or
// already-completed IDs" (2025-11-25, client/elicitation).
type elicitations struct {
	mu      sync.Mutex
	open    []string      // ids, the oldest first; guarded by mu, like what follows
	changed chan struct{} // closed and replaced when one was completed
}

// begin takes up the id of a page.
func (e *elicitations) begin(id string) {
	if id == "" || len(id) > maxElicitationID {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = slices.DeleteFunc(e.open, func(other string) bool { return other == id })
	if len(e.open) == maxElicitations {
		e.open = slices.Delete(e.open, 0, 1)
	}
	e.open = append(e.open, id)
}

// complete reports whether id is that of a page which has not been completed.
func (e *elicitations) complete(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.open, id)
	if i < 0 {
		return false
	}
	e.open = slices.Delete(e.open, i, i+1)
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	return true
}

// completion is closed when the next page is completed.
func (e *elicitations) completion() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// completed takes up that a server tells the end of an elicitation.
func (c *Client) completed(n *mcp.Notification) {
	id, _ := n.Params.LookupString("elicitationId")
	if c.elicitations.complete(id) && c.opts.ElicitDone != nil {
		c.opts.ElicitDone(id)
	}
}
