package rounds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/rounds"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A call that is in the ledger once too often was executed twice, or without
// having been made. Which of those after a kill is the first that is executed is a matter
// of time: a call that is quicker than the news of the kill is lost.
func TestWhatIsExecutedTwiceIsFound(t *testing.T) {
	dir := t.TempDir()
	child := &faulttest.Child{Dir: dir}
	ids := []string{"foreign"}
	for i := range 50 {
		ids = append(ids, fmt.Sprintf("0-again%d", i))
	}
	for _, id := range ids {
		if err := child.Ledger().Record(id); err != nil {
			t.Fatal(err)
		}
	}
	f, err := rounds.Run(t.Context(), rounds.Series{Kind: rounds.Kind{Era: mcp.Modern}, Seed: 1, Rounds: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(f.Problems, "\n")
	if f.Twice == 0 || strings.Count(problems, "2 times") != f.Twice || !strings.Contains(problems, "the call foreign was executed and never made") {
		t.Errorf("%d executed twice; %q", f.Twice, f.Problems)
	}
	if f.Calls < 4 || len(f.Recovery) != 2 {
		t.Errorf("%d calls, %d recoveries", f.Calls, len(f.Recovery))
	}
}

func TestFiguresAreAddedAndPrinted(t *testing.T) {
	figures := func(late time.Duration, recovery ...time.Duration) *rounds.Figures {
		return &rounds.Figures{
			Kind: rounds.Kinds[0], Calls: 3, Ends: map[string]int{"a result": 2, "lost": 1}, Twice: 1, Late: late,
			Recovery: recovery, Left: faulttest.Leftovers{Processes: 1}, Problems: []string{"something"},
		}
	}
	f := figures(-time.Second, 3*time.Millisecond, time.Millisecond)
	f.Add(figures(time.Millisecond, 2*time.Millisecond))
	if slow := f.Slow(); len(slow) != 0 {
		t.Errorf("slow: %q", slow)
	}
	late := figures(2*time.Second, time.Hour)
	late.AfterKill = time.Second
	if slow := late.Slow(); len(slow) != 3 {
		t.Errorf("slow: %q", slow)
	}
	var b strings.Builder
	if err := rounds.Print(&b, []*rounds.Figures{f}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	row := fmt.Sprintf("%v 3 6 4 2 1ms 0s 2ms 3ms 3ms 2, 0, 0 %v: 4 a result 2 lost FAULT something FAULT something",
		rounds.Kinds[0], rounds.Kinds[0])
	if !strings.HasSuffix(got, row) {
		t.Errorf("got %s, want at its end %s", got, row)
	}
}

// What is measured holds, however long it takes.
func TestMeasures_R2_R17_R18(t *testing.T) {
	all, err := rounds.MeasureAll(t.Context(), t.TempDir(), rounds.Extent{Loop: 100 * time.Millisecond, Calls: 50})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := rounds.PrintMeasures(&b, append(all, rounds.Measure{Name: "more", What: "than", Seen: "is", Limit: "allowed", Over: true})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"R2 ends at once ", "R2 ends after the handshake ", "processor time", "starts in", "R17 100 MiB/s of stderr ", "R18 ", "allowed FAULT"} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("the table lacks %s:\n%s", want, b.String())
		}
	}
}

// A server that is watched for as long as the window of the limit is judged by it.
func TestStartsAreLimitedWhenTheWindowHasJustPassed_R2(t *testing.T) {
	for passed, want := range map[time.Duration]int{
		time.Second: 12, time.Minute: 12, time.Minute + 10*time.Millisecond: 12, 90 * time.Second: 24, 5 * time.Minute: 60,
	} {
		if got := rounds.StartsWithin(passed); got != want {
			t.Errorf("%d starts in %v, want %d", got, passed, want)
		}
	}
}
