package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// Markers of the part of the document that this command writes.
const (
	beginMark = "<!-- matrix -->"
	endMark   = "<!-- /matrix -->"
)

// newDocument is a document that has no other part yet.
const newDocument = "# Interop\n\n" + beginMark + "\n" + endMark + "\n"

// updateDocument writes the table between the markers of a document.
func updateDocument(name string, all []outcome) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(newDocument), nil
	}
	if err != nil {
		return err
	}
	updated, err := between(string(text), markdown(all))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(updated), 0o644)
}

// between returns a document with another text between its markers.
func between(document, text string) (string, error) {
	before, rest, begins := strings.Cut(document, beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return "", fmt.Errorf("there is no %s and %s", beginMark, endMark)
	}
	return before + beginMark + "\n" + text + endMark + after, nil
}

// markdown returns the part of the document.
func markdown(all []outcome) string {
	var b strings.Builder
	t := tallyOf(all)
	fmt.Fprintf(&b, "Written by `go -C interop run ./matrix -md ../docs/interop.md` with %s on %s/%s.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&b, "A row is what the bridge's client speaks, a column what the server behind the bridge speaks. A cell says\n"+
		"how many of the %d checks passed; nN are named below, since the cell's protocol does not have what they check.\n\n", len(checks))
	for i, row := range table(all) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	b.WriteString("\n| side | revision |\n|---|---|\n")
	for _, s := range sides {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.revision)
	}
	b.WriteString("\n| check | what is checked |\n|---|---|\n")
	for _, k := range checks {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.name, k.what)
	}
	b.WriteString("\nNamed, and checked for what happens instead:\n\n")
	for _, n := range namedOf(all) {
		fmt.Fprintf(&b, "- `%s` in %d outcomes: %s\n", strings.Join(n.checks, "`, `"), n.cells, n.reason)
	}
	fmt.Fprintf(&b, "\n`matrix: %d/%d`: %d passed, %d named.\n", t.passed+t.named, t.total(), t.passed, t.named)
	return b.String()
}
