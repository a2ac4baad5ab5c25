package streamable_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

const lateMessage = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"late"}}`

// loggingServer answers as a legacy server does that logs on its GET stream, a while
// after its response to a call of a tool.
func loggingServer(t *testing.T, late time.Duration, asStream bool) *bubbled {
	var s *bubbled
	s = newBubbled(t, func(_ context.Context, m *jsonrpc.Message) string {
		result := `{}`
		switch method := string(m.Method); {
		case m.Kind != jsonrpc.Request:
			return ""
		case method == mcp.MethodInitialize:
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"x","version":"1"}}`
		case method == mcp.MethodCallTool && s.stream != nil:
			time.AfterFunc(late, func() { s.say(event(lateMessage)) })
		}
		if asStream {
			return resultEvent(m, result)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID.Raw(), result)
	})
	return s
}

// TestLogMessageOfTheGetStreamComesBeforeTheResult: through a bridge, to a modern client
// whose response has been read before. Other calls wait for nothing.
func TestLogMessageOfTheGetStreamComesBeforeTheResult_B151(t *testing.T) {
	const late = 100 * time.Microsecond
	for _, tt := range []struct {
		name     string
		revision mcp.Revision
		level    mcp.Level
		asStream bool // the response
		noStream bool // outside calls
		want     []string
		waits    bool
	}{
		{name: "response as JSON", revision: mcp.Revision20260728, level: "info", want: []string{"late"}, waits: true},
		{name: "response as an event", revision: mcp.Revision20260728, level: "info", asStream: true, want: []string{"late"}, waits: true},
		{name: "no level", revision: mcp.Revision20260728},
		{name: "no GET stream", revision: mcp.Revision20260728, level: "info", noStream: true},
		{name: "a legacy client", revision: mcp.Revision20251125, level: "info"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := loggingServer(t, late, tt.asStream)
				if tt.noStream {
					s.stream = nil
				}
				pool := transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
					opts := knownEra(mcp.Legacy)
					opts.Transport = s
					return streamable.Dial(ctx, "http://legacy.example/mcp", opts)
				}, transport.PoolOptions{Logger: logger})
				defer func() {
					if err := pool.Close(); err != nil {
						t.Error(err)
					}
				}()
				meta := mcp.Metadata{Revision: tt.revision, Session: "m"}
				if _, err := pool.Handle(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Meta: meta}, mcp.NoCaller{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for the GET stream
				req := toolRequest("t", `{}`)
				req.Meta = meta
				req.Meta.LogLevel = tt.level
				var told []string
				began := time.Now()
				_, err := pool.Handle(t.Context(), req, notifiedFunc(func(n *mcp.Notification) {
					data, _ := n.Params.LookupString("data")
					told = append(told, data)
				}))
				if waited := time.Since(began) > 0; err != nil || !slices.Equal(told, tt.want) || waited != tt.waits {
					t.Errorf("before the result, %q has come in %v; %v", told, time.Since(began), err)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// A notifiedFunc is a caller that is told, and not asked.
type notifiedFunc func(*mcp.Notification)

func (f notifiedFunc) Notify(_ context.Context, n *mcp.Notification) error {
	f(n)
	return nil
}

func (notifiedFunc) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.Result{}, mcp.ErrCannotAsk
}
