package eventlog_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/eventlog"
)

func TestIDsTellTheirEvent(t *testing.T) {
	for _, seq := range []uint64{1, 9, 10, math.MaxUint64} {
		s := eventlog.Stream{Session: "secret", Name: strings.Repeat("aZ09", eventlog.MaxName/4)}
		id := s.ID(seq)
		got, n, err := eventlog.ParseID("secret", id)
		if err != nil || got != s || n != seq {
			t.Errorf("%q is of %v and %d, %v", id, got, n, err)
		}
		if strings.Contains(id, "secret") {
			t.Errorf("%q tells the session", id)
		}
		for i := range len(id) {
			if id[i] < 0x21 || id[i] > 0x7e {
				t.Errorf("%q holds %#x", id, id[i])
			}
		}
	}
}

func TestWhatIsNoID_TG2(t *testing.T) {
	for _, id := range []string{
		"", "-", "a", "a-", "-1", "a-x", "a-01", "a-+1", "a--1", "a-1-2", "a-1 ", " a-1", "a-0", "a-1\n", "a_b-1", "ä-1", "a-18446744073709551616",
		"../x-1", "__proto__-1", strings.Repeat("a", eventlog.MaxName+1) + "-1", strings.Repeat("a", 10<<10) + "-1", "a-" + strings.Repeat("1", 10<<10),
	} {
		if s, seq, err := eventlog.ParseID("s", id); err == nil {
			t.Errorf("%.80q is of %v and %d", id, s, seq)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, id := range []string{"a-1", "A0z-18446744073709551615", "a-01", "-", "a\x00-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		s, seq, err := eventlog.ParseID("s", id)
		if err == nil && (s.ID(seq) != id || seq == 0) {
			t.Errorf("%q is read as %q", id, s.ID(seq))
		}
	})
}
