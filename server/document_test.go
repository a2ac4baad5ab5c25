package server_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

var update = flag.Bool("update", false, "write docs/protocol.md")

// document returns docs/protocol.md, as the table of TestProtocol has it.
func document() string {
	var b strings.Builder
	b.WriteString(`# What of the protocol a server does

This file is written by ` + "`go test ./server -run TestProtocolDocument -update`" + ` from the table in
` + "`server/protocol_test.go`" + `. A cell says whether package ` + "`server`" + `, behind the edges of this library, does
the feature for clients of the revision: **yes**; **–** for what the revision has and we do not do;
**n.a.** for what it does not have. The test of a cell that says yes is the one of its row, with the
revision and the transport after it, such as ` + "`TestProtocol/ping/2025-11-25/stdio`" + `; it runs over
` + strings.Join(transports, " and ") + `. In each of them every message of the server is checked against the
specification's schema of that revision.

| feature |`)
	for _, revision := range revisions {
		fmt.Fprintf(&b, " %s |", revision)
	}
	b.WriteString(" test |\n|---|" + strings.Repeat("---|", len(revisions)) + "---|\n")
	for _, r := range protocol {
		fmt.Fprintf(&b, "| %s |", r.feature)
		for _, revision := range revisions {
			fmt.Fprintf(&b, " %s |", cell(&r, revision))
		}
		test := "–"
		if r.run != nil {
			test = "`server: TestProtocol/" + r.name + "`"
		}
		fmt.Fprintf(&b, " %s |\n", test)
	}
	return b.String()
}

func cell(r *row, revision mcp.Revision) string {
	switch {
	case !r.has(revision):
		return "n.a."
	case r.run == nil:
		return "–"
	}
	return "yes"
}

func TestProtocolDocument(t *testing.T) {
	path := filepath.Join("..", "docs", "protocol.md")
	want := document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/protocol.md is not what the table says: go test ./server -run TestProtocolDocument -update")
	}
}

func TestRowsOfTheProtocolHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range protocol {
		if seen[r.name] || r.name == "" || r.feature == "" || strings.Contains(r.feature, "|") {
			t.Errorf("the row %q has no name of its own", r.name)
		}
		seen[r.name] = true
	}
}
