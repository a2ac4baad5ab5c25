package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// TestServerThatTakesNoAnswerHoldsNoCall_R18_B136: it asks, and then leaves every POST
// waiting. A call that is cancelled meanwhile ends, and the server is told.
func TestServerThatTakesNoAnswerHoldsNoCall_R18_B136(t *testing.T) {
	p := newPeer(t, legacyPeer("2025-11-25", "s", onPost(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if string(m.Method) != mcp.MethodCallTool {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})))
	c := dial(t, p.url, &streamable.DialOptions{DialOptions: transport.DialOptions{Capabilities: []byte(`{"elicitation":{}}`)}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := callWithin(ctx, c, questionable(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			close(asked)
			<-ctx.Done()
			return mcp.Result{}, ctx.Err()
		}))
		ended <- err
	}()
	await(t, asked)
	cancel()
	if err := await(t, ended); mcp.OutcomeOf(err) != mcp.MaybeExecuted {
		t.Errorf("the call ended with %v", err)
	}
	p.await(t, mcp.NotificationCancelled, 1)
	closeSoon(t, c)
}

// TestServerThatAsksAndTakesNoAnswer: the answers that wait for it have a limit, and
// hold no call.
func TestServerThatAsksAndTakesNoAnswer_R18(t *testing.T) {
	const limit, questions = 256, 600
	var posting atomic.Int64
	full, over := make(chan struct{}, questions), make(chan struct{})
	p := newPeer(t, legacyPeer("2025-11-25", "s", func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet:
			writeStream(w, ":\n\n")
			for i := range questions {
				writeMore(w, event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)))
			}
			<-r.Context().Done()
		case m.Kind == jsonrpc.Response:
			if posting.Add(1) >= limit {
				full <- struct{}{}
			}
			<-over
		default:
			justAnswer(w, r, m)
		}
	}))
	defer close(over)
	c := dial(t, p.url, knownEra(mcp.Legacy))
	await(t, full)
	for range 50 {
		if _, err := call(t, c, mcp.NoCaller{}); err != nil {
			t.Error(err)
		}
	}
	if n := posting.Load(); n > limit {
		t.Errorf("%d answers wait to be taken", n)
	}
}

// questionable is a Caller that is asked.
type questionable func(context.Context, *mcp.Request) (mcp.Result, error)

func (questionable) Notify(context.Context, *mcp.Notification) error { return nil }

func (q questionable) Ask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return q(ctx, req)
}
