package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/transport"
)

// writers are what a link can write to: a pipe in non-blocking mode, a socket,
// and a writer that always waits.
func writers(t *testing.T) map[string]func() (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	return map[string]func() (io.ReadCloser, io.WriteCloser){
		"pipe": func() (io.ReadCloser, io.WriteCloser) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return r, w
		},
		"socket": func() (io.ReadCloser, io.WriteCloser) {
			l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			w, err := net.Dial("unix", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return r, w
		},
		"memory": func() (io.ReadCloser, io.WriteCloser) { return io.Pipe() },
	}
}

// outgoing returns a link that writes to w and reads nothing until it is closed.
func outgoing(t *testing.T, w io.WriteCloser, opts transport.LineOptions) transport.Link {
	t.Helper()
	idle, end := io.Pipe()
	link := transport.NewLineLink(idle, w, func() error { return errors.Join(end.Close(), w.Close()) }, opts)
	t.Cleanup(func() {
		// It may be closed already.
		_ = link.Close()
	})
	return link
}

func TestConcurrentWritersKeepFramesWhole(t *testing.T) {
	for name, open := range writers(t) {
		t.Run(name, func(t *testing.T) {
			r, w := open()
			defer r.Close()
			link := outgoing(t, w, transport.LineOptions{MaxQueue: 64 << 10})
			const each, many = 100, 8
			length := func(j int) int { // some are too long to wait for others
				if j%9 == 0 {
					return 16<<10 - 50 + j*j*7
				}
				return j * j % 5000
			}
			var wg sync.WaitGroup
			for i := range many {
				wg.Go(func() {
					for j := range each {
						frame := fmt.Appendf(nil, "%d %d %s", i, j, strings.Repeat("x", length(j)))
						if err := link.Write(t.Context(), frame, j%2 == 0); err != nil {
							t.Error(err)
						}
					}
				})
			}
			lines := jsonrpc.NewLineReader(r, 1<<20)
			var next [many]int
			for range each * many {
				line, err := lines.ReadLine()
				if err != nil {
					t.Fatal(err)
				}
				var i, j int
				var rest string
				if _, err := fmt.Sscanf(string(line), "%d %d %s", &i, &j, &rest); err != nil && length(j) != 0 {
					t.Fatalf("%.60s: %v", line, err)
				}
				if next[i] != j || len(rest) != length(j) {
					t.Fatalf("writer %d: line %d of %d bytes came instead of %d", i, j, len(rest), next[i])
				}
				next[i]++
			}
			wg.Wait()
			if err := link.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBlockedPeerHoldsNoWriter_S168: until the queue is full, and then no longer
// than the writer's context.
func TestBlockedPeerHoldsNoWriter_S168_S169(t *testing.T) {
	for name, open := range writers(t) {
		t.Run(name, func(t *testing.T) {
			r, w := open()
			defer r.Close()
			link := outgoing(t, w, transport.LineOptions{MaxQueue: 1 << 20})
			frame := bytes.Repeat([]byte("x"), 64<<10)
			taken := 0
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				err := link.Write(ctx, append(make([]byte, 0, len(frame)+1), frame...), false)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if taken++; taken > 1000 {
					t.Fatal("the queue has no bound")
				}
			}
			if taken < 12 {
				t.Errorf("only %d messages were taken", taken)
			}
			waiting := make(chan error, 1)
			go func() {
				waiting <- link.Write(context.Background(), append(make([]byte, 0, len(frame)+1), frame...), false)
			}()
			if err := link.Close(); err != nil {
				t.Error(err)
			}
			if err := receive(t, "the end of a writer", waiting); err == nil {
				t.Error("a message was taken after Close")
			}
			if err := link.Write(t.Context(), []byte("late"), false); err == nil {
				t.Error("a message was taken after Close")
			}
			if err := link.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEndedContextWritesNothing_S158(t *testing.T) {
	r, w := io.Pipe()
	link := outgoing(t, w, transport.LineOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if err := link.Write(ctx, []byte("x"), false); !errors.Is(err, why) {
		t.Errorf("err %v", err)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(r); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestPeerThatTakesNothingMore_D244: what was queued is lost, and so the link
// ends, but not before what the peer had written was read.
func TestPeerThatTakesNothingMore_D244(t *testing.T) {
	for name, open := range writers(t) {
		t.Run(name, func(t *testing.T) {
			toPeer, w := open()
			in, fromPeer := io.Pipe()
			link := transport.NewLineLink(in, w, func() error { return errors.Join(in.Close(), w.Close()) }, transport.LineOptions{})
			defer link.Close()
			if err := toPeer.Close(); err != nil {
				t.Fatal(err)
			}
			read := make(chan string, 10)
			go func() {
				for {
					line, err := link.Read()
					if err != nil {
						read <- err.Error()
						return
					}
					read <- string(line)
				}
			}()
			// Whether the first learns of it depends on the writer.
			_ = link.Write(t.Context(), []byte("lost"), false)
			if _, err := io.WriteString(fromPeer, "last words\n"); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, "the last words", read); got != "last words" {
				t.Errorf("read %s", got)
			}
			if got := receive(t, "the end", read); !strings.HasPrefix(got, "the peer takes no more messages: ") {
				t.Errorf("ended with %s", got)
			}
			if err := link.Write(t.Context(), []byte("late"), false); err == nil {
				t.Error("a message was taken")
			}
		})
	}
}

func TestFirstWriterLearnsThatNothingWasWritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	link := outgoing(t, w, transport.LineOptions{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := link.Write(t.Context(), []byte("lost"), false); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("err %v", err)
	}
}

func TestFlush_S228(t *testing.T) {
	for name, open := range writers(t) {
		t.Run(name, func(t *testing.T) {
			r, w := open()
			link := outgoing(t, w, transport.LineOptions{})
			flusher := link.(interface{ Flush(context.Context) error })
			if err := flusher.Flush(t.Context()); err != nil {
				t.Errorf("nothing to flush: %v", err)
			}
			const size = 4 << 20
			if err := link.Write(t.Context(), append(make([]byte, 0, size+1), bytes.Repeat([]byte("x"), size)...), false); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := flusher.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the peer has read nothing: %v", err)
			}
			got := make(chan int, 1)
			go func() {
				n, _ := io.Copy(io.Discard, r)
				got <- int(n)
			}()
			if err := flusher.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if err := link.Close(); err != nil {
				t.Error(err)
			}
			if n := receive(t, "all", got); n != size+1 {
				t.Errorf("%d bytes came", n)
			}
		})
	}
}

func TestTapSeesEverything(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	link, p := newLink(t, transport.LineOptions{Tap: func(out bool, message []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(out, " ", string(message)))
	}})
	defer link.Close()
	if err := link.Write(t.Context(), []byte("a"), false); err != nil {
		t.Fatal(err)
	}
	if got := p.line(); got != "a" {
		t.Errorf("got %s", got)
	}
	go p.say("b", "", "c")
	for _, want := range []string{"b", "c"} {
		if line, err := link.Read(); string(line) != want || err != nil {
			t.Errorf("read %s, %v", line, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, ","); got != "true a,false b,false c" {
		t.Errorf("seen %s", got)
	}
}

func TestExplainIsAskedOnce(t *testing.T) {
	calls := 0
	link, p := newLink(t, transport.LineOptions{MaxLine: 10, Explain: func(err error) error {
		calls++
		return fmt.Errorf("explained: %w", err)
	}})
	defer link.Close()
	go func() {
		p.say(strings.Repeat("x", 11))
		_ = p.conn.Close()
	}()
	if _, err := link.Read(); calls != 0 || err == nil {
		t.Errorf("an over-long line: %v", err)
	}
	if _, err := link.Read(); calls != 1 || !errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "explained") {
		t.Errorf("the end: %v", err)
	}
}
