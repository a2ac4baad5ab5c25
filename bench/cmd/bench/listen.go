package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/proc"
	"github.com/mcpsplice/mcpsplice/bench/internal/raw"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A listening is the figures of many subscriptions of one contestant in one
// repetition.
type listening struct {
	Rep        int    `json:"rep"`
	Contestant string `json:"contestant"`
	Streams    int    `json:"streams"`
	// What one stream holds: heap and stacks after a garbage collection, and
	// resident memory; 0: not known.
	Live     float64 `json:"liveBytesPerStream"`
	Resident float64 `json:"residentBytesPerStream"`
	// Rounds are how long it took, in seconds, from the call that changes
	// every resource to when every stream has been told of every one.
	Rounds []float64 `json:"roundSeconds"`
	CPU    float64   `json:"cpuSecondsPerRound"` // 0: not known
	// Lost are notifications that did not come, Doubled those that came again.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
}

const (
	listenRounds = 3
	listenWait   = 15 * time.Second      // for the notifications of a round, after which the rest is lost
	listenQuiet  = 50 * time.Millisecond // after a round, for what comes twice
	listenPoll   = 200 * time.Microsecond
)

// measureListen opens many subscriptions of a contestant and has it tell all of
// them of changes. Each round changes every resource once: no change can stand
// for another one, and none is told twice.
func (m *meter) measureListen(ctx context.Context, rep int, r wire.Revision, c *contest.Contestant) error {
	const rounds = time.Duration(listenRounds)
	ctx, cancel := context.WithTimeout(ctx, patience+rounds*listenWait)
	defer cancel()
	p, err := m.start(ctx, c, r, true)
	if err != nil {
		return err
	}
	defer p.Stop()
	client, ok := p.Client.(*raw.HTTP)
	if !ok {
		return errors.New("not over HTTP")
	}
	if err := client.Change(); err != nil { // nobody listens: code paths
		return fmt.Errorf("changing resources: %w%s", err, p.Stderr())
	}

	f := listening{Rep: rep, Contestant: c.Name, Streams: m.options.streams}
	before, err := held(ctx, p)
	if err != nil {
		return err
	}
	s, err := raw.OpenStreams(p.Addr(), f.Streams, wire.ResourceCount)
	if err != nil {
		return fmt.Errorf("%w%s", err, p.Stderr())
	}
	defer s.Close()
	after, err := held(ctx, p)
	if err != nil {
		return err
	}
	f.Live = max(0, after.live-before.live) / float64(f.Streams)
	f.Resident = max(0, after.resident-before.resident) / float64(f.Streams)

	began, cpuErr := proc.CPU(p.PID())
	for round := range listenRounds {
		took, err := tellAll(s, client, (round+1)*f.Streams*wire.ResourceCount)
		if err != nil {
			return fmt.Errorf("%w%s", err, p.Stderr())
		}
		f.Rounds = append(f.Rounds, took.Seconds())
	}
	if ended, err := proc.CPU(p.PID()); err == nil && cpuErr == nil {
		f.CPU = (ended - began).Seconds() / listenRounds
	}
	f.Lost, f.Doubled = s.Count(listenRounds)
	m.results.Listenings = append(m.results.Listenings, f)
	return nil
}

// A holding is the memory of a process, in bytes.
type holding struct{ live, resident float64 }

func held(ctx context.Context, p *contest.Process) (holding, error) {
	reader, err := p.MemStats(ctx)
	if err != nil {
		return holding{}, err
	}
	defer reader.Close()
	live, err := reader.Live()
	if err != nil {
		return holding{}, err
	}
	mem, _ := proc.MemoryOf(p.PID()) // unknown stays zero
	return holding{live: float64(live.Heap + live.Stacks), resident: float64(mem.Resident)}, nil
}

// tellAll has every resource changed once and waits until so many notifications
// have come in all, or no more come.
func tellAll(s *raw.Streams, client *raw.HTTP, want int) (time.Duration, error) {
	began := time.Now()
	changed := make(chan error, 1)
	go func() { changed <- client.Change() }()
	for s.Told() < want && time.Since(began) < listenWait {
		time.Sleep(listenPoll)
	}
	took := time.Since(began)
	time.Sleep(listenQuiet)
	return took, <-changed
}

// listenings returns a contestant's figures.
func (r *results) listenings(contestant string) []*listening {
	var list []*listening
	for i := range r.Listenings {
		if l := &r.Listenings[i]; l.Contestant == contestant {
			list = append(list, l)
		}
	}
	return list
}

// listenSpread returns a figure of a contestant's subscriptions.
func (r *results) listenSpread(contestant string, figure func(*listening) float64) spread {
	var list []float64
	for _, l := range r.listenings(contestant) {
		if v := figure(l); v > 0 {
			list = append(list, v)
		}
	}
	return spreadOf(list)
}

// listenRatio returns the figure divided by the limit's, by repetition.
func (r *results) listenRatio(contestant string, figure func(*listening) float64) spread {
	var list []float64
	for _, l := range r.listenings(contestant) {
		for _, limit := range r.listenings(contest.FloorListen) {
			if limit.Rep == l.Rep && figure(limit) > 0 && figure(l) > 0 {
				list = append(list, figure(l)/figure(limit))
			}
		}
	}
	return spreadOf(list)
}

func liveMemory(l *listening) float64     { return l.Live }
func residentMemory(l *listening) float64 { return l.Resident }
func listenCPU(l *listening) float64      { return l.CPU }
func delivery(l *listening) float64       { return spreadOf(l.Rounds).Median }

func renderListen(b *bytes.Buffer, r *results) {
	if len(r.Listenings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Subscriptions over HTTP, 2026-07-28\n\n"+
		"%s streams with %d resources each. Memory is what one stream adds: heap and stacks\n"+
		"after a garbage collection, and resident memory then. Each resource changes once a\n"+
		"round; the time is from the call that changes them to the last notification of all.\n\n",
		count(float64(r.Listenings[0].Streams)), wire.ResourceCount)
	row(b, "contestant", "memory per stream", "× floor", "resident", "all told after", "× floor", "CPU", "lost", "doubled")
	rule(b, "lrrrrrrrr")
	for _, k := range contest.All() {
		list := r.listenings(k.Name)
		if len(list) == 0 {
			continue
		}
		lost, doubled := 0, 0
		for _, l := range list {
			lost, doubled = lost+l.Lost, doubled+l.Doubled
		}
		row(b, k.Name,
			median(r.listenSpread(k.Name, liveMemory), kibibytes), between(r.listenRatio(k.Name, liveMemory), plain),
			median(r.listenSpread(k.Name, residentMemory), kibibytes),
			between(r.listenSpread(k.Name, delivery), seconds), between(r.listenRatio(k.Name, delivery), plain),
			median(r.listenSpread(k.Name, listenCPU), cpuSeconds), strconv.Itoa(lost), strconv.Itoa(doubled))
	}
}

func kibibytes(v float64) string { return fmt.Sprintf("%.1f KiB", v/(1<<10)) }

// listenTargets returns the targets of subscriptions.
func listenTargets() []target {
	const (
		memoryRatio = 1.25
		deliverySec = 0.3
	)
	// Legacy clients have no such streams.
	only := func(measure func(r *results) spread) func(*results, wire.Revision) spread {
		return func(r *results, rev wire.Revision) spread {
			if rev != wire.Modern {
				return inapplicable
			}
			return measure(r)
		}
	}
	return []target{
		{"subscriptions: memory per stream to `floor-listen`", memoryRatio, false, times,
			only(func(r *results) spread { return r.listenRatio(contest.SpliceListen, liveMemory) })},
		{"subscriptions: 100 changes to each stream", deliverySec, false, seconds,
			only(func(r *results) spread { return r.listenSpread(contest.SpliceListen, delivery) })},
		{"subscriptions: notifications lost or doubled", 0, false, count,
			only(func(r *results) spread {
				var list []float64
				for _, l := range r.listenings(contest.SpliceListen) {
					list = append(list, float64(l.Lost+l.Doubled))
				}
				return spreadOf(list)
			})},
	}
}
