package inflight_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A prompt keeps what comes, in order.
type prompt struct {
	mcp.NoCaller
	hooked chan struct{} // closed at the first notification

	mu   sync.Mutex
	once sync.Once
	got  []string
}

func (p *prompt) Notify(_ context.Context, n *mcp.Notification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, n.Method)
	p.once.Do(func() { close(p.hooked) })
	return nil
}

func (p *prompt) Missed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, "missed")
}

func (p *prompt) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// TestPromptCallersHaveItBeforeTheReaderGoesOn_P5: what is read later must not
// overtake it.
func TestPromptCallersHaveItBeforeTheReaderGoesOn_P5(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, &mcp.Request{Method: mcp.MethodListen})
	p := &prompt{hooked: make(chan struct{})}
	call.Notify(&mcp.Notification{Method: "first"}) // before anybody waits
	ended := make(chan error, 1)
	go func() {
		_, err := call.Wait(t.Context(), p, 0)
		ended <- err
	}()
	<-p.hooked
	want := []string{"first"}
	for _, method := range []string{"second", "third"} {
		call.Notify(&mcp.Notification{Method: method})
		want = append(want, method)
	}
	// The first of these may still have gone through the inbox; from then on
	// nothing does.
	for !slices.Equal(p.seen(), want) {
		runtime.Gosched()
	}
	for range 100 {
		call.Notify(&mcp.Notification{Method: "more"})
		if want = append(want, "more"); !slices.Equal(p.seen(), want) {
			t.Fatalf("the reader went on at %q", p.seen())
		}
	}
	calls.Missed()
	if got := p.seen(); got[len(got)-1] != "missed" {
		t.Errorf("it was not told: %q", got)
	}
	call.Finish(context.Canceled)
	<-ended
	call.Notify(&mcp.Notification{Method: "late"})
	if got := p.seen(); got[len(got)-1] != "missed" {
		t.Errorf("after the end came %q", got)
	}
}
