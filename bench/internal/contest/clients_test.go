package contest_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
)

// Every client gets what it has sent, in every revision that it speaks, alone and
// with calls side by side, small and large, over both transports, and knows what it
// took. The TypeScript client is not installed here.
func TestClientsCall(t *testing.T) {
	floor := contest.FloorOverHTTP()
	for _, c := range contest.SelectClients(contest.Clients(), matchAll, false) {
		for _, r := range c.Revisions {
			t.Run(fmt.Sprint(c.Name, "/", r), func(t *testing.T) {
				t.Parallel()
				server, err := floor.Start(t.Context(), paths, contest.StartOptions{Revision: r, Home: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Stop()
				for _, addr := range []string{server.Addr(), ""} {
					if !c.Goes(addr != "") {
						continue
					}
					for _, size := range []int{100, 64 << 10} {
						for _, n := range []int{1, 4} {
							task := drive.Task{Revision: r, Size: size, InFlight: n, Time: 5 * time.Millisecond, Addr: addr}
							report, err := c.Measure(t.Context(), paths, task, t.TempDir())
							if err != nil {
								t.Fatalf("%d bytes, %d in flight, at %q: %v", size, n, addr, err)
							}
							if report.CPU == 0 || report.P50 == 0 || report.P99 < report.P50 || report.Bytes == 0 {
								t.Errorf("%d bytes, %d in flight, at %q: a figure is missing: %+v", size, n, addr, report)
							}
						}
					}
				}
			})
		}
	}
}

var matchAll = regexp.MustCompile("")
