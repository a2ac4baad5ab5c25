package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/gateway"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// TestEverythingAtOnce has backends come, go, hang and change while clients of several
// principals list, call, read and listen. Every request ends, and so does the gateway.
func TestEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, &gateway.Options{MaxViews: 5, MaxKept: 10_000}, badCompany())
		radio := listed("x:1")
		calls := newRadio(radio).calls
		add(t, g, "radio", radio)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				select {
				case h := <-calls: // whose client may have gone
					_ = h.caller.Notify(h.ctx, &mcp.Notification{Method: mcp.NotificationToolsListChanged})
					h.end <- errCrashed
				case <-ctx.Done():
				}
			}
		})
		for n := range 4 {
			wg.Go(func() {
				name := fmt.Sprint("extra", n)
				for ctx.Err() == nil {
					if err := g.Add(name, newFake("x"), nil); err != nil {
						t.Error(err)
					}
					pause(ctx)
					g.Remove(name)
					pause(ctx)
					g.Status()
					g.Conflicts()
				}
			})
		}
		requests := []struct{ method, params string }{
			{mcp.MethodListTools, `{}`}, {mcp.MethodListResources, `{}`}, {mcp.MethodDiscover, `{}`},
			{mcp.MethodCallTool, `{"name":"a__x"}`}, {mcp.MethodCallTool, `{"name":"extra1__x"}`}, {mcp.MethodCallTool, `{"name":"hung__hung"}`},
			{mcp.MethodReadResource, `{"uri":"x:1"}`}, {mcp.MethodReadResource, `{"uri":"x:2"}`},
			{mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}}`},
			{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"a__x"}}`},
		}
		for n := range 30 {
			wg.Go(func() {
				for ctx.Err() == nil {
					r := requests[rand.N(len(requests))]
					req := request(r.method, r.params)
					req.Meta = as(fmt.Sprint(n%3), `{}`)
					req.Meta.Session = fmt.Sprint(n)
					asking, done := context.WithTimeout(ctx, rand.N(5*time.Second))
					// How it ends depends on what happens meanwhile.
					_, _ = g.Handle(asking, req, new(ear))
					done()
					pause(ctx)
				}
			})
		}
		wg.Wait()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range g.Status() {
			if s.Calls != 0 {
				t.Errorf("afterwards: %v", s)
			}
		}
	})
}

func pause(ctx context.Context) {
	select {
	case <-time.After(rand.N(300 * time.Millisecond)):
	case <-ctx.Done():
	}
}
