package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// packs are the packages of all peers.
func packs() []pack {
	var all []pack
	for _, c := range clients {
		all = append(all, c.made)
	}
	for _, s := range servers {
		all = append(all, s.made)
	}
	return all
}

// Both documents name the versions that the lock files have.
func TestDocumentsNameVersions(t *testing.T) {
	for _, name := range []string{"../docs/interop.md", "README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packs() {
			version, err := p.version(".")
			if err != nil {
				t.Fatal(err)
			}
			if named := fmt.Sprintf("`%s` %s", p.name, version); version != "" && !bytes.Contains(text, []byte(named)) {
				t.Errorf("%s does not say %s", name, named)
			}
		}
	}
}

// The document has a cell for each pair of the table, each line of the
// expectations, and each pair that works only through mcpsplice.
func TestDocumentIsOfThisTable(t *testing.T) {
	b, err := os.ReadFile("../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	pairs := map[[2]string]*pair{}
	for _, r := range rows() {
		pairs[[2]string{r.client.name, r.server.name}] = &pair{}
	}
	for _, c := range clients {
		_, line, _ := strings.Cut(text, "\n| `"+c.name+"` | ")
		line, _, _ = strings.Cut(line, " |\n")
		cells := strings.Split(line, " | ")
		if len(cells) != len(servers) {
			t.Errorf("%d cells of client %s, want %d", len(cells), c.name, len(servers))
			continue
		}
		for i, s := range servers {
			if has := strings.Contains(cells[i], " → "); has != (pairs[[2]string{c.name, s.name}] != nil) {
				t.Errorf("the cell of %s at %s is %q", c.name, s.name, cells[i])
			}
		}
	}
	expectations, err := expectationsIn("expectations.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range expectations {
		if line := fmt.Sprintf("| `%v` |", e); !strings.Contains(text, line) || !strings.Contains(text, e.reason) {
			t.Errorf("the document does not have line %d of the expectations file: %s", e.line, line)
		}
	}
	for _, only := range onlyThrough {
		if line := fmt.Sprintf("| %s | %s | %s | %s |", spans(only.clients), spans(only.servers), spans(only.forms), only.why); !strings.Contains(text, line) {
			t.Errorf("the document does not have %s", line)
		}
	}
}
