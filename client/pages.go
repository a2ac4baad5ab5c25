package client

import (
	"context"
	"errors"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Waits before a call is made again whose pages have all been opened, while the user
// is not done with them.
const (
	minPageWait = time.Second
	maxPageWait = 15 * time.Second
)

// visits are the pages that the user had to open for one call: some legacy servers
// refuse it until then (2025-11-25, client/elicitation, URL Elicitation Required).
type visits struct {
	client       *Client
	elicitations *elicitations
	opened       map[string]bool // by URL
	pause        backoff
	done         <-chan struct{} // closed when a page has been completed since the last attempt
}

// open has the user open the pages that an error names, each once, and reports
// whether the call can be made again.
func (v *visits) open(ctx context.Context, capabilities []byte, refusal error, caller *guardedCaller) bool {
	asked := false
	questions := pagesOf(refusal)
	defer func() { v.done = v.elicitations.completion() }() // while the call is made again, too
	for i := range questions {
		url, _ := questions[i].Params.LookupString("url")
		if v.opened[url] {
			continue
		}
		if !mcp.CanAsk(capabilities, &questions[i]) {
			return false
		}
		answer, err := caller.Ask(ctx, &questions[i])
		if action, _ := answer.LookupString("action"); err != nil || mcp.ElicitAction(action) != mcp.Accept {
			return false
		}
		if v.opened == nil {
			v.opened = make(map[string]bool)
		}
		v.opened[url], asked = true, true
	}
	if asked || len(questions) == 0 {
		return asked
	}
	v.pause.bound = max(v.pause.bound, minPageWait/2)
	waiting, done := v.client.untilClosed(ctx)
	defer done()
	return sleep(waiting, v.pause.grow(caller.clock.most(maxPageWait)), v.done) || ctx.Err() == nil
}

// pagesOf returns the questions in the error of a server that wants pages to be
// opened, none if it is not one.
func pagesOf(err error) []mcp.Request {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != jsonrpc.CodeURLElicitationRequired || !jsonrpc.FromPeer(err) {
		return nil
	}
	raw, _ := refused.Data.Lookup("elicitations")
	pages := jsonrpc.Elements(raw)
	if len(pages) > MaxInputRequests {
		return nil
	}
	questions := make([]mcp.Request, len(pages))
	for i, page := range pages {
		questions[i] = mcp.Request{Method: mcp.MethodElicit, Params: jsonrpc.Trusted(page)}
		if mode, _ := questions[i].Params.LookupString("mode"); mode != mcp.ElicitURL {
			return nil
		}
	}
	return questions
}
