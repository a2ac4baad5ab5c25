package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A publisher is a Subscriber with one subscription at a time.
type publisher struct {
	mcp.HandlerFunc // answers everything else

	refuse error

	begun  chan mcp.Caller
	failed chan struct{}
	err    error
	ended  chan struct{}
}

func newPublisher() *publisher {
	return &publisher{HandlerFunc: echo, begun: make(chan mcp.Caller, 1), failed: make(chan struct{}), ended: make(chan struct{})}
}

func (p *publisher) Subscribe(ctx context.Context, _ *mcp.Request, caller mcp.Caller) (mcp.Subscription, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	err := caller.Notify(ctx, mcp.Filter{}.Acknowledge())
	p.begun <- caller
	return p, err
}

func (p *publisher) Failed() <-chan struct{} { return p.failed }

func (p *publisher) End() (mcp.Result, error) {
	close(p.ended)
	return mcp.RawResult([]byte(`{"resultType":"complete"}`)), p.err
}

// A flusher notes what it had when it was flushed.
type flusher struct {
	nowhere

	mu      sync.Mutex
	written strings.Builder // guarded by mu
	flushed []string        // guarded by mu
	status  int             // guarded by mu
}

func newFlusher() *flusher { return &flusher{nowhere: nowhere{make(http.Header)}} }

func (f *flusher) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.Write(p)
}

func (f *flusher) WriteHeader(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

func (f *flusher) FlushError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flushed = append(f.flushed, f.written.String())
	f.written.Reset()
	return nil
}

func listenRequest(ctx context.Context) *http.Request {
	const body = `{"jsonrpc":"2.0","id":"l\u0031","method":"subscriptions/listen","params":{"notifications":{},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func TestSubscriberTellsManyChangesInOneGo(t *testing.T) {
	p := newPublisher()
	h := streamable.NewHandler(p, nil)
	defer h.Close()
	w := newFlusher()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, listenRequest(t.Context()))
	}()
	caller := <-p.begun
	var list []*mcp.Notification
	for _, uri := range []string{"a:1", "a:2", "a:3"} {
		list = append(list, &mcp.Notification{
			Method: mcp.NotificationResourceUpdated, Params: jsonrpc.Trusted([]byte(`{"uri":"` + uri + `"}`)),
		})
	}
	list = append(list, &mcp.Notification{Method: mcp.NotificationElicitationComplete}) // no modern client knows it
	if err := mcp.NotifyAll(t.Context(), caller, list); err != nil {
		t.Fatal(err)
	}
	h.Drain()
	<-done
	<-p.ended
	event := func(message string) string { return "event: message\ndata: " + message + "\n\n" }
	const id = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l\u0031"}`
	updated := func(uri string) string {
		return event(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `",` + id + `}}`)
	}
	want := []string{
		event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},` + id + `}}`),
		updated("a:1") + updated("a:2") + updated("a:3"),
		event(`{"jsonrpc":"2.0","id":"l\u0031","result":{` + id + `,"resultType":"complete"}}`),
	}
	if got := strings.Join(w.flushed, "|"); got != strings.Join(want, "|") || w.written.Len() > 0 {
		t.Errorf("it sent\n%s\nand not\n%s", got, strings.Join(want, "|"))
	}
}

func TestSubscriptionsEnd(t *testing.T) {
	tests := []struct {
		name string
		end  func(p *publisher, cancel func())
		want string // at the end of what is sent
	}{
		{"when the client goes", func(_ *publisher, cancel func()) { cancel() }, `"resultType":"complete"`},
		{"when it cannot be told", func(p *publisher, _ func()) {
			p.err = errors.New("something secret")
			close(p.failed)
		}, `"error":{"code":-32603,"message":"Internal error"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPublisher()
			h := streamable.NewHandler(p, nil)
			defer h.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := newFlusher()
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.ServeHTTP(w, listenRequest(ctx))
			}()
			<-p.begun
			test.end(p, cancel)
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("it has not ended")
			}
			<-p.ended
			if got := strings.Join(w.flushed, ""); !strings.Contains(got[strings.LastIndex(got, "data:"):], test.want) {
				t.Errorf("it sent %s", got)
			}
		})
	}
}

func TestSubscriptionThatIsRefused(t *testing.T) {
	p := newPublisher()
	p.refuse = &mcp.CallError{Method: mcp.MethodListen, Kind: mcp.LimitExceeded, Limit: "MaxListens", Public: "3 subscriptions are open"}
	h := streamable.NewHandler(p, nil)
	defer h.Close()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, listenRequest(t.Context()))
	if body := w.Body.String(); !strings.Contains(body, `"id":"l\u0031","error":{`) || !strings.Contains(body, "3 subscriptions are open") {
		t.Errorf("status %d: %s", w.Code, body)
	}
}
