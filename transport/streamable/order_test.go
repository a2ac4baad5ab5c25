package streamable_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// An orderedServer is one of HTTP with SSE that takes messages of a test one by one,
// when it is told to.
type orderedServer struct {
	*bubbled
	takes chan struct{}

	mu      sync.Mutex
	arrived []string // methods, guarded by mu
}

func newOrderedServer(t *testing.T) *orderedServer {
	s := &orderedServer{takes: make(chan struct{})}
	s.bubbled = newBubbled(t, s.answer)
	return s
}

func (s *orderedServer) answer(ctx context.Context, m *jsonrpc.Message) string {
	method := string(m.Method)
	switch {
	case m.Kind == jsonrpc.Request:
		go s.say(resultEvent(m, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`))
		return ""
	case !strings.HasPrefix(method, "notifications/vendor/"):
		return ""
	}
	s.mu.Lock()
	s.arrived = append(s.arrived, strings.TrimPrefix(method, "notifications/vendor/"))
	s.mu.Unlock()
	select {
	case <-s.takes:
	case <-ctx.Done():
	}
	return ""
}

// check returns if these messages have arrived, when nothing moves any more.
func (s *orderedServer) check(what string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.arrived, want) {
		s.t.Fatalf("%s: %q have arrived, want %q", what, s.arrived, want)
	}
}

// TestMessageThatIsNotSentLetsNobodyPast: the next one still waits for the one that
// came before both, and is on its way.
func TestMessageThatIsNotSentLetsNobodyPast_B151(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before int // messages that hold a slot when the one that fails comes
	}{
		{"its context has ended", 1},
		{"there is no slot for it", streamable.MaxPosting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newOrderedServer(t)
				go s.say(endpointIs("/m"))
				c, err := streamable.DialSSE(t.Context(), "http://old.example/sse", &streamable.DialOptions{Transport: s})
				if err != nil {
					t.Fatal(err)
				}
				defer closeEdge(t, c)
				send := func(ctx context.Context, name string) error {
					_, err := c.Handle(ctx, &mcp.Request{Method: "notifications/vendor/" + name, Notification: true}, mcp.NoCaller{})
					return err
				}
				for i := range tt.before {
					if err := send(t.Context(), fmt.Sprint(i)); err != nil {
						t.Fatal(err)
					}
				}
				s.check("while the first is being taken", "0")
				soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if tt.before < streamable.MaxPosting {
					cancel()
				}
				if err := send(soon, "failing"); err == nil {
					t.Error("a message is sent that cannot be")
				}
				cancel()
				want := []string{"0"}
				if tt.before == streamable.MaxPosting { // one of them makes room
					s.takes <- struct{}{}
					want = append(want, "1")
					s.check("when the first has been taken", want...)
				}
				if err := send(t.Context(), "last"); err != nil {
					t.Fatal(err)
				}
				s.check("while one before the last is being taken", want...)
				for i := len(want); i < tt.before; i++ {
					s.takes <- struct{}{}
					want = append(want, fmt.Sprint(i))
					s.check("one after the other", want...)
				}
				s.takes <- struct{}{}
				s.check("at last", append(want, "last")...)
				s.takes <- struct{}{}
			})
		})
	}
}
