package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

func stream(name string) eventlog.Stream { return eventlog.Stream{Session: "s", Name: name} }

func add(t *testing.T, l eventlog.Log, s eventlog.Stream, texts ...string) (last uint64) {
	t.Helper()
	for _, text := range texts {
		data := []byte(text)
		seq, err := l.Append(t.Context(), s, data)
		if err != nil || seq <= last {
			t.Fatalf("appending %q gives %d after %d, %v", text, seq, last, err)
		}
		clear(data) // the log has its own
		last = seq
	}
	return last
}

// read returns what comes after an event, up to where the log has nothing more.
func read(t *testing.T, l eventlog.Log, s eventlog.Stream, after uint64) (texts []string, err error) {
	t.Helper()
	for {
		events, err := l.Read(t.Context(), s, after)
		if err != nil || len(events) == 0 {
			return texts, err
		}
		for _, e := range events {
			if e.Seq <= after {
				t.Fatalf("event %d comes after %d", e.Seq, after)
			}
			after = e.Seq
			texts = append(texts, string(e.Data))
		}
	}
}

func wantRead(t *testing.T, l eventlog.Log, s eventlog.Stream, after uint64, want string, end error) {
	t.Helper()
	texts, err := read(t, l, s, after)
	if got := strings.Join(texts, " "); got != want || !errors.Is(err, end) {
		t.Errorf("after %d of %s come %q and %v, want %q and %v", after, s.Name, got, err, want, end)
	}
}

func TestStreamsAreApart_B109(t *testing.T) {
	l := eventlog.NewMemory(nil)
	a, b, foreign := stream("a"), stream("b"), eventlog.Stream{Session: "other", Name: "a"}
	first := add(t, l, a, "a1")
	add(t, l, b, "b1", "b2")
	add(t, l, foreign, "secret")
	add(t, l, a, "a2", "a3")
	wantRead(t, l, a, first, "a2 a3", nil)
	wantRead(t, l, a, 0, "a1 a2 a3", nil)
	wantRead(t, l, b, 2, "", nil)
	wantRead(t, l, b, 3, "", eventlog.ErrUnknown) // of the future
	wantRead(t, l, stream("c"), 0, "", eventlog.ErrUnknown)
	wantRead(t, l, eventlog.Stream{Session: "nobody", Name: "a"}, 0, "", eventlog.ErrUnknown)
	if err := l.Drop(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	wantRead(t, l, a, first, "", eventlog.ErrUnknown)
	wantRead(t, l, foreign, 0, "secret", nil)
	if err := l.Drop(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if n, events, sessions := l.Size(); n != 0 || events != 0 || sessions != 0 {
		t.Errorf("%d bytes, %d events and %d sessions are left", n, events, sessions)
	}
}

func TestFinishedStreamsEnd(t *testing.T) {
	l := eventlog.NewMemory(nil)
	defer l.Drop(t.Context(), "s")
	add(t, l, stream("a"), "1", "2")
	for range 2 {
		if err := l.Finish(t.Context(), stream("a")); err != nil {
			t.Fatal(err)
		}
	}
	wantRead(t, l, stream("a"), 0, "1 2", io.EOF)
	wantRead(t, l, stream("a"), 2, "", io.EOF)
	if _, err := l.Append(t.Context(), stream("a"), nil); !errors.Is(err, eventlog.ErrFinished) {
		t.Errorf("appending afterwards: %v", err)
	}
	if err := l.Finish(t.Context(), stream("b")); !errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("finishing what is not there: %v", err)
	}
	if _, err := l.Append(t.Context(), stream("a-b"), nil); err == nil {
		t.Error("a name with a hyphen is taken")
	}
}

func TestLimits_TK1(t *testing.T) {
	big := strings.Repeat("x", 936) // 1000 with what each event costs
	for _, tt := range []struct {
		name    string
		opts    eventlog.Options
		append  string // names of streams
		kept    string // of stream a, how many
		limit   string
		missed  uint64
		refused string // the stream that is
	}{
		{name: "StreamEvents at", opts: eventlog.Options{StreamEvents: 3}, append: "aaabbb", kept: "3"},
		{name: "StreamEvents over", opts: eventlog.Options{StreamEvents: 3}, append: "aaaaabbb", kept: "3", limit: "StreamEvents of 3", missed: 2},
		{name: "StreamBytes at", opts: eventlog.Options{StreamBytes: 3000}, append: "aaabbb", kept: "3"},
		{name: "StreamBytes over", opts: eventlog.Options{StreamBytes: 2999}, append: "aaabbb", kept: "2", limit: "StreamBytes of 2999", missed: 1},
		{name: "StreamBytes for one", opts: eventlog.Options{StreamBytes: 1}, append: "aaa", kept: "1", limit: "StreamBytes of 1", missed: 2},
		{name: "SessionBytes at", opts: eventlog.Options{SessionBytes: 4000}, append: "aabb", kept: "2"},
		{name: "SessionBytes over", opts: eventlog.Options{SessionBytes: 3999}, append: "aabb", kept: "1", limit: "SessionBytes of 3999", missed: 1},
		{name: "SessionBytes of another", opts: eventlog.Options{SessionBytes: 2000}, append: "aaBB", kept: "2"},
		{name: "Bytes at", opts: eventlog.Options{Bytes: 4000}, append: "aaBB", kept: "2"},
		{name: "Bytes over", opts: eventlog.Options{Bytes: 3999}, append: "aaBB", kept: "1", limit: "Bytes of 3999", missed: 1},
		{name: "Bytes with all gone", opts: eventlog.Options{Bytes: 1000}, append: "aaB", kept: "0", limit: "Bytes of 1000", missed: 2},
		{name: "SessionStreams at", opts: eventlog.Options{SessionStreams: 2}, append: "abABCab"[:4], kept: "1"},
		{name: "SessionStreams over", opts: eventlog.Options{SessionStreams: 2}, append: "ab", kept: "1", refused: "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := eventlog.NewMemory(&tt.opts)
			for name := range strings.SplitSeq(tt.append, "") {
				s := stream(strings.ToLower(name))
				if name != s.Name {
					s.Session = "other"
				}
				add(t, l, s, big)
			}
			_, err := l.Read(t.Context(), stream("a"), 0)
			gone, ok := errors.AsType[*eventlog.GoneError](err)
			if ok != (tt.limit != "") || ok && (gone.Limit != tt.limit || gone.Missed != tt.missed || gone.Resume != tt.missed || !strings.Contains(err.Error(), tt.limit)) {
				t.Errorf("reading what is gone: %v", err)
			}
			texts, err := read(t, l, stream("a"), tt.missed)
			if fmt.Sprint(len(texts)) != tt.kept || err != nil {
				t.Errorf("%d are kept, %v, want %s", len(texts), err, tt.kept)
			}
			if tt.refused != "" {
				_, err := l.Append(t.Context(), stream(tt.refused), nil)
				if limit, ok := errors.AsType[*eventlog.LimitError](err); !ok || limit.Limit != "SessionStreams" || limit.Value != 2 {
					t.Errorf("one more stream: %v", err)
				}
			}
		})
	}
}

func TestFinishedStreamsMakeRoom(t *testing.T) {
	l := eventlog.NewMemory(&eventlog.Options{SessionStreams: 1})
	for i := range 5 {
		s := stream(fmt.Sprintf("n%d", i))
		add(t, l, s, "x")
		wantRead(t, l, s, 0, "x", nil)
		if err := l.Finish(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	wantRead(t, l, stream("n3"), 0, "", eventlog.ErrUnknown)
	wantRead(t, l, stream("n4"), 0, "x", io.EOF)
	_ = l.Drop(t.Context(), "s")
}

func TestFinishedStreamsAreKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := eventlog.NewMemory(&eventlog.Options{Keep: time.Minute})
		add(t, l, stream("open"), "x")
		for _, name := range []string{"a", "b"} {
			add(t, l, stream(name), "x")
			if err := l.Finish(t.Context(), stream(name)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Second)
		}
		wantRead(t, l, stream("a"), 0, "", eventlog.ErrUnknown)
		wantRead(t, l, stream("b"), 0, "x", io.EOF)
		time.Sleep(21 * time.Second)
		_, err := read(t, l, stream("b"), 0)
		if !errors.Is(err, eventlog.ErrUnknown) || !strings.Contains(err.Error(), "Keep of 1m0s") {
			t.Errorf("%v names no limit", err)
		}
		// The timer starts again.
		if err := l.Finish(t.Context(), stream("open")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		wantRead(t, l, stream("open"), 0, "x", io.EOF)
		time.Sleep(2 * time.Second)
		if n, events, sessions := l.Size(); n != 0 || events != 0 || sessions != 0 {
			t.Errorf("%d bytes, %d events and %d sessions are left", n, events, sessions)
		}
	})
}

func TestWaitReturnsAtEachChange(t *testing.T) {
	for name, change := range map[string]func(*eventlog.Memory, eventlog.Stream) error{
		"append": func(l *eventlog.Memory, s eventlog.Stream) error {
			_, err := l.Append(context.Background(), s, []byte("y"))
			return err
		},
		"finish": func(l *eventlog.Memory, s eventlog.Stream) error { return l.Finish(context.Background(), s) },
		"drop":   func(l *eventlog.Memory, s eventlog.Stream) error { return l.Drop(context.Background(), s.Session) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := eventlog.NewMemory(nil)
				last := add(t, l, stream("a"), "x")
				add(t, l, stream("b"), "x")
				if err := l.Wait(t.Context(), stream("a"), last-1); err != nil {
					t.Errorf("there is something already: %v", err)
				}
				if err := l.Wait(t.Context(), stream("c"), 0); err != nil {
					t.Errorf("there is no such stream: %v", err)
				}
				var waiting sync.WaitGroup
				returned := 0
				var mu sync.Mutex
				for range 3 {
					waiting.Go(func() {
						if err := l.Wait(context.Background(), stream("a"), last); err != nil {
							t.Errorf("waiting: %v", err)
						}
						mu.Lock()
						returned++
						mu.Unlock()
					})
				}
				add(t, l, stream("b"), "y")
				synctest.Wait()
				mu.Lock()
				if returned != 0 {
					t.Errorf("%d returned too soon", returned)
				}
				mu.Unlock()
				if err := change(l, stream("a")); err != nil {
					t.Fatal(err)
				}
				waiting.Wait()
				_ = l.Drop(t.Context(), "s")
			})
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	l := eventlog.NewMemory(nil)
	last := add(t, l, stream("a"), "x")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := l.Wait(ctx, stream("a"), last); !errors.Is(err, why) {
		t.Errorf("waiting ends with %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	l := eventlog.NewMemory(&eventlog.Options{StreamEvents: 1 << 20})
	const events, readers = 500, 4
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		add(t, l, stream(name), "-")
		all.Go(func() {
			for i := range events {
				if _, err := l.Append(context.Background(), stream(name), fmt.Appendf(nil, "%s%d", name, i)); err != nil {
					t.Error(err)
				}
			}
			_ = l.Finish(context.Background(), stream(name))
		})
		for range readers {
			all.Go(func() {
				var got bytes.Buffer
				for at := uint64(1); ; {
					batch, err := l.Read(context.Background(), stream(name), at)
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					for _, e := range batch {
						at = e.Seq
						got.Write(e.Data)
						got.WriteByte(' ')
					}
					_ = l.Wait(context.Background(), stream(name), at)
				}
				if n := strings.Count(got.String(), name); n != events {
					t.Errorf("%d events of %s were read", n, name)
				}
			})
		}
	}
	all.Wait()
	_ = l.Drop(t.Context(), "s")
}

// TestNewestEventStays whatever its size, under each limit.
func TestNewestEventStays(t *testing.T) {
	for _, opts := range []eventlog.Options{{StreamBytes: 10}, {SessionBytes: 10}, {Bytes: 10}, {StreamEvents: 1}} {
		m := eventlog.NewMemory(&opts)
		add(t, m, stream("a"), "old", "a large one")
		wantRead(t, m, stream("a"), 1, "a large one", nil)
		add(t, m, stream("b"), "another")
		wantRead(t, m, stream("b"), 0, "another", nil)
	}
}

// TestFinishedStreamOfWhichNothingIsLeftIsForgotten: it would take the place of others.
func TestFinishedStreamOfWhichNothingIsLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eventlog.NewMemory(&eventlog.Options{SessionBytes: 100})
		add(t, m, stream("a"), "one")
		if err := m.Finish(t.Context(), stream("a")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, m, stream("a"), 0, "one", io.EOF)
		add(t, m, stream("b"), "two")
		wantRead(t, m, stream("a"), 0, "", eventlog.ErrUnknown)
		if bytes, events, sessions := m.Size(); events != 1 || sessions != 1 || bytes != 64+3 {
			t.Errorf("%d bytes of %d events of %d sessions are kept", bytes, events, sessions)
		}
	})
}

// TestStreamThatWasFinishedFirstMakesRoom.
func TestStreamThatWasFinishedFirstMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := eventlog.NewMemory(&eventlog.Options{SessionStreams: 5})
		for _, name := range []string{"c", "a", "e", "b", "d"} {
			add(t, m, stream(name), name)
		}
		for _, name := range []string{"b", "d", "a", "e", "c"} {
			if err := m.Finish(t.Context(), stream(name)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		add(t, m, stream("new"), "new")
		wantRead(t, m, stream("b"), 0, "", eventlog.ErrUnknown)
		for _, name := range []string{"d", "a", "e", "c"} {
			wantRead(t, m, stream(name), 0, name, io.EOF)
		}
	})
}
