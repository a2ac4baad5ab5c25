package inflight_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

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

// A busyPrompt is told something else while it takes what came first.
type busyPrompt struct {
	prompt
	meanwhile func()
}

func (p *busyPrompt) Notify(ctx context.Context, n *mcp.Notification) error {
	err := p.prompt.Notify(ctx, n)
	if n.Method == "first" {
		p.meanwhile()
	}
	return err
}

// TestPromptCallersMissNothingAtTheBeginning_P5: what comes while one is given what came
// before it was there is not late either.
func TestPromptCallersMissNothingAtTheBeginning_P5(t *testing.T) {
	var calls inflight.Calls
	call := start(t, &calls, &mcp.Request{Method: mcp.MethodListen})
	call.Notify(&mcp.Notification{Method: "first"})
	p := &busyPrompt{prompt: prompt{hooked: make(chan struct{})}}
	read := make(chan []string, 1)
	p.meanwhile = func() {
		go func() {
			call.Notify(&mcp.Notification{Method: "second"})
			read <- p.seen() // before anything else is read
		}()
		select {
		case got := <-read:
			read <- got
		case <-time.After(50 * time.Millisecond): // it waits for its turn
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := call.Wait(t.Context(), p, 0)
		ended <- err
	}()
	if got := <-read; !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the reader went on at %q", got)
	}
	call.Finish(context.Canceled)
	<-ended
}
