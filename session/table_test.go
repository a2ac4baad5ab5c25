package session_test

import (
	"regexp"
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
