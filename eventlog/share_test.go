package eventlog_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

func ofSession(i int) eventlog.Stream {
	return eventlog.Stream{Session: fmt.Sprint(i), Name: "a"}
}

// kept returns how many events of a stream with n of them are kept.
func kept(t *testing.T, l *eventlog.Memory, s eventlog.Stream, n int) int {
	t.Helper()
	for after := range n {
		if texts, err := read(t, l, s, uint64(after)); err == nil {
			return len(texts)
		}
	}
	return 0
}

// TestNoisySessionTakesNoRoomOfOthers_TK1: what quiet ones can resume from stays,
// though it is older than all that the noisy one has.
func TestNoisySessionTakesNoRoomOfOthers_TK1(t *testing.T) {
	const quiet, events = 5, 4
	data := strings.Repeat("x", 936) // 1000 with what each event costs
	l := eventlog.NewMemory(&eventlog.Options{Bytes: 50_000})
	for i := range quiet {
		for range events {
			add(t, l, ofSession(i), data)
		}
	}
	noisy := eventlog.Stream{Session: "noisy", Name: "a"}
	for i := range 200 {
		noisy.Name = fmt.Sprintf("a%d", i%3)
		add(t, l, noisy, data)
	}
	for i := range quiet {
		if n := kept(t, l, ofSession(i), events); n != events {
			t.Errorf("%d of %d events of a quiet session are kept", n, events)
		}
	}
	n := 0
	for i := range 3 {
		noisy.Name = fmt.Sprintf("a%d", i)
		n += kept(t, l, noisy, 200)
	}
	if want := 50 - quiet*events; n != want {
		t.Errorf("%d events of the noisy session are kept, want %d", n, want)
	}
}

// TestSessionsOfOneSizeLoseTheOldestFirst, whoever has something new.
func TestSessionsOfOneSizeLoseTheOldestFirst(t *testing.T) {
	const sessions, events = 20, 3
	data := strings.Repeat("x", 36) // 100 with what each event costs
	l := eventlog.NewMemory(&eventlog.Options{Bytes: sessions * events * 100})
	for range events {
		for i := range sessions {
			add(t, l, ofSession(i), data)
		}
	}
	for lost := range events - 1 {
		add(t, l, eventlog.Stream{Session: "new", Name: "a"}, data)
		for i := range sessions {
			want := events
			if i <= lost {
				want--
			}
			if n := kept(t, l, ofSession(i), events); n != want {
				t.Errorf("%d events of session %d are kept after %d new ones, want %d", n, i, lost+1, want)
			}
		}
	}
}

// TestOneLargeEventTakesTheRoomOfAll: it is the newest.
func TestOneLargeEventTakesTheRoomOfAll(t *testing.T) {
	l := eventlog.NewMemory(&eventlog.Options{Bytes: 1000})
	for i := range 6 {
		add(t, l, ofSession(i), "x", "y")
	}
	add(t, l, ofSession(6), strings.Repeat("x", 2000))
	if _, events, _ := l.Size(); events != 1 {
		t.Errorf("%d events are kept", events)
	}
	add(t, l, ofSession(0), "z") // and it is the first to go
	if n, events, _ := l.Size(); events != 1 || n != 65 {
		t.Errorf("%d events of %d bytes are kept", events, n)
	}
}

// TestReadsAreBounded_TK1: a client that reads slowly keeps what was read for it, whatever
// the log keeps.
func TestReadsAreBounded_TK1(t *testing.T) {
	const megabyte = 1 << 20
	for _, tt := range []struct {
		name               string
		size, events, want int
	}{
		{"small ones", 10, 300, 256},
		{"larger ones", 10_000, 100, 26},
		{"a large one", megabyte, 3, 1},
		{"none", 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := eventlog.NewMemory(nil)
			add(t, l, stream("a"), "first")
			for range tt.events {
				add(t, l, stream("a"), strings.Repeat("x", tt.size))
			}
			if events, err := l.Read(t.Context(), stream("a"), 1); len(events) != tt.want || err != nil {
				t.Errorf("%d events are read, %v, want %d", len(events), err, tt.want)
			}
			if texts, err := read(t, l, stream("a"), 1); len(texts) != tt.events || err != nil {
				t.Errorf("%d are read in all, %v", len(texts), err)
			}
		})
	}
}

// A shareModel is what a log is to keep under the limit Bytes, found by looking at all.
type shareModel struct {
	events map[eventlog.Stream][]shareEvent
	bytes  map[string]int // by session
	total  int
	orders int
}

type shareEvent struct{ order, size int }

func (m *shareModel) append(s eventlog.Stream, size, limit int) {
	m.orders++
	size += 64
	m.events[s] = append(m.events[s], shareEvent{m.orders, size})
	m.bytes[s.Session] += size
	m.total += size
	for m.total > limit {
		victim, ok := m.victim()
		if !ok {
			return
		}
		m.lose(victim)
	}
}

// victim returns the stream with the oldest event of the session with the most.
func (m *shareModel) victim() (victim eventlog.Stream, ok bool) {
	single := func(session string) bool { // nothing but the newest
		for s, events := range m.events {
			if s.Session == session && len(events) > 0 && events[0].order != m.orders {
				return false
			}
		}
		return true
	}
	for s, events := range m.events {
		if len(events) == 0 || single(s.Session) {
			continue
		}
		more := m.bytes[s.Session] - m.bytes[victim.Session]
		if !ok || more > 0 || more == 0 && events[0].order < m.events[victim][0].order {
			victim, ok = s, true
		}
	}
	return victim, ok
}

func (m *shareModel) lose(s eventlog.Stream) {
	size := m.events[s][0].size
	m.events[s] = m.events[s][1:]
	m.bytes[s.Session] -= size
	m.total -= size
}

func TestWhoHasMostLosesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(100, 3000).Draw(t, "Bytes")
		l := eventlog.NewMemory(&eventlog.Options{Bytes: limit})
		m := &shareModel{events: make(map[eventlog.Stream][]shareEvent), bytes: make(map[string]int)}
		last := make(map[eventlog.Stream]uint64)
		sessions := rapid.SampledFrom([]string{"s", "t", "u", "v", "w", "x", "y"})
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				s := eventlog.Stream{Session: sessions.Draw(t, "session"), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")}
				size := rapid.SampledFrom([]int{0, 36, 36, 136, 900}).Draw(t, "size")
				seq, err := l.Append(t.Context(), s, make([]byte, size))
				if err != nil {
					t.Fatal(err)
				}
				last[s] = seq
				m.append(s, size, limit)
			},
			"drop": func(t *rapid.T) {
				session := sessions.Draw(t, "session")
				if err := l.Drop(t.Context(), session); err != nil {
					t.Fatal(err)
				}
				for s := range last {
					if s.Session == session {
						for len(m.events[s]) > 0 {
							m.lose(s)
						}
						delete(last, s)
					}
				}
			},
			"": func(t *rapid.T) {
				for s, seq := range last {
					want := uint64(len(m.events[s]))
					if events, err := l.Read(t.Context(), s, seq-want); err != nil || uint64(len(events)) != want {
						t.Fatalf("%d events of %v are to be kept: %d are, %v", want, s, len(events), err)
					}
					if seq > want {
						if _, err := l.Read(t.Context(), s, seq-want-1); err == nil {
							t.Fatalf("more than %d events of %v are kept", want, s)
						}
					}
				}
			},
		})
	})
}
