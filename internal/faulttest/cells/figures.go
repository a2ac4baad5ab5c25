package cells

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Figures are what came of the rounds of a cell.
type Figures struct {
	Cell     string
	Rounds   int
	Calls    int
	Ends     map[string]int // calls, by how they ended
	Twice    int            // calls that were executed more than once
	Left     faulttest.Leftovers
	Problems []string // what does not hold, each with its seed and round
}

func newFigures(client, server Side) *Figures {
	return &Figures{Cell: fmt.Sprintf("%v to %v", client, server), Ends: make(map[string]int)}
}

// answered is how a call ends that has a result.
const answered = "a result"

func (f *Figures) count(err error) {
	f.Calls++
	f.Ends[endOf(err)]++
}

// endOf describes how a call ended for its client: the bridge's own failures by their
// kind and outcome.
func endOf(err error) string {
	if err == nil {
		return answered
	}
	if errors.Is(err, errLeft) || errors.Is(err, errNoRoom) {
		return err.Error()
	}
	if failed, ok := errors.AsType[*mcp.CallError](err); ok {
		return fmt.Sprintf("%s, %s", failed.Kind, failed.Outcome)
	}
	wire := jsonrpc.ToWire(err)
	ours := wire.Data.Get("mcpsplice")
	if kind, ok := ours.LookupString("kind"); ok {
		return fmt.Sprintf("%s, %s", kind, outcomeOf(err))
	}
	return wire.Error()
}

// outcomeOf is what is said of whether a call was executed, by us or by the bridge.
func outcomeOf(err error) mcp.Outcome {
	if failed, ok := errors.AsType[*mcp.CallError](err); ok {
		return failed.Outcome
	}
	wire := jsonrpc.ToWire(err)
	ours := wire.Data.Get("mcpsplice")
	outcome, _ := ours.LookupString("outcome")
	return mcp.Outcome(outcome)
}

// Add adds the figures of further rounds of the same cell.
func (f *Figures) Add(more *Figures) {
	f.Rounds += more.Rounds
	f.Calls += more.Calls
	for end, n := range more.Ends {
		f.Ends[end] += n
	}
	f.Twice += more.Twice
	f.Left.Processes += more.Left.Processes
	f.Left.Goroutines += more.Left.Goroutines
	f.Left.Descriptors += more.Left.Descriptors
	f.Problems = append(f.Problems, more.Problems...)
}

// Print writes a table of figures, how calls ended in all of them, and all problems.
func Print(w io.Writer, all []*Figures) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "across a bridge\trounds\tcalls\tresults\ttwice\tleft (proc, gor, fd)\t")
	sum := make(map[string]int)
	for _, f := range all {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d, %d, %d\t\n", f.Cell, f.Rounds, f.Calls, f.Ends[answered], f.Twice,
			f.Left.Processes, f.Left.Goroutines, f.Left.Descriptors)
		for end, n := range f.Ends {
			sum[end] += n
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, end := range slices.Sorted(maps.Keys(sum)) {
		fmt.Fprintf(w, "%9d  %s\n", sum[end], end)
	}
	for _, f := range all {
		for _, problem := range f.Problems {
			fmt.Fprintf(w, "  FAULT  %s\n", problem)
		}
	}
	return nil
}
