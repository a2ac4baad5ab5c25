// Command interop runs other people's MCP clients and ours against other people's
// MCP servers and ours, with mcpsplice between them and, as the control, without
// it. The script run beside it installs what it needs and starts it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	tools        tools
	logs         string
	only         string
	direct       bool
	trace        bool
	list         bool
	jobs         int
	expectations string
	md           string

	row string // this process runs that row only
	tap string // this process is a tap that writes there
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parseFlags()); err != nil {
		fmt.Fprintln(os.Stderr, "interop: error:", err)
		os.Exit(1)
	}
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.only, "only", "", "run rows that match `SERVER/FORM/CLIENT`, patterns allowed, and their controls")
	flag.BoolVar(&o.direct, "direct", false, "run the controls only; needs no mcpsplice")
	flag.BoolVar(&o.trace, "trace", false, "record the messages on both sides of mcpsplice")
	flag.BoolVar(&o.list, "list", false, "list the rows and end")
	flag.IntVar(&o.jobs, "j", 2*runtime.NumCPU(), "rows to run at a time")
	flag.StringVar(&o.tools.Dir, "tools", "", "`directory` of the installed peers")
	flag.StringVar(&o.tools.Node, "node", "", "node of version 22 or later")
	flag.StringVar(&o.tools.Source, "source", "", "`directory` of this module")
	flag.StringVar(&o.tools.Mcpsplice, "mcpsplice", "", "the mcpsplice binary")
	flag.StringVar(&o.logs, "logs", "", "`directory` for what the processes say")
	flag.StringVar(&o.expectations, "expectations", "", "`file` of checks that are known to fail")
	flag.StringVar(&o.md, "md", "", "write what a whole run has shown into a Markdown `file`")
	flag.StringVar(&o.row, "row", "", "for the runner itself: run one row in this process")
	flag.StringVar(&o.tap, "tap", "", "for the runner itself: record the stdio of a command")
	flag.Parse()
	return o
}

func run(ctx context.Context, o options) error {
	switch {
	case o.tap != "":
		return tapMain(o.tap, flag.Args())
	case o.row != "":
		return rowMain(ctx, o)
	}
	whole := o.only == "" && !o.direct
	if o.md != "" && !whole {
		return errors.New("-md is for a whole run")
	}
	chosen, err := choose(rows(), o.only, o.direct)
	if err != nil {
		return err
	}
	if o.list {
		for _, r := range chosen {
			fmt.Println(r)
		}
		return nil
	}
	expectations, err := expectationsIn(o.expectations)
	if err != nil {
		return err
	}
	done, err := runAll(ctx, o, chosen, expectations)
	if err != nil {
		return err
	}
	all := judge(done, chosen, expectations)
	problems := brokenPairs(done, chosen)
	if whole {
		problems = append(problems, stale(expectations)...)
	}
	if !report(os.Stdout, all, problems, o.logs) {
		os.Exit(1)
	}
	if o.md == "" {
		return nil
	}
	return writeDocument(o.md, o.tools.Source, all, expectations)
}

// choose picks the rows that were asked for, with the controls of each.
func choose(all []row, only string, direct bool) ([]row, error) {
	if only == "" {
		only = "*/*/*"
	}
	for strings.Count(only, "/") < 2 {
		only += "/*"
	}
	var picked []row
	for _, r := range all {
		ok, err := path.Match(only, r.String())
		if err != nil {
			return nil, err
		}
		if ok && (!direct || r.direct()) {
			picked = append(picked, r)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("no row matches %s", only)
	}
	return slices.DeleteFunc(slices.Clone(all), func(r row) bool {
		return !slices.ContainsFunc(picked, func(p row) bool {
			pair := p.server.name == r.server.name && p.client.name == r.client.name
			return pair && (p.form == r.form || r.direct())
		})
	}), nil
}

// runAll runs the rows, some at a time, each in a process of its own, and afterwards
// those again that are strange.
func runAll(ctx context.Context, o options, chosen []row, expectations []*expectation) (map[string][]check, error) {
	if err := becomeReaper(); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(o.logs); err != nil {
		return nil, err
	}
	start := time.Now()
	done := map[string][]check{}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, max(1, o.jobs))
	for _, r := range chosen {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			rowStart := time.Now()
			checks := runRow(ctx, o, r)
			mu.Lock()
			defer mu.Unlock()
			done[r.String()] = checks
			fmt.Printf("%-32s %s in %.1f s\n", r, summary(checks), time.Since(rowStart).Seconds())
		})
	}
	group.Wait()
	for _, r := range chosen {
		if ctx.Err() == nil && strange(r, done[r.String()], expectations) {
			done[r.String()] = runRow(ctx, o, r)
			fmt.Printf("%-32s %s, run again alone\n", r, summary(done[r.String()]))
		}
	}
	fmt.Printf("%d rows in %.0f s\n", len(chosen), time.Since(start).Seconds())
	left := descendants()
	killAll()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("left behind after the run: %v", left)
	}
	return done, nil
}

func summary(checks []check) string {
	var failing []string
	for _, c := range checks {
		if !c.OK {
			failing = append(failing, c.Name)
		}
	}
	if len(failing) == 0 {
		return fmt.Sprintf("%d ok", len(checks))
	}
	return fmt.Sprintf("%d ok, not ok: %s", len(checks)-len(failing), strings.Join(failing, " "))
}

// runRow runs one row in a process of its own, which adopts and ends all that
// the row starts.
func runRow(ctx context.Context, o options, r row) []check {
	ctx, cancel := context.WithTimeout(ctx, startLimit+startLimit+clientLimit+2*teardownLimit)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return []check{{Name: "row", Detail: err.Error()}}
	}
	cmd := exec.CommandContext(ctx, self, "-row", r.String(), "-tools", o.tools.Dir, "-node", o.tools.Node,
		"-source", o.tools.Source, "-mcpsplice", o.tools.Mcpsplice, "-logs", o.logs,
		"-expectations", o.expectations, fmt.Sprintf("-trace=%t", o.trace))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var checks []check
	for line := range bytes.Lines(out) {
		var c check
		if err := json.Unmarshal(line, &c); err == nil {
			checks = append(checks, c)
		}
	}
	if err != nil {
		checks = append(checks, check{Name: "row", Detail: err.Error()})
	}
	writeLog(filepath.Join(o.logs, strings.ReplaceAll(r.String(), "/", "-"), "checks"), checks)
	return checks
}

func writeLog(name string, checks []check) {
	file, err := os.Create(name)
	if err != nil {
		return
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for _, c := range checks {
		fmt.Fprintf(w, "%-12s %-5t %6d ms  %s\n", c.Name, c.OK, c.MS, c.Detail)
	}
	if err := errors.Join(w.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
