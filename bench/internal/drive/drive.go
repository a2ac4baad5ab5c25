// Package drive is what the client programs of the benchmarks have in common:
// the command line, the calls, and the figures, which a program takes of itself.
package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/proc"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// Command is the first argument of every client program.
const Command = "client"

// A Task says what a client program is to do.
type Task struct {
	Kind     string // of the client, if a program has several
	Revision wire.Revision
	Size     int // bytes of the text argument
	InFlight int
	Time     time.Duration
	// One of them: the server's address over HTTP, or its command.
	Addr    string
	Command []string
}

// URL returns where the server is, empty for a command.
func (t *Task) URL() string {
	if t.Addr == "" {
		return ""
	}
	return "http://" + t.Addr + wire.Path
}

// Args returns the task as the arguments of a client program.
func (t *Task) Args() []string {
	list := []string{
		Command, t.Kind, string(t.Revision), strconv.Itoa(t.Size), strconv.Itoa(t.InFlight),
		strconv.FormatInt(t.Time.Milliseconds(), 10),
	}
	if t.Addr != "" {
		return append(list, "http", t.Addr)
	}
	return append(append(list, "stdio"), t.Command...)
}

var errUsage = errors.New("usage: PROGRAM client KIND REVISION SIZE INFLIGHT MILLISECONDS http ADDRESS | stdio COMMAND [ARGUMENT...]")

func parse(args []string) (*Task, error) {
	const fixed = 7
	if len(args) < fixed+1 {
		return nil, errUsage
	}
	t := &Task{Kind: args[1]}
	var err, sizeErr, timeErr error
	t.Revision, err = wire.ParseRevision(args[2])
	t.Size, sizeErr = strconv.Atoi(args[3])
	inFlight, flightErr := strconv.Atoi(args[4])
	ms, timeErr := strconv.Atoi(args[5])
	t.InFlight, t.Time = inFlight, time.Duration(ms)*time.Millisecond
	if err := errors.Join(err, sizeErr, flightErr, timeErr); err != nil {
		return nil, err
	}
	switch args[6] {
	case "http":
		t.Addr = args[fixed]
	case "stdio":
		t.Command = args[fixed:]
	default:
		return nil, errUsage
	}
	return t, nil
}

// A Report is the figures that a client program prints, as JSON.
type Report struct {
	Calls   int           `json:"calls"`
	Elapsed time.Duration `json:"elapsedNs"`
	P50     time.Duration `json:"p50Ns"`
	P99     time.Duration `json:"p99Ns"`
	CPU     time.Duration `json:"cpuNs"` // of the process, for all calls; 0: not known
	// What all calls have allocated; 0 where a program does not know.
	Bytes   uint64 `json:"bytes"`
	Objects uint64 `json:"objects"`
	GCs     uint64 `json:"gcs"`
	Peak    int64  `json:"peakBytes"` // resident memory; 0: not known
}

// A Runner makes the calls of a load; a [raw.Client] is one.
type Runner interface {
	Run(raw.Load) (*raw.Sample, error)
	Close() error
}

// Main does what args, which begin with [Command], say, and prints the report.
// Connect returns a client that is ready for calls.
func Main(args []string, connect func(context.Context, *Task) (Runner, error)) error {
	t, err := parse(args)
	if err != nil {
		return err
	}
	r, err := connect(context.Background(), t)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	report, err := measure(r, raw.Load{Text: wire.Text(t.Size), InFlight: t.InFlight, Time: t.Time})
	if err != nil {
		return errors.Join(err, r.Close())
	}
	if err := print(os.Stdout, report); err != nil {
		return err
	}
	return r.Close()
}

func print(w io.Writer, r *Report) error { return json.NewEncoder(w).Encode(r) }

// measure warms up with a quarter of the load and takes the figures of the load.
func measure(r Runner, l raw.Load) (*Report, error) {
	const share = 4
	warm := l
	warm.Time /= share
	if _, err := r.Run(warm); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop, err := profile()
	if err != nil {
		return nil, err
	}
	began, cpuErr := proc.CPU(os.Getpid())
	s, err := r.Run(l)
	ended, endErr := proc.CPU(os.Getpid())
	stop()
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	report := &Report{
		Calls: s.Calls, Elapsed: s.Elapsed, P50: s.Quantile(0.50), P99: s.Quantile(0.99),
		Bytes: after.TotalAlloc - before.TotalAlloc, Objects: after.Mallocs - before.Mallocs,
		GCs: uint64(after.NumGC - before.NumGC),
	}
	if cpuErr == nil && endErr == nil {
		report.CPU = ended - began
	}
	if mem, err := proc.MemoryOf(os.Getpid()); err == nil {
		report.Peak = mem.Peak
	}
	return report, nil
}

// ProfileEnv names the environment variable with the file for a processor profile of
// the measured part.
const ProfileEnv = "BENCH_PROFILE"

// profile begins the profile that [ProfileEnv] asks for.
func profile() (stop func(), err error) {
	name := os.Getenv(ProfileEnv)
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// Callers is a [Runner] of a client library. Call makes one call with a text and
// returns that of the result; it is called concurrently.
type Callers struct {
	Call  func(ctx context.Context, text string) (string, error)
	Ended func() error
}

// Close implements [Runner].
func (c *Callers) Close() error { return c.Ended() }

// Run implements [Runner]. The length of each reply is checked, and the whole of
// the first one of each goroutine.
func (c *Callers) Run(l raw.Load) (*raw.Sample, error) {
	const most = 1 << 16 // latencies, so that noting them allocates next to nothing
	var (
		wg        sync.WaitGroup
		end       = time.Now().Add(l.Time)
		began     = time.Now()
		latencies = make([][]time.Duration, l.InFlight)
		errs      = make([]error, l.InFlight)
	)
	for i := range l.InFlight {
		latencies[i] = make([]time.Duration, 0, most/l.InFlight)
		wg.Go(func() { latencies[i], errs[i] = c.calls(l.Text, end, latencies[i]) })
	}
	wg.Wait()
	elapsed := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return raw.NewSample(elapsed, latencies...), nil
}

func (c *Callers) calls(text string, end time.Time, latencies []time.Duration) ([]time.Duration, error) {
	ctx := context.Background()
	for now := time.Now(); now.Before(end) || len(latencies) == 0; {
		got, err := c.Call(ctx, text)
		if err != nil {
			return nil, err
		}
		if len(got) != len(text) || len(latencies) == 0 && got != text {
			return nil, fmt.Errorf("not the text that was sent: %s", wire.Excerpt([]byte(got)))
		}
		done := time.Now()
		latencies = append(latencies, done.Sub(now))
		now = done
	}
	return latencies, nil
}
