package client

import (
	"github.com/mcpsplice/mcpsplice/jsonrpc"
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
	defer c.mu.Unlock()
	if c.watcher == nil && !c.closed {
		c.watcher = c.startWatcher()
	}
}

// watchAnew has the client's own subscription take up the log level. The last one that
// the server has acknowledged goes on until it acknowledges the new one.
func (c *Client) watchAnew() {
	if c.Verdict().Era != mcp.Legacy {
		return // modern servers are told with each call
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.watcher
	if old == nil || c.closed {
		return
	}
	s := c.startWatcher()
	c.watcher = s
	if old.wasAcked() {
		c.relieve()
		c.standIn = old
	} else {
		old.cancel()
	}
	c.running.Go(func() {
		<-s.acked // or s has ended
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watcher == s {
			c.relieve()
		}
	})
}

// relieve ends the subscription that goes on until the client's own is acknowledged, if
// there is one. c.mu is held.
func (c *Client) relieve() {
	if c.standIn != nil {
		c.standIn.cancel()
		c.standIn = nil
	}
}

// startWatcher starts a subscription of the client's own. c.mu is held.
func (c *Client) startWatcher() *Subscription {
	s := c.newSubscription(mcp.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, Session: true})
	c.running.Go(s.run)
	c.running.Go(s.log)
	return s
}

// log hands what comes outside calls to the functions for it.
func (s *Subscription) log() {
	for {
		e, ok := s.queue.take(s.ctx, s.done)
		if !ok {
			return
		}
		if e.Lost > 0 {
			s.client.opts.Logger.Warn("log messages, and ends of elicitations, were dropped", "count", e.Lost, "limit", "MaxEvents")
		}
		if e.Method == mcp.NotificationElicitationComplete {
			s.client.completed(&mcp.Notification{Method: e.Method, Params: jsonrpc.Trusted(e.Params)})
			continue
		}
		s.client.logged(e.Params, s.client.opts.Log)
	}
}

// ofSession reports whether a notification is for the client itself.
func ofSession(method string) bool {
	return method == mcp.NotificationMessage || method == mcp.NotificationElicitationComplete
}

// told takes up a change of lists.
func (c *Client) told(n *mcp.Notification) {
	if lists := listsOf[n.Method]; lists != nil {
		c.cache.changed(lists...)
	}
	if n.Method == mcp.NotificationToolsListChanged {
		c.tools.forget()
	}
}

// forgetUnheard forgets what may have changed while nobody listened: the lists first, or
// somebody could learn from one of them what was just forgotten, as in told.
func (c *Client) forgetUnheard() {
	c.forgetLists()
	c.tools.forgetOutputs()
}

// forgetLists forgets the pages of all lists.
func (c *Client) forgetLists() {
	for _, lists := range listsOf {
		c.cache.changed(lists...)
	}
}
