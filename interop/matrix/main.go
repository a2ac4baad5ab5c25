// Command matrix checks the bridge in all combinations of its sides: each way to
// speak MCP before it, and each one behind it. In every cell the same checks run,
// with clients of package client and a server of package server.
//
// It prints a table, what failed, and what the protocol of a cell cannot carry.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	only  string
	json  bool
	md    string
	jobs  int
	list  bool
	quick bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if isChild, err := serveChild(ctx); isChild {
		exit(err)
	}
	exit(run(ctx, os.Stdout, parseFlags()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix: error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.only, "only", "", "run what matches `CLIENT/SERVER/CHECK`, patterns allowed")
	flag.BoolVar(&o.quick, "quick", false, "run two cells of each row and of each column only")
	flag.BoolVar(&o.json, "json", false, "print the outcomes as JSON")
	flag.StringVar(&o.md, "md", "", "write the table into `FILE`, between its markers")
	flag.IntVar(&o.jobs, "j", 2*runtime.NumCPU(), "cells to run at a time")
	flag.BoolVar(&o.list, "list", false, "list the cells and the checks, and end")
	flag.Parse()
	return o
}

var errFailed = errors.New("not all checks passed")

func run(ctx context.Context, out io.Writer, o options) error {
	chosen, err := choose(o.only, o.quick)
	if err != nil {
		return err
	}
	if o.list {
		for _, p := range chosen {
			fmt.Fprintln(out, p.name(), strings.Join(namesOf(p.checks), " "))
		}
		return nil
	}
	start := time.Now()
	all := runPlans(ctx, chosen, o.jobs)
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.json {
		err = writeJSON(out, all)
	} else {
		report(out, all, time.Since(start))
	}
	if err == nil && o.md != "" {
		err = updateDocument(o.md, all)
	}
	if err == nil && tallyOf(all).failed > 0 {
		err = errFailed
	}
	return err
}

// A plan is a cell that is to be run, with the checks to be made.
type plan struct {
	client, server side
	checks         []check
}

func (p *plan) name() string { return p.client.name + "/" + p.server.name }

// choose returns the plans that match a pattern.
func choose(only string, quick bool) ([]plan, error) {
	pattern := only
	if pattern == "" {
		pattern = "*"
	}
	for strings.Count(pattern, "/") < 2 {
		pattern += "/*"
	}
	var plans []plan
	for row, client := range sides {
		for column, server := range sides {
			p := plan{client: client, server: server}
			for _, k := range checks {
				ok, err := path.Match(pattern, p.name()+"/"+k.name)
				if err != nil {
					return nil, err
				}
				if ok && (!quick || isQuick(row, column)) {
					p.checks = append(p.checks, k)
				}
			}
			if p.checks != nil {
				plans = append(plans, p)
			}
		}
	}
	if plans == nil {
		return nil, fmt.Errorf("nothing matches %s", only)
	}
	return plans, nil
}

// isQuick chooses two cells of each row and of each column that is not older, so that
// all four combinations of eras are among them.
func isQuick(row, column int) bool {
	n := slices.IndexFunc(sides, func(s side) bool { return s.older })
	return row < n && (column == (row+2)%n || column == (row+3)%n)
}

func namesOf(all []check) []string {
	var names []string
	for _, k := range all {
		names = append(names, k.name)
	}
	return names
}

// runPlans runs cells, some at a time, and returns their outcomes in order.
func runPlans(ctx context.Context, plans []plan, jobs int) []outcome {
	results := make([][]outcome, len(plans))
	slots := make(chan struct{}, max(1, jobs))
	var running sync.WaitGroup
	for i, p := range plans {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results[i] = p.run(ctx)
		})
	}
	running.Wait()
	var all []outcome
	for _, r := range results {
		all = append(all, r...)
	}
	return all
}
