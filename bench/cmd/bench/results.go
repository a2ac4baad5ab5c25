package main

import (
	"slices"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// results are all figures of a run.
type results struct {
	Machine  machine `json:"machine"`
	Reps     int     `json:"reps"`
	CellTime string  `json:"cellTime"`
	Took     string  `json:"took"`
	Loads    []load  `json:"loads"`
	Heaps    []heap  `json:"heaps"`
	Starts   []start `json:"starts"`
	// Listenings are of contestants with subscriptions.
	Listenings []listening `json:"listenings,omitempty"`
	// Failures are contestants that could not be measured somewhere.
	Failures []string `json:"failures,omitempty"`
}

// A cell is one situation in which contestants are compared.
type cell struct {
	Transport transport     `json:"transport"`
	Revision  wire.Revision `json:"revision"`
	Size      int           `json:"size"`
	InFlight  int           `json:"inFlight"`
}

// limit is the contestant that the others are compared with.
func (t transport) limit() string {
	switch t {
	case bridge:
		return contest.FloorBridge
	case clientHTTP, clientStdio:
		return contest.RawClient
	}
	return contest.Floor
}

// A load is the figures of one contestant in one cell and repetition.
type load struct {
	cell
	Rep        int     `json:"rep"`
	Contestant string  `json:"contestant"`
	Calls      int     `json:"calls"`
	PerSecond  float64 `json:"perSecond"`
	P50        float64 `json:"p50us"`
	P99        float64 `json:"p99us"`
	CPU        float64 `json:"cpuSecondsPer10k"` // 0: not known
	Peak       float64 `json:"peakBytes"`        // 0: not known
}

// A heap is what one call allocates.
type heap struct {
	Transport  transport     `json:"transport"`
	Revision   wire.Revision `json:"revision"`
	Size       int           `json:"size"`
	Contestant string        `json:"contestant"`
	Bytes      float64       `json:"bytesPerCall"`
	Objects    float64       `json:"objectsPerCall"`
	GCs        float64       `json:"gcsPer1k"`
}

// A start is one start of a bridge, to its first tools/list.
type start struct {
	Rep        int           `json:"rep"`
	Revision   wire.Revision `json:"revision"`
	Contestant string        `json:"contestant"`
	Seconds    float64       `json:"seconds"`
	Resident   float64       `json:"residentBytes"` // then; 0: not known
}

// A spread is a median with what lies around it.
type spread struct {
	Median, Min, Max float64
	N                int // of figures; 0: not measured
}

func spreadOf(figures []float64) spread {
	if len(figures) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(figures))
	n := len(s)
	return spread{Median: (s[(n-1)/2] + s[n/2]) / 2, Min: s[0], Max: s[n-1], N: n}
}

// A metric is one figure of a load.
type metric func(*load) float64

func perSecond(l *load) float64 { return l.PerSecond }
func p50(l *load) float64       { return l.P50 }
func p99(l *load) float64       { return l.P99 }
func cpu(l *load) float64       { return l.CPU }
func peak(l *load) float64      { return l.Peak }

// figures returns a contestant's figures in a cell by repetition.
func (r *results) figures(c cell, contestant string, m metric) map[int]float64 {
	byRep := make(map[int]float64)
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.cell == c && l.Contestant == contestant && m(l) > 0 {
			byRep[l.Rep] = m(l)
		}
	}
	return byRep
}

// spread returns a contestant's figures in a cell over the repetitions.
func (r *results) spread(c cell, contestant string, m metric) spread {
	var list []float64
	for _, v := range r.figures(c, contestant, m) {
		list = append(list, v)
	}
	return spreadOf(list)
}

// ratio returns a contestant's figures divided by the limit's, each by that of
// its own repetition.
func (r *results) ratio(c cell, contestant string, m metric) spread {
	return r.ratioTo(c, contestant, m, r.figures(c, c.Transport.limit(), m))
}

// toTyped is ratio to the limit of typed tools.
func (r *results) toTyped(c cell, contestant string, m metric) spread {
	return r.ratioTo(c, contestant, m, r.figures(c, contest.FloorTyped, m))
}

// toRawTyped is ratio to the least that is a client with a text to send and to give
// its caller.
func (r *results) toRawTyped(c cell, contestant string, m metric) spread {
	return r.ratioTo(c, contestant, m, r.figures(c, contest.RawTyped, m))
}

// toNetHTTP is ratio to the client that is net/http and nothing else; no figures over
// anything but HTTP.
func (r *results) toNetHTTP(c cell, contestant string, m metric) spread {
	return r.ratioTo(c, contestant, m, r.figures(c, contest.NetHTTP, m))
}

// toPeer is ratio to the typed tool of another project that had the most calls a
// second in that repetition, among those that check their arguments or among the
// others.
func (r *results) toPeer(c cell, contestant string, unchecked bool) spread {
	best := make(map[int]float64)
	for _, k := range contest.All() {
		if !k.Typed || k.Ours() || k.Unchecked != unchecked || transportOf(&k) != c.Transport {
			continue
		}
		for rep, v := range r.figures(c, k.Name, perSecond) {
			best[rep] = max(best[rep], v)
		}
	}
	return r.ratioTo(c, contestant, perSecond, best)
}

// ratioTo returns a contestant's figures divided by others, by repetition.
func (r *results) ratioTo(c cell, contestant string, m metric, limit map[int]float64) spread {
	var list []float64
	for rep, v := range r.figures(c, contestant, m) {
		if l, ok := limit[rep]; ok {
			list = append(list, v/l)
		}
	}
	return spreadOf(list)
}

// starts returns a bridge's start times and resident memory.
func (r *results) starts(rev wire.Revision, contestant string) (seconds, resident spread) {
	var times, sizes []float64
	for _, s := range r.Starts {
		if s.Revision == rev && s.Contestant == contestant {
			times = append(times, s.Seconds)
			sizes = append(sizes, s.Resident)
		}
	}
	return spreadOf(times), spreadOf(sizes)
}

// cells returns the cells measured over a transport, in their order.
func (r *results) cells(t transport) []cell {
	var list []cell
	for _, l := range r.Loads {
		if l.Transport == t && !slices.Contains(list, l.cell) {
			list = append(list, l.cell)
		}
	}
	return list
}
