package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/spf13/pflag"
)

// Limits of what waits to be written to a trace. At either, messages are
// dropped from the trace, never delayed on their way.
const (
	maxTraced      = 4096     // messages
	maxTracedBytes = 64 << 20 // of messages
)

// traceWait bounds writing what is left when the program ends.
const traceWait = 2 * time.Second

// A trace writes every message that passes an edge as one line of JSON, with
// secrets masked. A nil trace writes nothing. It is safe for concurrent use.
type trace struct {
	out     io.Writer
	close   func() error
	lines   chan traced
	bytes   atomic.Int64 // in lines
	dropped atomic.Int64
	ended   chan struct{}
	mu      sync.RWMutex // held for reading while lines is sent to
	over    bool         // guarded by mu
	err     error        // owned by write; read after ended is closed
}

type traced struct {
	at       time.Time
	edge     string
	outgoing bool
	message  []byte
}

// addTraceFlag adds --trace to a command.
func addTraceFlag(fs *pflag.FlagSet, name *string) {
	fs.StringVar(name, "trace", "", "append every message to `FILE`, with secrets masked;\n- stands for stderr")
}

// openTrace returns a trace that appends to a file, "-" standing for stderr, or
// nil for no name. The file is readable by its owner only.
func openTrace(name string, stderr io.Writer) (*trace, error) {
	t := &trace{
		out: stderr, close: func() error { return nil },
		lines: make(chan traced, maxTraced), ended: make(chan struct{}),
	}
	switch name {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := openPrivate(name)
		if err != nil {
			return nil, usagef("", "--trace: %w", err)
		}
		t.out, t.close = f, f.Close
	}
	go t.write()
	return t, nil
}

// openPrivate opens a file for appending that nobody else can read.
func openPrivate(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tap returns what shows the trace the messages of an edge, nil for none.
func (t *trace) tap(edge string) transport.Tap {
	if t == nil {
		return nil
	}
	return func(outgoing bool, message []byte) {
		t.mu.RLock()
		defer t.mu.RUnlock()
		size := int64(len(message))
		if t.over || t.bytes.Add(size) > maxTracedBytes {
			t.bytes.Add(-size)
			t.dropped.Add(1)
			return
		}
		select {
		case t.lines <- traced{time.Now(), edge, outgoing, append([]byte(nil), message...)}:
		default:
			t.bytes.Add(-size)
			t.dropped.Add(1)
		}
	}
}

// write writes lines until the trace is closed, or writing fails.
func (t *trace) write() {
	defer close(t.ended)
	var line []byte
	for m := range t.lines {
		t.bytes.Add(-int64(len(m.message)))
		if t.err != nil {
			continue
		}
		if n := t.dropped.Swap(0); n > 0 {
			line = append(strconv.AppendInt(append(line[:0], `{"dropped":`...), n, 10), "}\n"...)
			_, t.err = t.out.Write(line)
		}
		line = append(m.appendTo(line[:0]), '\n')
		if t.err == nil {
			_, t.err = t.out.Write(line)
		}
	}
}

func (m *traced) appendTo(dst []byte) []byte {
	direction := "in"
	if m.outgoing {
		direction = "out"
	}
	dst = append(dst, `{"time":"`...)
	dst = m.at.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	dst = fmt.Appendf(dst, `","edge":%q,"direction":%q,"message":`, m.edge, direction)
	return append(appendMasked(dst, m.message), '}')
}

// Close writes what is left, as far as that goes within traceWait. It returns
// the error of writing.
func (t *trace) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if !t.over {
		t.over = true
		close(t.lines)
	}
	t.mu.Unlock()
	select {
	case <-t.ended:
		return errors.Join(t.err, t.close())
	case <-time.After(traceWait):
		return errors.New("the trace is not whole: its file does not take it")
	}
}
