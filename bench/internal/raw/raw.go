// Package raw is the one client that all contestants are measured with. It
// sends prebuilt bytes with the id patched in, over keep-alive connections or
// a pipe, and looks at the status, the id and the length of every reply; the
// first reply of each kind it decodes and compares whole. As a client that others
// are compared with it may also be typed: see [Peer].
package raw

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// A Load says what to send.
type Load struct {
	Text     string // argument of each call
	InFlight int
	// The load ends when both have passed: the time and the number of calls.
	// Calls alone, with no time, is an exact number when InFlight is 1.
	Time  time.Duration
	Calls int
}

// A Sample is what was seen of a load.
type Sample struct {
	Calls     int
	Elapsed   time.Duration
	Latencies []time.Duration

	sorted bool
}

// Quantile returns the latency that a share q of the calls did not exceed. It sorts
// them, which is to cost nothing of what a client's calls cost, and hence must come
// after the client's processor time was taken.
func (s *Sample) Quantile(q float64) time.Duration {
	if !s.sorted {
		slices.Sort(s.Latencies)
		s.sorted = true
	}
	if len(s.Latencies) == 0 {
		return 0
	}
	return s.Latencies[min(int(q*float64(len(s.Latencies))), len(s.Latencies)-1)]
}

// NewSample returns the sample of calls with these latencies.
func NewSample(elapsed time.Duration, latencies ...[]time.Duration) *Sample {
	all := slices.Concat(latencies...)
	return &Sample{Calls: len(all), Elapsed: elapsed, Latencies: all}
}

// A Client measures one server. It is not safe for concurrent use.
type Client interface {
	// Open greets the server and lists its tools.
	Open() error
	// Run sends a load and returns when every call is answered. The first
	// load with a text should be a warm-up, as it learns the reply's shape.
	Run(Load) (*Sample, error)
	// Close ends the client's connections.
	Close() error
}

// Peer says what the server at the other end is.
type Peer struct {
	Revision wire.Revision
	// Echo marks a server that knows no MCP and gives every byte back.
	Echo bool
	// Copied has the client copy the text of each call into its request, and that of
	// each reply into a string of its own, without a look at either: what no client can
	// leave out whose callers have strings.
	Copied bool
	// Typed has the client quote the text for each call and decode that of each
	// reply, as a client with Go types must.
	Typed bool
	// Apart has each call in flight on a pipe made by a goroutine of its own, as a
	// client with callers must.
	Apart bool
}

// A shape is what all correct replies to one kind of call have in common.
type shape struct {
	text   string
	length int
	idAt   int
}

// learn takes the shape from a reply that it checks whole.
func learn(reply []byte, id int64, p Peer, text string, sent []byte) (*shape, error) {
	if p.Echo {
		if !bytes.Equal(reply, sent) {
			return nil, fmt.Errorf("not the bytes that were sent: %s", wire.Excerpt(reply))
		}
	} else if err := wire.CheckCall(reply, id, p.Revision, text); err != nil {
		return nil, err
	}
	idAt := bytes.Index(reply, fmt.Appendf(nil, `"id":%d`, id))
	if idAt < 0 {
		return nil, fmt.Errorf("no id in %s", wire.Excerpt(reply))
	}
	return &shape{text: text, length: len(reply), idAt: idAt + len(`"id":`)}, nil
}

// id returns the id in a reply that has the shape's length.
func (s *shape) id(reply []byte) (int64, bool) {
	if len(reply) != s.length {
		return 0, false
	}
	var id int64
	for _, c := range reply[s.idAt : s.idAt+wire.IDDigits] {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + int64(c-'0')
	}
	return id, true
}

// Each slot of a client has ids of its own. A slot is a
// connection over HTTP, a place in the window on a pipe.
const maxSlots = 1024

func slotID(slot int, turn int64) int64 { return wire.FirstID + turn*maxSlots + int64(slot) }

func slotOf(id int64) int { return int((id - wire.FirstID) % maxSlots) }

func checkInFlight(n int) error {
	if n < 1 || n > maxSlots {
		return fmt.Errorf("%d calls in flight, want 1 to %d", n, maxSlots)
	}
	return nil
}
