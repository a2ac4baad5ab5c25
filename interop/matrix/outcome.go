package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// An outcome is what came of one check in one cell.
type outcome struct {
	Client string `json:"client"`
	Server string `json:"server"`
	Check  string `json:"check"`
	// Named says what the cell's protocol lacks for the check, with the section.
	Named string `json:"named,omitempty"`
	// Failed says why the check, or what is checked instead of it, failed.
	Failed string `json:"failed,omitempty"`
	MS     int64  `json:"ms"`
}

// run makes the plan's cell, makes its checks, and ends it.
func (p *plan) run(ctx context.Context) []outcome {
	var all []outcome
	connecting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := openCell(connecting, p.client, p.server)
	if err != nil {
		for _, k := range p.checks {
			all = append(all, p.outcome(k, oneLine(err)))
		}
		return all
	}
	for _, k := range p.checks {
		all = append(all, p.check(ctx, c, k))
	}
	// What does not end well is the fault of the cell, and belongs to no check.
	if err := c.close(); err != nil {
		all = append(all, p.outcome(check{name: "close"}, oneLine(err)))
	}
	return all
}

func (p *plan) outcome(k check, failed string) outcome {
	return outcome{Client: p.client.name, Server: p.server.name, Check: k.name, Failed: failed}
}

// check makes one check.
func (p *plan) check(ctx context.Context, c *cell, k check) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	o := p.outcome(k, "")
	f := k.run
	if k.cannot != nil {
		if o.Named = k.cannot(c); o.Named != "" {
			f = k.instead
		}
	}
	err := f(ctx, c)
	if lost := c.user.lostConnections(); err == nil && lost != nil {
		err = fmt.Errorf("the connection was lost meanwhile: %w", lost)
	}
	if err != nil {
		o.Failed = oneLine(err)
	}
	o.MS = time.Since(start).Milliseconds()
	return o
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// A tally counts outcomes.
type tally struct{ passed, named, failed int }

func tallyOf(all []outcome) tally {
	var t tally
	for _, o := range all {
		t.add(o)
	}
	return t
}

func (t *tally) add(o outcome) {
	switch {
	case o.Failed != "":
		t.failed++
	case o.Named != "":
		t.named++
	default:
		t.passed++
	}
}

// total is how many checks there were.
func (t tally) total() int { return t.passed + t.named + t.failed }

// String is how a cell of the table reads: checks passed, and those named or failed.
func (t tally) String() string {
	text := fmt.Sprint(t.passed)
	if t.named > 0 {
		text += fmt.Sprintf(" n%d", t.named)
	}
	if t.failed > 0 {
		text += fmt.Sprintf(" !%d", t.failed)
	}
	return text
}

// writeJSON writes the outcomes and their sums.
func writeJSON(w io.Writer, all []outcome) error {
	t := tallyOf(all)
	text, err := json.MarshalIndent(map[string]any{
		"outcomes": all, "passed": t.passed, "named": t.named, "failed": t.failed, "total": t.total(),
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
