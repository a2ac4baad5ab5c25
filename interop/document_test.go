package main

import (
	"strings"
	"testing"
)

func TestDocument(t *testing.T) {
	expectations, err := readExpectations(strings.NewReader(`
gosdk/http/mcpgo/list  eras
?!gosdk/B/mcpgo/log  too late
`))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string][]check{
		"gosdk/http/mcpgo": {{Name: "connect", OK: true}, {Name: "list"}, {Name: "log", OK: true}, {Name: "teardown", OK: true}},
		"gosdk/B/mcpgo":    {{Name: "connect", OK: true}, {Name: "list", OK: true}, {Name: "log"}},
		"mcpgo/stdio/go":   {{Name: "connect", OK: true}},
	}
	var ran []row
	for name := range done {
		ran = append(ran, rowNamed(t, name))
	}
	text, err := document(".", judge(done, ran, expectations), expectations)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| **2/3 → 2/3** |",
		"| 1/1 → 0/0 |",
		"Of 2 pairs 1 work without mcpsplice in all forms, and all work through it. Of the\nchecks 3/4 passed without it, 2/3 through it.\n",
		"### Passes without mcpsplice only\n\n| checks | failed without | failed through | reason |\n|---|---|---|---|\n" +
			"| `?gosdk B mcpgo log` | 0 | 1 | too late |\n",
		"| `gosdk http mcpgo list` | 1 | 0 | eras |\n",
		"| `mcpgo` | Go `github.com/mark3labs/mcp-go` v",
		"| `splice` | our own package client | the newest that it is offered |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What the command matrix has written stays.
func TestDocumentKeepsTheMatrix(t *testing.T) {
	for _, tt := range []struct{ old, want string }{
		{"", matrixBegin + "\n" + matrixEnd + "\n"},
		{"# Interop\n" + matrixBegin + "\nits | table\n" + matrixEnd + "\nold\n", matrixBegin + "\nits | table\n" + matrixEnd + "\n"},
		{"broken " + matrixBegin + " text", matrixBegin + "\n" + matrixEnd + "\n"},
	} {
		if got := matrixPart(tt.old); got != tt.want {
			t.Errorf("of %q stays %q, want %q", tt.old, got, tt.want)
		}
	}
}
