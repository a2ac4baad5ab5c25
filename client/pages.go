package client

import (
	"context"

	"github.com/mcpsplice/mcpsplice/internal/visit"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// visits are the pages that the user was asked to open for one call.
type visits struct {
	visit.Pages
	done <-chan struct{} // closed when a page has been completed since the last attempt began
}

// openPages has the user open the pages without which a legacy server refuses the call,
// each once, or waits for the user to be done with them.
func (d *dialogue) openPages(ctx context.Context, refusal error) error {
	required := requiredPages(refusal)
	urls := make([]string, len(required))
	for i := range required {
		urls[i] = visit.URL(&required[i])
	}
	d.visits.Retain(urls)
	asked := false
	for i := range required {
		if d.visits.Answer(urls[i]) != nil {
			continue
		}
		if !mcp.CanAsk(d.client.link.dialer.opts.Capabilities, &required[i]) {
			return refusal
		}
		if !asked {
			if err := d.count(refusal); err != nil {
				return err
			}
		}
		asked = true
		answer, err := d.caller.Ask(ctx, &required[i])
		if ended := d.ended(ctx, refusal); err != nil && ended != nil {
			return ended
		}
		if err != nil || !d.visits.Keep(urls[i], answer.Raw()) {
			return refusal
		}
	}
	if !asked {
		return d.waitForPages(ctx, refusal)
	}
	d.visits.Asked()
	return nil
}

// waitForPages waits before the server is asked again whether the user is done: until it
// tells so, if that is sooner. Refusal is the error that it has answered with, nil if it
// was a result.
func (d *dialogue) waitForPages(ctx context.Context, refusal error) error {
	wait, ok := d.visits.Next()
	if !ok {
		return visit.TooLong(d.req.Method, refusal)
	}
	d.caller.clock.stop() // as while the user is asked
	defer d.caller.clock.resume()
	waiting, done := d.client.untilClosed(ctx)
	defer done()
	if sleep(waiting, wait, d.visits.done) {
		return nil
	}
	return d.ended(ctx, refusal)
}

// requiredPages returns the questions in the error of a server that wants pages to be
// opened, none if it is not one.
func requiredPages(err error) []mcp.Request {
	if !jsonrpc.FromPeer(err) {
		return nil
	}
	return visit.Required(err, MaxInputRequests)
}
