package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
			if len(lengths) > 0 && lengths[0] == 0 { // the first event
				if got := await(t, answered); got == `{"content":[],"of":"A"}<nil>` {
					t.Error("a stream is resumed of which nothing has come")
				}
				return
			}
			var want []string
			for i := 1; i <= last; i++ {
				p.notify(t, "A", i)
				want = append(want, fmt.Sprintf(`{"n":"A%d"}`, i))
				if i == 1 { // what follows is another write
					eventually(t, func() bool { return len(heard.texts()) > 0 })
				}
				if i%2 == 0 {
					p.release(t, "A", time.Millisecond)
				}
			}
			p.end("A")
			got := await(t, answered)
			cut.mu.Lock()
			cuts := cut.cuts
			cut.mu.Unlock()
			if len(lengths) > 0 && lengths[0] == 1 && cuts == 0 { // several events may be one write
				t.Error("no stream was cut")
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

// A brokenLine is the way to a client that carries so many bytes and no more. What is
// written is on its way when it is flushed.
type brokenLine struct {
	header  http.Header
	pending []byte
	carried []byte
	most    int
	unsure  bool // the last byte arrives, and the server is not told
}

func (w *brokenLine) Header() http.Header { return w.header }

func (w *brokenLine) WriteHeader(int) {}

func (w *brokenLine) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	return len(p), nil
}

// FlushError implements what [http.ResponseController] looks for.
func (w *brokenLine) FlushError() error {
	n := min(len(w.pending), w.most-len(w.carried))
	all := n == len(w.pending) && (!w.unsure || n+len(w.carried) < w.most)
	w.carried = append(w.carried, w.pending[:n]...)
	if w.pending = nil; all {
		return nil
	}
	return errors.New("the line is broken")
}

// whole returns the events that have come whole.
func (w *brokenLine) whole() string {
	return string(w.carried[:strings.LastIndex(string(w.carried), "\n\n")+1])
}

// seen returns the notifications of the tool A among them.
func (w *brokenLine) seen() []string { return toolNumbers.FindAllString(w.whole(), -1) }

// lastID returns the id of the last of them, empty if there is none.
func (w *brokenLine) lastID() string {
	if !firstID.MatchString(w.whole()) {
		return ""
	}
	return lastID(w.whole())
}

var toolNumbers = regexp.MustCompile(`"A\d+"`)

// broken is a GET of a session's own stream over a line, as far as that carries.
func broken(t *testing.T, h http.Handler, session, at string, w *brokenLine) {
	t.Helper()
	r := httptest.NewRequest("GET", "http://localhost/mcp", nil)
	if r.Header = legacyHeader(session); at != "" {
		r.Header.Set("Last-Event-Id", at)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.header = make(http.Header)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, r.WithContext(ctx))
	}()
	synctest.Wait() // all has been written that can be
	cancel()
	await(t, done)
}

// TestOwnStreamThatIsCut_B109 breaks a session's own stream off at each byte, while
// several events are written at a time. The client then has each event once, whether or
// not it says where it was.
func TestOwnStreamThatIsCut_B109(t *testing.T) {
	for _, tt := range []struct {
		name   string
		unsure bool
		named  []bool // whether the streams after the first say where the client was
	}{
		{"none is named", false, []bool{false}},
		{"the last is named", true, []bool{true}},
		{"the last is named, and then none", true, []bool{true, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for most, whole := 0, false; !whole; most++ {
					p := newPuppet()
					h := streamable.NewHandler(p, nil)
					session := visit(h, "POST", initializeRequest("2025-11-25"), legacyHeader("")).Header().Get("Mcp-Session-Id")
					call := request(h, "POST", callOf("A"), legacyHeader(session))
					await(t, p.tool("A").began)
					call.leave()
					await(t, call.done)
					for i := 1; i <= 3; i++ {
						p.notify(t, "A", i)
					}
					w := &brokenLine{most: most, unsure: tt.unsure}
					broken(t, h, session, "", w)
					got, at := w.seen(), w.lastID()
					whole = len(w.carried) < most
					for i, named := range tt.named {
						next := &brokenLine{}
						if i == len(tt.named)-1 {
							next.most = 1 << 20
						}
						if !named || at == "" {
							broken(t, h, session, "", next)
						} else {
							broken(t, h, session, at, next)
						}
						got = append(got, next.seen()...)
					}
					if strings.Join(got, "") != `"A1""A2""A3"` {
						t.Errorf("cut after %d bytes: the client got %s", most, got)
					}
					p.end("A")
					h.Close()
				}
			})
		})
	}
}
