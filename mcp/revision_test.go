package mcp_test

import (
	"slices"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

func TestEraOfARevision(t *testing.T) {
	for _, c := range []struct {
		revision mcp.Revision
		want     mcp.Era
		name     string
	}{
		{"2024-11-05", mcp.Legacy, "legacy"},
		{"2025-03-26", mcp.Legacy, "legacy"},
		{"2025-06-18", mcp.Legacy, "legacy"},
		{"2025-11-25", mcp.Legacy, "legacy"},
		{"2026-07-28", mcp.Modern, "modern"},
		{"2099-01-01", mcp.NoEra, "unknown"},
		{"2025-11-24", mcp.NoEra, "unknown"},
		{"", mcp.NoEra, "unknown"},
		{"2026-07-28 ", mcp.NoEra, "unknown"},
	} {
		if got := c.revision.Era(); got != c.want || got.String() != c.name {
			t.Errorf("%q is %s, want %s", c.revision, got, c.name)
		}
	}
}

func TestRevisionsAreListedNewestFirst(t *testing.T) {
	for era, list := range map[mcp.Era]func() []mcp.Revision{mcp.Legacy: mcp.LegacyRevisions, mcp.Modern: mcp.ModernRevisions} {
		revisions := list()
		if len(revisions) == 0 {
			t.Fatalf("no %s revisions", era)
		}
		if newest := map[mcp.Era]mcp.Revision{mcp.Legacy: mcp.NewestLegacy, mcp.Modern: mcp.NewestModern}[era]; revisions[0] != newest {
			t.Errorf("%s begins with %s, want %s", era, revisions[0], newest)
		}
		if !slices.IsSortedFunc(revisions, func(a, b mcp.Revision) int { return slices.Compare([]byte(b), []byte(a)) }) {
			t.Errorf("not newest first: %s", revisions)
		}
		for _, r := range revisions {
			if r.Era() != era {
				t.Errorf("%s is %s", r, r.Era())
			}
		}
		revisions[0] = "changed by the caller"
		if list()[0] == revisions[0] {
			t.Error("a caller can change the list")
		}
	}
}

func TestInitializeIsNegotiatedNotRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		in, wants mcp.Revision
	}{
		{"oldest", "2024-11-05", "2024-11-05"},
		{"2025-03-26", "2025-03-26", "2025-03-26"},
		{"2025-06-18", "2025-06-18", "2025-06-18"},
		{"newest legacy", "2025-11-25", "2025-11-25"},
		{"B116 newer", "2099-01-01", "2025-11-25"},
		{"B116 modern", "2026-07-28", "2025-11-25"},
		{"B116 unknown between two", "2025-07-01", "2025-06-18"},
		{"B116 just below one", "2025-03-25", "2024-11-05"},
		{"B116 older than all", "2024-10-07", "2025-11-25"},
		{"B116 garbage", "garbage", "2025-11-25"},
		{"B116 number", "1.0", "2025-11-25"},
		{"B116 empty", "", "2025-11-25"},
		{"B116 no UTF-8", "\xff", "2025-11-25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mcp.NegotiateLegacy(c.in); got != c.wants {
				t.Errorf("%q gets %s, want %s", c.in, got, c.wants)
			}
		})
	}
}

func TestNewestCommonRevisionIsPicked(t *testing.T) {
	for _, c := range []struct {
		name           string
		offered        []mcp.Revision
		modern, legacy mcp.Revision
	}{
		{"nothing", nil, "", ""},
		{"B113 modern", []mcp.Revision{"2026-07-28"}, "2026-07-28", ""},
		{"both", []mcp.Revision{"2025-03-26", "2026-07-28", "2025-11-25"}, "2026-07-28", "2025-11-25"},
		{"order does not matter", []mcp.Revision{"2024-11-05", "2025-06-18", "2025-03-26"}, "", "2025-06-18"},
		{"unknown ones", []mcp.Revision{"2099-01-01", "garbage", ""}, "", ""},
		{"unknown beside known", []mcp.Revision{"2099-01-01", "2024-11-05"}, "", "2024-11-05"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := mcp.PickModern(c.offered); got != c.modern || ok != (c.modern != "") {
				t.Errorf("modern: %q, %t", got, ok)
			}
			if got, ok := mcp.PickLegacy(c.offered); got != c.legacy || ok != (c.legacy != "") {
				t.Errorf("legacy: %q, %t", got, ok)
			}
		})
	}
}

func TestWhatARevisionHas(t *testing.T) {
	for _, r := range append(mcp.LegacyRevisions(), mcp.ModernRevisions()...) {
		if got := r.HasTasks(); got != (r == "2025-11-25") {
			t.Errorf("%s has tasks: %t", r, got)
		}
		if got := r.HasBatches(); got != (r == "2025-03-26") {
			t.Errorf("%s has batches: %t", r, got)
		}
		if got := r.HasVersionHeader(); got != (r != "2024-11-05" && r != "2025-03-26") {
			t.Errorf("%s has the version header: %t", r, got)
		}
	}
}
