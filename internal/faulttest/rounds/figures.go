package rounds

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Figures are what came of the rounds of one kind.
type Figures struct {
	Kind      Kind
	Calls     int
	Ends      map[string]int  // calls, by how they ended
	Twice     int             // calls that were executed more than once
	Late      time.Duration   // the slowest end of a call, after its deadline; may be negative
	AfterKill time.Duration   // the slowest failure of a call after the server was killed from outside
	Recovery  []time.Duration // from when the server could be called again to the first success
	Left      faulttest.Leftovers
	Problems  []string // what does not hold, each with its seed and round
}

func newFigures(kind Kind) *Figures {
	return &Figures{Kind: kind, Ends: make(map[string]int), Late: -time.Hour}
}

// count takes up the end of a call.
func (f *Figures) count(err error, late time.Duration) {
	f.Calls++
	f.Ends[endOf(err)]++
	f.Late = max(f.Late, late)
}

// answered is how a call ends that has a result.
const answered = "a result"

func endOf(err error) string {
	failed, ok := errors.AsType[*mcp.CallError](err)
	switch {
	case err == nil:
		return answered
	case ok:
		return fmt.Sprintf("%s, %s", failed.Kind, failed.Outcome)
	case jsonrpc.FromPeer(err):
		return "an error of the server"
	}
	return fmt.Sprintf("%T", err)
}

// Add adds the figures of further rounds of the same kind.
func (f *Figures) Add(more *Figures) {
	f.Calls += more.Calls
	for end, n := range more.Ends {
		f.Ends[end] += n
	}
	f.Twice += more.Twice
	f.Late, f.AfterKill = max(f.Late, more.Late), max(f.AfterKill, more.AfterKill)
	f.Recovery = append(f.Recovery, more.Recovery...)
	f.Left.Processes += more.Left.Processes
	f.Left.Goroutines += more.Left.Goroutines
	f.Left.Descriptors += more.Left.Descriptors
	f.Problems = append(f.Problems, more.Problems...)
}

// quantile returns the time that a part q of the recoveries took at most.
func (f *Figures) quantile(q float64) time.Duration {
	if len(f.Recovery) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.Recovery))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// The times that are promised, on a machine that
// is not busy with something else.
const (
	MaxLate      = time.Second            // past its deadline, until a call ends
	MaxRecovery  = time.Second            // until the first success
	MaxAfterKill = 100 * time.Millisecond // until calls of a child that was killed fail
)

// Slow returns what took longer than is promised.
func (f *Figures) Slow() []string {
	var slow []string
	if f.Late > MaxLate {
		slow = append(slow, fmt.Sprintf("%v: a call ended %v past its deadline, the limit is %v", f.Kind, f.Late, MaxLate))
	}
	if longest := f.quantile(1); longest > MaxRecovery {
		slow = append(slow, fmt.Sprintf("%v: a recovery took %v, the limit is %v", f.Kind, longest, MaxRecovery))
	}
	if !f.Kind.HTTP && f.AfterKill > MaxAfterKill {
		slow = append(slow, fmt.Sprintf("%v: a call failed %v after the kill, the limit is %v", f.Kind, f.AfterKill, MaxAfterKill))
	}
	return slow
}

// Print writes a table of figures, how calls ended, and all problems.
func Print(w io.Writer, all []*Figures) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	fmt.Fprintln(table, "kind\trounds\tcalls\tresults\ttwice\tpast deadline\tfailed after kill\trecovery p50\tp99\tmax\tleft (proc, gor, fd)\t")
	for _, f := range all {
		late := "never"
		if f.Late > 0 {
			late = round(f.Late).String()
		}
		fmt.Fprintf(table, "%v\t%d\t%d\t%d\t%d\t%s\t%v\t%v\t%v\t%v\t%d, %d, %d\t\n",
			f.Kind, len(f.Recovery), f.Calls, f.Ends[answered], f.Twice, late, round(f.AfterKill),
			round(f.quantile(0.5)), round(f.quantile(0.99)), round(f.quantile(1)),
			f.Left.Processes, f.Left.Goroutines, f.Left.Descriptors)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range all {
		fmt.Fprintf(w, "\n%v:\n", f.Kind)
		for _, end := range slices.Sorted(maps.Keys(f.Ends)) {
			fmt.Fprintf(w, "%9d  %s\n", f.Ends[end], end)
		}
		for _, problem := range slices.Concat(f.Problems, f.Slow()) {
			fmt.Fprintf(w, "  FAULT  %s\n", problem)
		}
	}
	return nil
}
