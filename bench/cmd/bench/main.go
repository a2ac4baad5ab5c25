// Command bench measures this project against its peers and against the
// physical limit. README.md says how; `bench/run` runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(exitUsage)
	}
	switch o.command {
	case correlateCommand:
		err = correlate(ctx, o, os.Stdout, os.Stderr)
	case crowdCommand:
		err = crowded(ctx, o, os.Stdout, os.Stderr)
	default:
		err = run(ctx, o, os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(exitFailure)
	}
}

func run(ctx context.Context, o *options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "mcpsplice-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list := contest.Select(contest.All(), o.only.Regexp)
	fmt.Fprintln(progress, "building the contestants")
	var clients []contest.Client
	if slices.Contains(o.transports.values, client) {
		clients = contest.SelectClients(contest.Clients(), o.only.Regexp, o.script != "")
	}
	paths, err := contest.Build(ctx, o.module, dir, list, clients)
	if err != nil {
		return err
	}
	paths.Script = o.script
	m := &meter{options: o, paths: paths, home: dir, contestants: list, clients: clients, progress: progress}
	began := time.Now()
	machine := machineNow()
	if err := m.measure(ctx); err != nil {
		return err
	}
	m.results.Machine = machine
	m.results.Reps, m.results.CellTime, m.results.Took = o.reps, o.time.String(), time.Since(began).Round(time.Second).String()

	report := render(&m.results)
	if _, err := out.Write(report); err != nil {
		return err
	}
	if err := writeFile(o, o.md, func() ([]byte, error) { return report, nil }); err != nil {
		return err
	}
	return writeFile(o, o.json, func() ([]byte, error) {
		return json.MarshalIndent(&m.results, "", "\t")
	})
}

func writeFile(o *options, name string, content func() ([]byte, error)) error {
	if name == "" {
		return nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.dir, name)
	}
	b, err := content()
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	const mode = 0o644
	return os.WriteFile(name, b, mode)
}

// parseOptions reads the command line. An explicit flag wins over -quick.
func parseOptions(args []string, errOut io.Writer) (*options, error) {
	o := fullOptions()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(errOut)
	quick := fs.Bool("quick", false, "about two minutes: fewer cells, repetitions and less time in each")
	fs.IntVar(&o.reps, "reps", o.reps, "repetitions of everything")
	fs.DurationVar(&o.time, "time", o.time, "time of one cell for one contestant")
	fs.Var(&o.only, "only", "measure contestants whose name matches this regular `expression`, and the floors")
	fs.Var(&o.sizes, "sizes", "bytes of the text argument")
	fs.Var(&o.inFlight, "inflight", "calls in flight")
	fs.Var(&o.transports, "transports", "of stdio, http, bridge, listen and client")
	fs.IntVar(&o.streams, "streams", o.streams, "subscriptions of one server")
	fs.Var(&o.revisions, "revisions", "protocol revisions")
	fs.StringVar(&o.json, "json", "", "write every single figure to this `file`")
	fs.StringVar(&o.md, "md", "", "write the tables to this `file` too")
	fs.StringVar(&o.dir, "dir", ".", "directory that -json and -md are relative to")
	fs.StringVar(&o.module, "module", ".", "directory of the benchmarks' module")
	fs.StringVar(&o.script, "ts", "", "`file` of the TypeScript client, if it is installed")
	fs.IntVar(&o.calls, "calls", o.calls, "calls in all, of "+correlateCommand+" and "+crowdCommand)
	fs.IntVar(&o.connections, "connections", o.connections, "connections of "+correlateCommand)
	fs.IntVar(&o.clients, "clients", o.clients, "clients of "+crowdCommand)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if o.command = fs.Arg(0); o.command == correlateCommand || o.command == crowdCommand {
		if o.only.String() == "" {
			o.only = pattern{correlateOnly}
		}
		if err := fs.Parse(fs.Args()[1:]); err != nil {
			return nil, err
		}
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if *quick {
		given := make(map[string]bool)
		fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
		o.quicken(given)
	}
	return o, o.validate()
}
