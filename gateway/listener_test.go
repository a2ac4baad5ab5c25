package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/google/go-cmp/cmp"
)

// An ear is the Caller of a listen call in a synctest bubble. It keeps what it is told.
type ear struct {
	mu   sync.Mutex
	told []string // guarded by mu, like what follows
	ack  mcp.Filter
}

func (e *ear) Notify(_ context.Context, n *mcp.Notification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := n.Method
	if uri, ok := n.Params.LookupString("uri"); ok {
		text += " " + uri
	}
	if n.Method == mcp.NotificationAcknowledged {
		e.ack, _ = mcp.ReadFilter(&n.Params)
	}
	e.told = append(e.told, text)
	return nil
}

func (e *ear) Ask(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult([]byte(`{"roots":[]}`)), nil
}

// want waits until all is quiet and compares what was told since.
func (e *ear) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if diff := cmp.Diff(want, e.told); diff != "" {
		t.Errorf("the client is told (-want +got):\n%s", diff)
	}
	e.told = nil
}

// wantOf is want for what is told once or several times.
func (e *ear) wantOf(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	slices.Sort(e.told)
	e.told = slices.Compact(e.told)
	e.mu.Unlock()
	e.want(t, slices.Sorted(slices.Values(want))...)
}

// took returns how many notifications there were since.
func (e *ear) took() int {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.told)
	e.told = nil
	return n
}

func (e *ear) none(t *testing.T) {
	t.Helper()
	e.want(t)
}

// listen listens until stop is called, and returns when it was acknowledged.
func listen(t *testing.T, h mcp.Handler, meta mcp.Metadata, filter string) (e *ear, stop func()) {
	t.Helper()
	e = new(ear)
	req := request(mcp.MethodListen, fmt.Sprintf(`{"notifications":%s}`, filter))
	req.Meta = meta
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Handle(ctx, req, e)
		ended <- err
	}()
	for acked := false; !acked; {
		synctest.Wait()
		e.mu.Lock()
		acked = len(e.told) > 0
		e.mu.Unlock()
		select {
		case err := <-ended:
			t.Fatalf("the listen call ended: %v", err)
		default:
			<-time.After(time.Millisecond) // of the bubble
		}
	}
	e.want(t, mcp.NotificationAcknowledged)
	return e, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the listen call ended with %v", err)
		}
	}
}

// updated is the notification of a resource's change.
func updated(uri string) *mcp.Notification {
	params := jsonrpc.Edited(&jsonrpc.Value{}, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)})
	return &mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: params}
}
