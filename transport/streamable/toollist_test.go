package streamable_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestServerWithoutAListOfToolsHoldsNoCalls: what a list would say of headers is not
// worth waiting for it again with each call, nor for long.
func TestServerWithoutAListOfToolsHoldsNoCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		list func(ctx context.Context, m *jsonrpc.Message) string
		wait time.Duration // of the first calls
	}{
		{"it says nothing", func(ctx context.Context, _ *jsonrpc.Message) string {
			<-ctx.Done()
			return ""
		}, 5 * time.Second},
		{"it has none", func(_ context.Context, m *jsonrpc.Message) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID.Raw())
		}, 0},
		{"it has pages without end, and slow ones", func(_ context.Context, m *jsonrpc.Message) string {
			<-time.After(time.Second)
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[],"nextCursor":"%s"}}`, m.ID.Raw(), m.ID.Raw())
		}, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first atomic.Int32 // requests for the first page
				s := newBubbled(t, func(ctx context.Context, m *jsonrpc.Message) string {
					switch _, more := m.Body.Lookup("cursor"); {
					case string(m.Method) == mcp.MethodDiscover:
						return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`, m.ID.Raw())
					case string(m.Method) != mcp.MethodListTools:
						return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, m.ID.Raw())
					case !more:
						first.Add(1)
					}
					return tt.list(ctx, m)
				})
				opts := knownEra(mcp.Modern)
				opts.Transport = s
				c, err := streamable.Dial(t.Context(), "http://localhost/mcp", opts)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for i, want := range []time.Duration{tt.wait, 0} {
					began := time.Now()
					var calling sync.WaitGroup
					for range 3 {
						calling.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
							defer cancel()
							if _, err := callWithin(ctx, c, mcp.NoCaller{}); err != nil {
								t.Error(err)
							}
						})
					}
					calling.Wait()
					if took := time.Since(began); took != want {
						t.Errorf("round %d took %v, want %v", i, took, want)
					}
				}
				if n := first.Load(); n != 1 {
					t.Errorf("the tools were listed %d times", n)
				}
			})
		})
	}
}
