package client

import (
	"github.com/mcpsplice/mcpsplice/mcp"
)

// listsOf are the methods of the lists that a notification is about.
var listsOf = map[string][]string{
	mcp.NotificationToolsListChanged:     {mcp.MethodListTools},
	mcp.NotificationPromptsListChanged:   {mcp.MethodListPrompts},
	mcp.NotificationResourcesListChanged: {mcp.MethodListResources, mcp.MethodListResourceTemplates},
}

// watch keeps a subscription of the client's own: for the cache, for log messages
// and questions outside calls. It does nothing if there is one.
func (c *Client) watch() {
	c.mu.Lock()
	if c.watching || c.closed {
		c.mu.Unlock()
		return
	}
	c.watching = true
	c.mu.Unlock()
	filter := mcp.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, Session: true}
	s := c.newSubscription(filter)
	acked := make(chan error, 1)
	if !c.start(func() { s.run(acked) }) {
		s.cancel()
	}
}

// told takes up what a server has told outside calls.
func (c *Client) told(n *mcp.Notification) {
	if n.Method == mcp.NotificationMessage {
		c.logged(n)
	}
	c.cache.changed(listsOf[n.Method]...)
}

// resynced forgets what may have changed while nobody listened.
func (c *Client) resynced() {
	for _, lists := range listsOf {
		c.cache.changed(lists...)
	}
}
