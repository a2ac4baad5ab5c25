// Package memstats lets a benchmark read the heap counters of another Go
// process. Reading allocates nothing there, so that what is counted between
// two readings belongs to the calls made between them.
package memstats

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
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
			runtime.ReadMemStats(&stats)
			binary.LittleEndian.PutUint64(reply[0:], stats.TotalAlloc)
			binary.LittleEndian.PutUint64(reply[wordBytes:], stats.Mallocs)
			binary.LittleEndian.PutUint64(reply[2*wordBytes:], uint64(stats.NumGC))
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
	var reply [3 * wordBytes]byte
	if _, err := r.conn.Write([]byte{'?'}); err != nil {
		return Counters{}, fmt.Errorf("asking for heap counters: %w", err)
	}
	if _, err := io.ReadFull(r.conn, reply[:]); err != nil {
		return Counters{}, fmt.Errorf("reading heap counters: %w", err)
	}
	return Counters{
		Bytes:   binary.LittleEndian.Uint64(reply[0:]),
		Objects: binary.LittleEndian.Uint64(reply[wordBytes:]),
		GCs:     binary.LittleEndian.Uint64(reply[2*wordBytes:]),
	}, nil
}

// Close ends the connection.
func (r *Reader) Close() error { return r.conn.Close() }
