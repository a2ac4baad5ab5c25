package streamable_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/sse"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

const connected = `event: connected|data: {"status":"connected"}`

func TestBroadcastThroughTheServer(t *testing.T) {
	for _, plain := range []bool{false, true} {
		opts := strictServer(t)
		opts.Plain = plain
		s, err := streamable.Listen("127.0.0.1:0", echo, opts)
		if err != nil {
			t.Fatal(err)
		}
		serveUntilEnd(t, s)
		b := newBrowser(t, s.URL()).at("/mcp/events?from=a-dashboard")
		// S2.10: as an EventSource of its own page asks.
		page := strings.TrimSuffix(s.URL(), "/mcp")
		resp := b.open(t, "GET", "", header("Accept", "text/event-stream", "Origin", page, "Sec-Fetch-Site", "same-origin"))
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "Access-Control-Allow-Origin": page,
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("S2.73: %s is %q, want %q", name, got, want)
			}
		}
		one, two := readEvents(resp), readEvents(b.open(t, "GET", "", nil))
		one.want(t, connected) // S2.52, S2.61
		two.want(t, connected)
		if err := s.Broadcast("state", []byte("{\"a\":\n1}")); err != nil {
			t.Fatal(err)
		}
		for _, events := range []*eventReader{one, two} {
			// S2.64, S2.66
			got, _ := events.next()
			if !strings.HasPrefix(got, "event: state|id: ") || !strings.HasSuffix(got, `-1|data: {"a":|data: 1}`) {
				t.Errorf("the event is %q", got)
			}
		}
	}
}

func TestBroadcastRefusesWhatWouldBeAnotherEvent(t *testing.T) {
	b := streamable.NewBroadcast()
	defer b.Close()
	for _, name := range []string{"a\nb", "a\r", "a\x00"} {
		if err := b.Send(name, nil); !errors.Is(err, sse.ErrUnsafeField) {
			t.Errorf("D2.20: %q: %v", name, err)
		}
	}
	if err := b.Send("big", make([]byte, streamable.MaxReplayBytes+1)); err == nil || !strings.Contains(err.Error(), "MaxReplayBytes") {
		t.Errorf("an event over the limit: %v", err)
	}
	for range 2 {
		b.Close()
	}
	if err := b.Send("late", nil); err == nil {
		t.Error("B058: an event after the end")
	}
}

func TestBroadcastReplays(t *testing.T) {
	b := streamable.NewBroadcast()
	defer b.Close()
	server := newBrowser(t, newServer(t, b))
	watch := func(lastID string) *eventReader {
		h := http.Header{}
		if lastID != "" {
			h.Set("Last-Event-Id", lastID)
		}
		events := readEvents(server.open(t, "GET", "", h))
		events.want(t, connected)
		return events
	}
	send := func(n int) {
		if err := b.Send("n", strconv.AppendInt(nil, int64(n), 10)); err != nil {
			t.Fatal(err)
		}
	}
	first := watch("")
	send(1)
	id := func(event string) string {
		_, id, _ := strings.Cut(event, "id: ")
		id, _, _ = strings.Cut(id, "|")
		return id
	}
	one := id(first.await(t, "data: 1"))
	for n := 2; n <= 5; n++ {
		send(n)
	}
	// S2.66, D2.23: from where it was, each once, in order.
	again := watch(one)
	for n := 2; n <= 5; n++ {
		if got, _ := again.next(); !strings.HasSuffix(got, fmt.Sprintf("|data: %d", n)) {
			t.Errorf("S2.66: the event after %d is %q", n-1, got)
		}
	}
	run, _, _ := strings.Cut(one, "-")
	for _, foreign := range []string{"", "garbage", "another-1", run + "-99", run + "--1", run + "-9223372036854775808", run} {
		events := watch(foreign)
		send(6)
		events.want(t, "event: n|id: "+run+"-"+strconv.Itoa(seq(t, b, run))+"|data: 6")
	}
	// More than is kept: how many are missing is told.
	last := seq(t, b, run)
	for n := range streamable.MaxReplay + 10 {
		send(n)
	}
	behind := watch(run + "-" + strconv.Itoa(last-5))
	behind.want(t, fmt.Sprintf(`event: missed|data: {"missed":%d}`, 5+10))
	behind.want(t, fmt.Sprintf("event: n|id: %s-%d|data: 10", run, last+11))
}

// seq returns the number of the newest event.
func seq(t *testing.T, b *streamable.Broadcast, run string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(b.LastID(), run+"-"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBroadcastKeepsAliveAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamable.NewBroadcast()
		time.AfterFunc(5*streamable.DefaultKeepAlive+time.Second, func() {
			// What was sent before the end arrives.
			_ = b.Send("last", []byte("1"))
			b.Close()
		})
		w := visit(b, "GET", "", http.Header{})
		// S2.73, D2.22
		if n := strings.Count(w.Body.String(), "\n:\n\n") + strings.Count(w.Body.String(), ":\n\n:"); n < 5 || !strings.HasSuffix(w.Body.String(), "data: 1\n\n") {
			t.Errorf("the stream was %q", w.Body)
		}
		if w := visit(b, "GET", "", http.Header{}); w.Code != 503 || !strings.Contains(w.Body.String(), "shutting down") {
			t.Errorf("after the end: %d %s", w.Code, w.Body)
		}
	})
}

func TestBroadcastIsBounded(t *testing.T) {
	b := streamable.NewBroadcast()
	defer b.Close()
	b.LimitWatchers(2)
	server := newBrowser(t, newServer(t, b))
	first := server.open(t, "GET", "", nil)
	readEvents(first).want(t, connected)
	readEvents(server.open(t, "GET", "", nil)).want(t, connected)
	if r := server.do(t, "GET", "", nil); r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "MaxWatchers of 2") {
		t.Errorf("D2.22, T-K1: over the limit: %s", r)
	}
	_ = first.Body.Close()
	eventually(t, func() bool { return b.Watchers() == 1 }) // S2.63
	readEvents(server.open(t, "GET", "", nil)).want(t, connected)
}

func TestWatchersComeAndGo(t *testing.T) {
	b := streamable.NewBroadcast()
	defer b.Close()
	server := newBrowser(t, newServer(t, b))
	var coming sync.WaitGroup
	for range 4 {
		coming.Go(func() {
			for range 250 {
				resp := server.open(t, "GET", "", nil)
				_, _ = resp.Body.Read(make([]byte, 16))
				_ = resp.Body.Close()
				_ = b.Send("n", []byte("1"))
			}
		})
	}
	coming.Wait()
	eventually(t, func() bool { return b.Watchers() == 0 }) // S2.63
}

// TestSlowWatcherIsBounded sends much to a watcher that does not read for a
// while: the memory stays, the others get everything, and it is told what it
// missed.
func TestSlowWatcherIsBounded(t *testing.T) {
	const size, count = 256 << 10, 300
	b := streamable.NewBroadcast()
	defer b.Close()
	url := newServer(t, b)
	slow := dialRaw(t, url)
	mustWrite(t, slow, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close() // closing the body would read it to its end
	fast := newBrowser(t, url).open(t, "GET", "", nil)
	events := sse.NewReader(fast.Body, 0)
	if e, err := events.Next(); err != nil || e.Name != "connected" {
		t.Fatalf("%v, %v", e, err)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = 'x'
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range count {
		if err := b.Send("n", data); err != nil {
			t.Fatal(err)
		}
		if e, err := events.Next(); err != nil || !strings.HasSuffix(e.ID, "-"+strconv.Itoa(i+1)) {
			t.Fatalf("S2.68: the fast watcher: %s, %v", e.ID, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("D2.21: %d bytes were kept for %d sent", grown, size*count)
	}
	reader := sse.NewReader(resp.Body, 0)
	for {
		e, err := reader.Next()
		if err != nil {
			t.Fatalf("S2.68: the slow watcher was not told: %v", err)
		}
		if e.Name == "missed" {
			break
		}
	}
}
