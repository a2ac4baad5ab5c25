package contest_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/proc"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

const moduleDir = "../.."

var paths contest.Paths

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if paths, err = contest.Build(context.Background(), moduleDir, dir, contest.All(), contest.Clients()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Every contestant answers correctly in every revision that it speaks, alone
// and with calls side by side, small and large: the client checks each reply.
func TestContestantsAnswer(t *testing.T) {
	loads := []raw.Load{
		{Text: wire.Text(100), InFlight: 1, Calls: 20},
		{Text: wire.Text(100), InFlight: 16, Calls: 100},
		{Text: wire.Text(64 << 10), InFlight: 1, Calls: 2},
		{Text: wire.Text(64 << 10), InFlight: 4, Calls: 8},
	}
	for _, c := range contest.All() {
		for _, r := range c.Revisions {
			t.Run(fmt.Sprint(c.Transport, "/", c.Name, "/", r), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				p, err := c.Start(ctx, paths, contest.StartOptions{Revision: r, Home: t.TempDir(), MemStats: c.MemStats})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Stop()
				for _, l := range loads {
					s, err := p.Client.Run(l)
					if err != nil {
						t.Fatalf("%d bytes, %d in flight: %v%s", len(l.Text), l.InFlight, err, p.Stderr())
					}
					if s.Calls != l.Calls {
						t.Errorf("%d bytes, %d in flight: %d calls, want %d", len(l.Text), l.InFlight, s.Calls, l.Calls)
					}
				}
				checkAccounts(t, p)
				if c.Listen {
					checkListen(t, p)
				}
				if c.MemStats {
					checkMemStats(ctx, t, p)
				}
			})
		}
	}
}

// checkListen makes sure that every change gets to every subscription, once.
func checkListen(t *testing.T, p *contest.Process) {
	t.Helper()
	const streams = 20
	s, err := raw.OpenStreams(p.Addr(), streams, wire.ResourceCount)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for times := 1; times <= 2; times++ {
		if err := p.Client.(*raw.HTTP).Change(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); s.Told() < times*streams*wire.ResourceCount && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if lost, doubled := s.Count(times); lost != 0 || doubled != 0 {
			t.Errorf("after %d changes %d notifications are lost and %d doubled", times, lost, doubled)
		}
	}
}

func checkAccounts(t *testing.T, p *contest.Process) {
	t.Helper()
	cpu, err := proc.CPU(p.PID())
	if err != nil || cpu <= 0 {
		t.Errorf("CPU time %v, %v", cpu, err)
	}
	mem, err := proc.MemoryOf(p.PID())
	if err != nil || mem.Resident <= 0 || mem.Peak < mem.Resident {
		t.Errorf("memory %+v, %v", mem, err)
	}
}

func checkMemStats(ctx context.Context, t *testing.T, p *contest.Process) {
	t.Helper()
	m, err := p.MemStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	counters, err := m.Read()
	if err != nil || counters.Objects == 0 {
		t.Errorf("heap counters %+v, %v", counters, err)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range contest.All() {
		key := fmt.Sprint(c.Transport, c.Bridge, c.Name)
		if seen[key] {
			t.Errorf("%s twice", key)
		}
		seen[key] = true
	}
}

func TestSelectKeepsLimits(t *testing.T) {
	var names []string
	for _, c := range contest.Select(contest.All(), regexp.MustCompile("^mcpgo$")) {
		names = append(names, string(c.Transport)+"/"+c.Name)
	}
	want := "[http/floor http/floor-typed stdio/floor stdio/floor-typed stdio/mcpgo http/floor-bridge http/floor-listen]"
	if got := fmt.Sprint(names); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDeadServerIsAnError(t *testing.T) {
	for _, c := range contest.Select(contest.All(), regexp.MustCompile("^floor$")) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p, err := c.Start(ctx, paths, contest.StartOptions{Revision: wire.Legacy, Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for _, size := range []int{100, 1 << 20} {
			if _, err := p.Client.Run(raw.Load{Text: wire.Text(size), InFlight: 4, Time: time.Minute}); err == nil {
				t.Errorf("%s over %s: no error", c.Name, c.Transport)
			}
		}
		p.Stop()
	}
}
