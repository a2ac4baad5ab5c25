package main

import (
	"slices"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A target is a figure that this project wants to reach.
type target struct {
	name    string
	limit   float64
	atLeast bool // the limit is the least, not the most
	unit    unit
	// measure returns the figure in a revision: no figures when the contestant
	// was not measured, and inapplicable where there is nothing to measure.
	measure func(*results, wire.Revision) spread
}

var inapplicable = spread{N: -1}

func (t *target) reached(s spread) bool {
	if t.atLeast {
		return s.Median >= t.limit
	}
	return s.Median <= t.limit
}

// A unit writes a figure.
type unit func(float64) string

const splice, spliceBridge = contest.Splice, contest.SpliceBridge

// ratioTo returns how a contestant's figure in a cell compares to the limit's.
func ratioTo(t transport, size, inFlight int, m metric) func(*results, wire.Revision) spread {
	name := splice
	if t == bridge {
		name = spliceBridge
	}
	return func(r *results, rev wire.Revision) spread {
		return r.ratio(cell{t, rev, size, inFlight}, name, m)
	}
}

const spliceServer = contest.SpliceServer

// toPeer returns how many times the calls a second of the better peer a typed
// tool of this project serves at 16 in flight.
func toPeer(t transport, size int) func(*results, wire.Revision) spread {
	return func(r *results, rev wire.Revision) spread {
		return r.toPeer(cell{t, rev, size, 16}, spliceServer, false)
	}
}

// toTyped returns how the p50 of a typed tool compares to the limit's.
func toTyped(t transport, size int) func(*results, wire.Revision) spread {
	return func(r *results, rev wire.Revision) spread {
		return r.toTyped(cell{t, rev, size, 1}, spliceServer, p50)
	}
}

func heapOf(contestant string, t transport, size int, figure func(*heap) float64) func(*results, wire.Revision) spread {
	return func(r *results, rev wire.Revision) spread {
		for i := range r.Heaps {
			h := &r.Heaps[i]
			if h.Transport == t && h.Revision == rev && h.Size == size && h.Contestant == contestant {
				return spreadOf([]float64{figure(h)})
			}
		}
		return spread{}
	}
}

func bridgeStart(r *results, rev wire.Revision) spread {
	s, _ := r.starts(rev, spliceBridge)
	return s
}

// targets returns all targets.
func targets() []target {
	const largeRatio, bridgeRatio = 1.5, 1.6
	list := []target{
		{"HTTP, 100 B, 16 in flight: throughput", 0.65, true, times, ratioTo(http, small, 16, perSecond)},
		{"HTTP, 100 B, 16 in flight: server CPU", 1.6, false, times, ratioTo(http, small, 16, cpu)},
		{"stdio, 100 B, one at a time: p50", 2, false, times, ratioTo(stdio, small, 1, p50)},
		{"stdio, 100 B, 16 in flight: server CPU", 4, false, times, ratioTo(stdio, small, 16, cpu)},
		{"HTTP, 64 KiB, one at a time: p50", largeRatio, false, times, ratioTo(http, medium, 1, p50)},
		{"HTTP, 1 MiB, one at a time: p50", largeRatio, false, times, ratioTo(http, large, 1, p50)},
		{"stdio, 64 KiB, one at a time: p50", largeRatio, false, times, ratioTo(stdio, medium, 1, p50)},
		{"stdio, 1 MiB, one at a time: p50", largeRatio, false, times, ratioTo(stdio, large, 1, p50)},
		{"HTTP, 100 B: heap per call", 5000, false, kilobytes, heapOf(splice, http, small, func(h *heap) float64 { return h.Bytes })},
		{"HTTP, 100 B: objects per call", 50, false, count, heapOf(splice, http, small, func(h *heap) float64 { return h.Objects })},
		{"bridge, 100 B, one at a time: p50", bridgeRatio, false, times, ratioTo(bridge, small, 1, p50)},
		{"bridge, 64 KiB, one at a time: p50", bridgeRatio, false, times, ratioTo(bridge, medium, 1, p50)},
		{"bridge, 100 B, 16 in flight: throughput", 0.6, true, times, ratioTo(bridge, small, 16, perSecond)},
		{"bridge: start to first tools/list", 0.015, false, seconds, bridgeStart},
	}
	return slices.Concat(list, typedTargets(), listenTargets(), clientTargets())
}

// typedTargets returns the targets of tools that are functions of Go types, with
// their arguments checked.
func typedTargets() []target {
	const (
		smallRatio, largeRatio = 1.3, 5
		typedRatio             = 1.6
		kibiBytes              = 16 << 10
	)
	var list []target
	for _, t := range []transport{http, stdio} {
		for _, s := range []int{small, medium, large} {
			ratio := float64(largeRatio)
			if s == small {
				ratio = smallRatio
			}
			name := "typed, " + shortTitle(t) + ", " + size(s)
			list = append(list,
				target{name + ", 16 in flight: throughput to the better peer", ratio, true, times, toPeer(t, s)},
				target{name + ", one at a time: p50 to `floor-typed`", typedRatio, false, times, toTyped(t, s)})
		}
		list = append(list, target{"typed, " + shortTitle(t) + ", 1 KiB: heap per call", kibiBytes, false, kilobytes,
			heapOf(spliceServer, t, kibi, func(h *heap) float64 { return h.Bytes })})
	}
	return list
}

func shortTitle(t transport) string {
	switch t {
	case http, clientHTTP:
		return "HTTP"
	case clientStdio:
		return "stdio"
	}
	return string(t)
}

// revisions returns the revisions that were measured.
func (r *results) revisions() []wire.Revision {
	var list []wire.Revision
	add := func(v wire.Revision) {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	for _, l := range r.Loads {
		add(l.Revision)
	}
	for _, h := range r.Heaps {
		add(h.Revision)
	}
	if len(r.Listenings) > 0 {
		add(wire.Modern)
	}
	return list
}
