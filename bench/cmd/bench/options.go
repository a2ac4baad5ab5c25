package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// options are what the command line settles.
type options struct {
	reps       int
	time       time.Duration
	only       pattern
	sizes      list[int]
	inFlight   list[int]
	transports list[transport]
	revisions  list[wire.Revision]
	// heapSizes are the sizes whose heap figures are taken.
	heapSizes []int
	// mostInFlight is how many bytes are in flight at most; cells with more
	// are left out, except for typed tools, of which the targets ask for more.
	mostInFlight int
	// unchecked measures typed tools that do not check their arguments, too.
	unchecked bool
	streams   int // subscriptions of one server
	// command checks replies instead of measuring, with so many calls, and
	// connections or clients; empty to measure.
	command                     string
	calls, connections, clients int
	json, md                    string
	dir                         string
	module                      string
	script                      string // of the TypeScript client; empty if there is none
}

// A transport is what contestants are compared over; bridges are a kind of
// their own.
type transport string

const (
	stdio  = transport(contest.Stdio)
	http   = transport(contest.HTTP)
	bridge = transport("bridge")
	listen = transport("listen") // subscriptions over HTTP
	client = transport("client") // clients, over both
)

func parseTransport(s string) (transport, error) {
	switch t := transport(s); t {
	case stdio, http, bridge, listen, client:
		return t, nil
	}
	return "", fmt.Errorf("unknown transport %q, want %s, %s, %s, %s or %s", s, stdio, http, bridge, listen, client)
}

const (
	small  = 100
	kibi   = 1 << 10 // only heap figures
	medium = 64 << 10
	large  = 1 << 20
)

// mostEver is mostInFlight for typed tools, and for all without -quick.
const mostEver = 16 * large

func fullOptions() *options {
	const (
		reps    = 5
		streams = 1000

		calls       = 1_000_000
		connections = 256
		clients     = 100
		cellTime    = 300 * time.Millisecond
	)
	sizes := []int{small, medium, large}
	return &options{
		reps:       reps,
		time:       cellTime,
		only:       pattern{regexp.MustCompile("")},
		sizes:      list[int]{sizes, strconv.Atoi},
		inFlight:   list[int]{[]int{1, 16, 256}, strconv.Atoi},
		transports: list[transport]{[]transport{stdio, http, bridge, listen, client}, parseTransport},
		revisions:  list[wire.Revision]{[]wire.Revision{wire.Legacy, wire.Modern}, wire.ParseRevision},
		heapSizes:  []int{small, kibi, medium, large},

		mostInFlight: mostEver,
		unchecked:    true,
		streams:      streams,
		calls:        calls,
		connections:  connections,
		clients:      clients,
	}
}

// quicken takes the defaults of -quick where no flag was given: enough for the
// targets.
func (o *options) quicken(given map[string]bool) {
	const (
		reps     = 3
		cellTime = 150 * time.Millisecond
	)
	if !given["reps"] {
		o.reps = reps
	}
	if !given["time"] {
		o.time = cellTime
	}
	if !given["inflight"] {
		o.inFlight.values = []int{1, 16}
	}
	o.heapSizes = []int{small, kibi}
	o.mostInFlight = large
	o.unchecked = false
	if !given["transports"] {
		o.script = "" // it takes seconds to warm up
	}
}

func (o *options) validate() error {
	if o.reps < 1 || o.time <= 0 || o.streams < 1 {
		return errors.New("-reps, -time and -streams must be positive")
	}
	for _, n := range slices.Concat(o.sizes.values, o.inFlight.values) {
		if n < 1 {
			return errors.New("-sizes and -inflight must be positive")
		}
	}
	o.heapSizes = slices.DeleteFunc(slices.Clone(o.heapSizes), func(n int) bool {
		return n != kibi && !slices.Contains(o.sizes.values, n)
	})
	if o.calls < 1 || o.connections < 1 || o.clients < 1 {
		return errors.New("-calls, -connections and -clients must be positive")
	}
	return nil
}

// A list is a flag with values between commas.
type list[T any] struct {
	values []T
	parse  func(string) (T, error)
}

// Set implements [flag.Value].
func (l *list[T]) Set(s string) error {
	l.values = nil
	for item := range strings.SplitSeq(s, ",") {
		v, err := l.parse(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		l.values = append(l.values, v)
	}
	return nil
}

func (l *list[T]) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(l.values), " ", ","), "[]")
}

// A pattern is a flag with a regular expression.
type pattern struct{ *regexp.Regexp }

// Set implements [flag.Value].
func (p *pattern) Set(s string) (err error) {
	p.Regexp, err = regexp.Compile(s)
	return err
}

func (p *pattern) String() string {
	if p.Regexp == nil {
		return ""
	}
	return p.Regexp.String()
}
