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
	// measure returns the figure in a revision; of returns no figures when
	// the contestant was not measured.
	measure func(*results, wire.Revision) spread
}

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

func heapOf(figure func(*heap) float64) func(*results, wire.Revision) spread {
	return func(r *results, rev wire.Revision) spread {
		for i := range r.Heaps {
			h := &r.Heaps[i]
			if h.Transport == http && h.Revision == rev && h.Size == small && h.Contestant == splice {
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
	return []target{
		{"HTTP, 100 B, 16 in flight: throughput", 0.65, true, times, ratioTo(http, small, 16, perSecond)},
		{"HTTP, 100 B, 16 in flight: server CPU", 1.6, false, times, ratioTo(http, small, 16, cpu)},
		{"stdio, 100 B, one at a time: p50", 2, false, times, ratioTo(stdio, small, 1, p50)},
		{"stdio, 100 B, 16 in flight: server CPU", 4, false, times, ratioTo(stdio, small, 16, cpu)},
		{"HTTP, 64 KiB, one at a time: p50", largeRatio, false, times, ratioTo(http, medium, 1, p50)},
		{"HTTP, 1 MiB, one at a time: p50", largeRatio, false, times, ratioTo(http, large, 1, p50)},
		{"stdio, 64 KiB, one at a time: p50", largeRatio, false, times, ratioTo(stdio, medium, 1, p50)},
		{"stdio, 1 MiB, one at a time: p50", largeRatio, false, times, ratioTo(stdio, large, 1, p50)},
		{"HTTP, 100 B: heap per call", 5000, false, kilobytes, heapOf(func(h *heap) float64 { return h.Bytes })},
		{"HTTP, 100 B: objects per call", 50, false, count, heapOf(func(h *heap) float64 { return h.Objects })},
		{"bridge, 100 B, one at a time: p50", bridgeRatio, false, times, ratioTo(bridge, small, 1, p50)},
		{"bridge, 64 KiB, one at a time: p50", bridgeRatio, false, times, ratioTo(bridge, medium, 1, p50)},
		{"bridge, 100 B, 16 in flight: throughput", 0.6, true, times, ratioTo(bridge, small, 16, perSecond)},
		{"bridge: start to first tools/list", 0.015, false, seconds, bridgeStart},
	}
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
	return list
}
