package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// A cutter breaks event streams off: each after as many writes to the network as
// the next of its lengths says, and none when they are used up.
type cutter struct {
	http.Handler

	mu      sync.Mutex
	lengths []int
	cuts    int
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Handler.ServeHTTP(&cutWriter{ResponseWriter: w, cutter: c, left: -1}, r)
}

type cutWriter struct {
	http.ResponseWriter

	cutter *cutter
	left   int // -1 before the first
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError implements what [http.ResponseController] looks for.
func (w *cutWriter) FlushError() error {
	c := w.cutter
	c.mu.Lock()
	if w.left < 0 && len(c.lengths) > 0 {
		w.left, c.lengths = c.lengths[0], c.lengths[1:]
	}
	cut := w.left == 0
	if w.left--; cut {
		c.cuts++
	}
	c.mu.Unlock()
	if cut {
		panic(http.ErrAbortHandler)
	}
	w.left = max(w.left, -1)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// noter keeps the notifications that a caller gets.
type noter struct {
	mcp.NoCaller

	mu  sync.Mutex
	got []string
}

func (n *noter) Notify(_ context.Context, m *mcp.Notification) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = append(n.got, string(m.Params.Raw()))
	return nil
}

func (n *noter) texts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.got)
}

// TestOurClientResumesOurServer_B107_B109 breaks the streams of our own client's
// call at each place, once and again.
func TestOurClientResumesOurServer_B107_B109(t *testing.T) {
	const last = 4
	for _, lengths := range [][]int{nil, {0}, {1}, {2}, {3}, {1, 0}, {1, 1, 1}, {2, 0, 1}, {2, 2}, {3, 0, 2}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			t.Parallel()
			p := newPuppet()
			opts := strict(t)
			opts.Retry = time.Millisecond
			h := streamable.NewHandler(p, &opts)
			t.Cleanup(h.Close)
			cut := &cutter{Handler: h}
			c := dial(t, newServer(t, cut), knownEra(mcp.Legacy))
			// The client's own GET stream takes none of the cuts.
			eventually(t, func() bool { return h.Streams() == 1 })
			cut.mu.Lock()
			cut.lengths = lengths
			cut.mu.Unlock()
			req, err := mcp.NewRequest(mcp.MethodCallTool, map[string]any{"name": "A"})
			if err != nil {
				t.Fatal(err)
			}
			heard := &noter{}
			answered := make(chan string, 1)
			go func() {
				result, err := c.Handle(t.Context(), req, heard)
				answered <- fmt.Sprint(string(result.Raw()), err)
			}()
			var want []string
			for i := 1; i <= last; i++ {
				p.notify(t, "A", i)
				want = append(want, fmt.Sprintf(`{"n":"A%d"}`, i))
				if i%2 == 0 {
					p.release(t, "A", time.Millisecond)
				}
			}
			p.end("A")
			firstEventLost := len(lengths) > 0 && lengths[0] == 0
			got := await(t, answered)
			cut.mu.Lock()
			cuts := cut.cuts
			cut.mu.Unlock()
			if len(lengths) > 0 && lengths[0] <= 1 && cuts == 0 { // several events may be one write
				t.Error("no stream was cut")
			}
			if firstEventLost {
				if got == `{"content":[],"of":"A"}<nil>` {
					t.Error("a stream is resumed of which nothing has come")
				}
				return
			}
			if got != `{"content":[],"of":"A"}<nil>` {
				t.Errorf("the call: %s", got)
			}
			if texts := heard.texts(); !slices.Equal(texts, want) {
				t.Errorf("the client got %q, want %q", texts, want)
			}
		})
	}
}
