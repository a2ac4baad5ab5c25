package main

import (
	"slices"
	"strings"
	"testing"
)

// Each pair that is named has rows without mcpsplice and with it.
func TestNamedPairsExist(t *testing.T) {
	for _, pairs := range onlyThrough {
		for server := range strings.SplitSeq(pairs.servers, ",") {
			for client := range strings.SplitSeq(pairs.clients, ",") {
				direct, through := 0, 0
				for _, r := range rows() {
					switch {
					case r.server.name != server || r.client.name != client:
					case !r.direct():
						through++
					case whyOnlyThrough(r) != "":
						direct++
					}
				}
				if direct == 0 || through == 0 {
					t.Errorf("%s with %s: %d rows without mcpsplice, %d with it", client, server, direct, through)
				}
			}
		}
	}
}

func TestBrokenPairs(t *testing.T) {
	ok := []check{{Name: "connect", OK: true}, {Name: "call", OK: true}, {Name: "list"}}
	half := []check{{Name: "connect", OK: true}, {Name: "call"}}
	for _, tt := range []struct {
		row    string
		checks []check
		want   string // a part of the problem, "" for none
	}{
		{"gosdk/http/mcpgo", half, ""},
		{"gosdk/http/mcpgo", ok, "pairs.go says that it does not"},
		{"gosdk/stdio/mcpgo", ok, ""},
		{"gosdk/stdio/mcpgo", half, "pairs.go does not say so"},
		{"gosdk/B/mcpgo", ok, ""},
		{"gosdk/B/mcpgo", half, "does not work through mcpsplice"},
		{"gosdk/B/mcpgo", nil, "does not work through mcpsplice"},
	} {
		got := brokenPairs(map[string][]check{tt.row: tt.checks}, []row{rowNamed(t, tt.row)})
		found := slices.ContainsFunc(got, func(s string) bool { return tt.want != "" && strings.Contains(s, tt.want) })
		if found != (tt.want != "") || len(got) > 1 {
			t.Errorf("%s with %v: %q, want %q", tt.row, tt.checks, got, tt.want)
		}
	}
}
