package eventlog_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

// A modelStream is all that was ever appended to a stream.
type modelStream struct {
	events   []string
	finished bool
}

// TestReadersGetAllOrAreTold holds a log with small limits against a model without
// any.
func TestReadersGetAllOrAreTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := eventlog.Options{
			StreamEvents:   rapid.IntRange(1, 6).Draw(t, "StreamEvents"),
			StreamBytes:    rapid.IntRange(1, 600).Draw(t, "StreamBytes"),
			SessionBytes:   rapid.IntRange(1, 900).Draw(t, "SessionBytes"),
			SessionStreams: rapid.IntRange(1, 4).Draw(t, "SessionStreams"),
			Bytes:          rapid.IntRange(1, 1200).Draw(t, "Bytes"),
		}
		l := eventlog.NewMemory(&opts)
		model := make(map[eventlog.Stream]*modelStream)
		streams := rapid.Custom(func(t *rapid.T) eventlog.Stream {
			return eventlog.Stream{
				Session: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "session"),
				Name:    rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name"),
			}
		})
		appended := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				s := streams.Draw(t, "stream")
				appended++
				text := fmt.Sprintf("%d:%*d", appended, rapid.IntRange(0, 300).Draw(t, "size"), 0)
				seq, err := l.Append(t.Context(), s, []byte(text))
				m := model[s]
				if _, full := errors.AsType[*eventlog.LimitError](err); full && (m == nil || m.finished) || errors.Is(err, eventlog.ErrFinished) && m.finished {
					return
				}
				if m == nil || m.finished && seq == 1 { // forgotten, and begun anew
					m = &modelStream{}
					model[s] = m
				}
				m.events = append(m.events, text)
				if err != nil || int(seq) != len(m.events) {
					t.Fatalf("event %d of %v has the number %d, %v", len(m.events), s, seq, err)
				}
			},
			"finish": func(t *rapid.T) {
				s := streams.Draw(t, "stream")
				err := l.Finish(t.Context(), s)
				if m := model[s]; err == nil {
					m.finished = true
				} else if m != nil && !m.finished {
					t.Fatalf("an open stream cannot be finished: %v", err)
				}
			},
			"drop": func(t *rapid.T) {
				session := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "session")
				_ = l.Drop(t.Context(), session)
				for s := range model {
					if s.Session == session {
						delete(model, s)
					}
				}
			},
			"": func(t *rapid.T) {
				for s, m := range model {
					m.check(t, l, s)
				}
				if n, events, _ := l.Size(); n > opts.Bytes && events > 1 {
					t.Fatalf("%d events have %d bytes, over %d", events, n, opts.Bytes)
				}
			},
		})
		_ = l.Drop(t.Context(), "s")
		_ = l.Drop(t.Context(), "t")
	})
}

// check reads a stream from each of its places.
func (m *modelStream) check(t *rapid.T, l *eventlog.Memory, s eventlog.Stream) {
	for after := range len(m.events) + 1 {
		events, err := l.Read(t.Context(), s, uint64(after))
		gone, isGone := errors.AsType[*eventlog.GoneError](err)
		switch {
		case errors.Is(err, eventlog.ErrUnknown):
			if !m.finished {
				t.Fatalf("%v is unknown", s)
			}
		case isGone:
			if gone.Limit == "" || int(gone.Resume) <= after || int(gone.Resume) > len(m.events) {
				t.Fatalf("%v after %d: %+v", s, after, gone)
			}
		case errors.Is(err, io.EOF):
			if !m.finished || after != len(m.events) {
				t.Fatalf("%v ends after %d of %d", s, after, len(m.events))
			}
		case err != nil:
			t.Fatal(err)
		case len(events) != len(m.events)-after:
			t.Fatalf("%v after %d: %d of %d events", s, after, len(events), len(m.events)-after)
		}
		for i, e := range events {
			if string(e.Data) != m.events[after+i] || int(e.Seq) != after+i+1 {
				t.Fatalf("%v after %d: %d is %q", s, after, e.Seq, e.Data)
			}
		}
	}
	if err := l.Wait(t.Context(), s, 0); len(m.events) > 0 && err != nil {
		t.Fatal(err)
	}
}
