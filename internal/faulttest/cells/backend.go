package cells

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// patience bounds what only a hang would miss.
const patience = 20 * time.Second

// anyAddress is that of a server that has not been started yet.
const anyAddress = "127.0.0.1:0"

// A Backend is a server of one kind: processes that a bridge starts, or one over HTTP
// that is started again at the same address after it was killed. It must be closed.
type Backend struct {
	plan    plan
	current *process.Process // over HTTP
	proxy   string           // its host and port, if it is before one over HTTP
}

// NewBackend returns a server of a kind whose ledgers are in the directory dir. Life
// is how long its calls wait for the answer of a modern client, 0 for the default.
func NewBackend(side Side, dir string, life time.Duration) (*Backend, error) {
	b := &Backend{plan: plan{Dir: dir, Side: side, Address: anyAddress, Life: int64(life)}}
	if side.Wire == Stdio {
		return b, nil
	}
	return b, b.start()
}

// Side returns its kind.
func (b *Backend) Side() Side { return b.plan.Side }

// start starts a server over HTTP and waits until it listens.
func (b *Backend) start() error {
	p, err := process.Start(context.Background(), process.Command{Path: faulttest.Executable(), Env: b.plan.env()})
	if err != nil {
		return err
	}
	b.current = p
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		return fmt.Errorf("starting the server: %w; %s", err, p.StderrTail())
	}
	if b.plan.Address == anyAddress { // later starts have the same, which a pool reads
		b.plan.Address = hostOf(line)
	}
	return nil
}

// url returns the address of a server over HTTP.
func (b *Backend) url() string {
	host := cmp.Or(b.proxy, b.plan.Address)
	if b.plan.Side.Wire == SSE {
		return "http://" + host + "/sse"
	}
	return "http://" + host + "/mcp"
}

// Host returns where it listens, if that is over HTTP.
func (b *Backend) Host() string { return b.plan.Address }

// Through has it reached at another host, that of a proxy before it.
func (b *Backend) Through(host string) { b.proxy = host }

// Dial connects to it, as a pool does.
func (b *Backend) Dial(ctx context.Context, meta *mcp.Metadata) (transport.Edge, error) {
	o := transport.DialOptions{Prefer: meta.Revision.Era(), Client: meta.Client, Capabilities: meta.Capabilities}
	if b.plan.Side.Wire != Stdio {
		return streamable.DialAny(ctx, b.url(), &streamable.DialOptions{DialOptions: o})
	}
	conn, err := stdio.Dial(ctx, stdio.Command{Path: faulttest.Executable(), Env: b.plan.env()}, &stdio.DialOptions{DialOptions: o})
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// Processes returns the process ids of the server.
func (b *Backend) Processes() []int { return faulttest.Processes(b.plan.Dir) }

// Kill kills it as kill -9 does.
func (b *Backend) Kill() {
	for _, pid := range b.Processes() {
		kill(pid)
	}
}

// Restore starts a server over HTTP again if it has died, or is dying.
func (b *Backend) Restore() error {
	if b.current == nil {
		return nil
	}
	<-b.current.Done()
	if err := b.Close(); err != nil {
		return err
	}
	return b.start()
}

// Alive reports whether there is a process, or a bridge will start one.
func (b *Backend) Alive() bool {
	if b.current == nil {
		return true
	}
	select {
	case <-b.current.Done():
		return false
	default:
		return true
	}
}

// Executed returns how often each call was executed, by the ids of their orders.
func (b *Backend) Executed() (map[string]int, error) { return executedIn(b.plan.Dir).Executed() }

// Abandoned returns the calls whose cancellation the server has seen.
func (b *Backend) Abandoned() (map[string]int, error) { return abandonedIn(b.plan.Dir).Executed() }

// Close ends a server over HTTP. Those over stdio end with their bridge.
func (b *Backend) Close() error {
	if b.current == nil {
		return nil
	}
	_, err := b.current.Close()
	return err
}
