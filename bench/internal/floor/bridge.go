package floor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/mcpsplice/mcpsplice/bench/internal/lines"
)

// A Bridge serves one stdio server over HTTP, its ids remapped so that the
// clients' cannot meet. It is safe for concurrent use.
type Bridge struct {
	// Set at construction.
	cmd    *exec.Cmd
	stdin  io.Writer
	stdout io.Reader

	mu sync.Mutex
	// Guarded by mu.
	calls   map[int64]*call
	lastID  int64
	waiting []byte // to be written to the child
	spare   []byte // the buffer written last
	writing bool   // someone is writing, and goes on until nothing waits
}

// A call is one request at the child.
type call struct {
	id    []byte // the client's
	reply []byte // with the client's id
	done  chan struct{}
}

var callPool = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// StartBridge starts the child.
func StartBridge(command []string) (*Bridge, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the child: %w", err)
	}
	return &Bridge{cmd: cmd, stdin: stdin, stdout: stdout, calls: make(map[int64]*call)}, nil
}

// Run hands the child's replies to their callers until the child ends.
func (b *Bridge) Run() error {
	for r := lines.NewReader(b.stdout); ; {
		line, err := r.Next()
		if err != nil {
			return errors.Join(fmt.Errorf("reading from the child: %w", err), b.cmd.Wait())
		}
		b.deliver(line)
	}
}

func (b *Bridge) deliver(line []byte) {
	from, to, ok := findID(line)
	if !ok {
		return
	}
	id, err := strconv.ParseInt(string(line[from:to]), 10, 64)
	if err != nil {
		return
	}
	b.mu.Lock()
	c := b.calls[id]
	delete(b.calls, id)
	b.mu.Unlock()
	if c == nil {
		return
	}
	c.reply = append(c.reply[:0], line[:from]...)
	c.reply = append(c.reply, c.id...)
	c.reply = append(c.reply, line[to:]...)
	c.done <- struct{}{}
}

// ServeHTTP implements [http.Handler].
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	buf := pool.Get().(*buffers)
	defer pool.Put(buf)
	if err := buf.readBody(r); err != nil || bytes.IndexByte(buf.in, '\n') >= 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	from, to, ok := findID(buf.in)
	if !ok {
		if err := b.send(nil, buf.in); err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}

	c := callPool.Get().(*call)
	c.id = append(c.id[:0], buf.in[from:to]...)
	if err := b.send(c, buf.in[:from], buf.in[to:]); err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	<-c.done
	writeJSON(w, c.reply)
	callPool.Put(c)
}

// send writes a message to the child: the parts with the id of the call
// between them. Who finds another one writing leaves its message with it.
func (b *Bridge) send(c *call, parts ...[]byte) error {
	b.mu.Lock()
	b.waiting = append(b.waiting, parts[0]...)
	if c != nil {
		b.lastID++
		b.calls[b.lastID] = c
		b.waiting = strconv.AppendInt(b.waiting, b.lastID, 10)
		b.waiting = append(b.waiting, parts[1]...)
	}
	b.waiting = append(b.waiting, '\n')
	if b.writing {
		b.mu.Unlock()
		return nil
	}
	b.writing = true
	var err error
	for len(b.waiting) > 0 && err == nil {
		out := b.waiting
		b.waiting = b.spare[:0]
		b.mu.Unlock()
		_, err = b.stdin.Write(out)
		b.mu.Lock()
		b.spare = out
	}
	b.writing = false
	b.mu.Unlock()
	return err
}
