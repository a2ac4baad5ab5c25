// Package memstats lets a benchmark read the heap counters of another Go
// process. Reading allocates nothing there, so that what is counted between
// two readings belongs to the calls made between them. What the process holds is
// read after it has collected its garbage.
package memstats

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
)

// Env names the environment variable with the loopback address to serve the
// counters on.
const Env = "BENCH_MEMSTATS"

// Counters are heap counters of a process since its start.
type Counters struct {
	Bytes   uint64 // allocated, freed ones included
	Objects uint64
	GCs     uint64
}

// Sub returns the counters since old.
func (c Counters) Sub(old Counters) Counters {
	return Counters{c.Bytes - old.Bytes, c.Objects - old.Objects, c.GCs - old.GCs}
}

// What a reader asks for.
const (
	askCounters = '?'
	askLive     = '!'
)

const wordBytes = 8

// ServeFromEnv serves the counters of this process at the address in [Env]
// for as long as the process lives. Without the variable it does nothing.
func ServeFromEnv() error {
	addr := os.Getenv(Env)
	if addr == "" {
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("serving heap counters: %w", err)
	}
	go serve(l)
	return nil
}

func serve(l net.Listener) {
	var (
		stats runtime.MemStats
		reply [3 * wordBytes]byte
		ask   [1]byte
	)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		for {
			if _, err := io.ReadFull(c, ask[:]); err != nil {
				break
			}
			if ask[0] == askLive {
				// The second time for what the first has put aside: pools.
				runtime.GC()
				debug.FreeOSMemory()
			}
			runtime.ReadMemStats(&stats)
			words := [...]uint64{stats.TotalAlloc, stats.Mallocs, uint64(stats.NumGC)}
			if ask[0] == askLive {
				words = [...]uint64{stats.HeapAlloc, stats.StackInuse, uint64(runtime.NumGoroutine())}
			}
			for i, word := range words {
				binary.LittleEndian.PutUint64(reply[i*wordBytes:], word)
			}
			if _, err := c.Write(reply[:]); err != nil {
				break
			}
		}
		c.Close()
	}
}

// A Reader reads the counters of another process.
type Reader struct {
	conn net.Conn
}

// Dial connects to a process that serves its counters at addr.
func Dial(addr string) (*Reader, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reading heap counters: %w", err)
	}
	return &Reader{conn: c}, nil
}

// Read returns the counters as they are now.
func (r *Reader) Read() (Counters, error) {
	words, err := r.ask(askCounters)
	return Counters{Bytes: words[0], Objects: words[1], GCs: words[2]}, err
}

// Live is what a process holds after a garbage collection.
type Live struct {
	Heap, Stacks uint64 // in bytes
	Goroutines   uint64
}

// Live has the process collect its garbage and returns what it holds then.
func (r *Reader) Live() (Live, error) {
	words, err := r.ask(askLive)
	return Live{Heap: words[0], Stacks: words[1], Goroutines: words[2]}, err
}

func (r *Reader) ask(what byte) (words [3]uint64, err error) {
	var reply [len(words) * wordBytes]byte
	if _, err := r.conn.Write([]byte{what}); err != nil {
		return words, fmt.Errorf("asking for heap counters: %w", err)
	}
	if _, err := io.ReadFull(r.conn, reply[:]); err != nil {
		return words, fmt.Errorf("reading heap counters: %w", err)
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(reply[i*wordBytes:])
	}
	return words, nil
}

// Close ends the connection.
func (r *Reader) Close() error { return r.conn.Close() }
