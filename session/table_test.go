package session_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// TestSessionIDsAreNotToBeGuessed_TG3: 26 characters of 32 are 130 bits.
func TestSessionIDsAreNotToBeGuessed_TG3(t *testing.T) {
	const n = 20_000
	table := session.NewTable(session.TableOptions{Max: n})
	defer table.Close()
	form := regexp.MustCompile(`^[A-Z2-7]{26}$`)
	seen := make(map[string]bool, n)
	for range n {
		h, err := table.New(new(backend), session.ServerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(h.ID) || seen[h.ID] {
			t.Fatalf("the id %q, known: %v", h.ID, seen[h.ID])
		}
		seen[h.ID] = true
		h.Release()
	}
	if _, err := table.New(new(backend), session.ServerOptions{}); err == nil {
		t.Error("T-K1: one more than Max was let in")
	}
}

// TestSessionsOfOthersAreUnknown_TG2: every member of the principal counts.
func TestSessionsOfOthersAreUnknown_TG2(t *testing.T) {
	table := session.NewTable(session.TableOptions{})
	defer table.Close()
	owner := mcp.Principal{Issuer: "i", Subject: "s"}
	h, err := table.New(new(backend), session.ServerOptions{Principal: owner})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	for _, other := range []mcp.Principal{{}, {Issuer: "i"}, {Subject: "s"}, {Issuer: "i", Subject: "S"}, {Issuer: "s", Subject: "i"}, {Issuer: "is"}} {
		if _, ok := table.Use(h.ID, other); ok {
			t.Errorf("%+v may use the session of %+v", other, owner)
		}
	}
	if got, ok := table.Use(h.ID, owner); !ok || got != h {
		t.Error("the owner may not use it")
	} else {
		got.Release()
	}
}

// TestOnePrincipalLeavesSessionsToOthers_TK1: it is refused before they are.
func TestOnePrincipalLeavesSessionsToOthers_TK1(t *testing.T) {
	table := session.NewTable(session.TableOptions{Max: 8})
	defer table.Close()
	fill := func(name string) (sessions []*session.Held, err error) {
		for {
			h, err := table.New(new(backend), session.ServerOptions{Principal: mcp.Principal{Subject: name}})
			if err != nil {
				return sessions, err
			}
			sessions = append(sessions, h)
			h.Release()
		}
	}
	greedy, err := fill("greedy")
	const want = "too many sessions: the limit MaxSessions is reached for one principal: 6 of 6 sessions are its own, 8 are the limit, and it may have 3 times what is left"
	if len(greedy) != 6 || !errors.Is(err, session.ErrTooMany) || err.Error() != want {
		t.Errorf("one principal has %d sessions, and then %v", len(greedy), err)
	}
	late, _ := fill("late")
	if len(late) == 0 {
		t.Error("nothing is left for others")
	}
	// Who has ended some may have others.
	for _, h := range append(greedy, late...) {
		h.End()
		h.End()
	}
	if again, _ := fill("greedy"); len(again) != len(greedy) {
		t.Errorf("later the same principal has %d sessions", len(again))
	}
}

// TestSessionsWithoutPrincipalHaveNoShare: nobody can tell whose they are.
func TestSessionsWithoutPrincipalHaveNoShare(t *testing.T) {
	table := session.NewTable(session.TableOptions{Max: 8})
	defer table.Close()
	for i := range 9 {
		h, err := table.New(new(backend), session.ServerOptions{})
		if (err == nil) != (i < 8) || err != nil && strings.Contains(err.Error(), "principal") {
			t.Errorf("session %d: %v", i, err)
		}
		if err == nil {
			h.Release()
		}
	}
}
