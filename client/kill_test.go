package client_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// work are the arguments of a call: its own id, and when its server dies.
type work struct {
	ID  string `json:"id"`
	Die string `json:"die,omitempty"`
}

// deaths are the moments at which a server dies.
var deaths = []string{"", "", "", "before", "after", "half", "answered"}

// journalVar names the file into which a child writes what it executes.
const journalVar = "CLIENT_TEST_JOURNAL"

// pidMark begins a line in the journal that names a child.
const pidMark = "pid"

// beTheServer is a child that dies as it is told.
func beTheServer(journal string) {
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(file, pidMark, os.Getpid()); err != nil {
		panic(err)
	}
	die := func() {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	s := newWorker(func(in work) {
		if in.Die == "before" {
			die()
		}
		if _, err := fmt.Fprintln(file, in.ID); err != nil {
			panic(err)
		}
		switch in.Die {
		case "after":
			die()
		case "half":
			_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":`)
			die()
		case "answered":
			time.AfterFunc(time.Duration(rand.IntN(3))*time.Millisecond, die)
		}
	})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		os.Exit(1)
	}
}

// newWorker returns a server with a tool that does.
func newWorker(do func(work)) *server.Server {
	s := server.New(mcp.Implementation{Name: "worker", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "work"}, func(_ context.Context, _ *server.Call, in work) (string, error) {
		do(in)
		return in.ID, nil
	})
	return s
}

// patient heals fast, so that a test need not wait.
var patient = client.Healing{MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond, Crashes: 1 << 20}

// A tally is what became of calls.
type tally struct {
	mu    sync.Mutex
	ends  map[string]error // by id, guarded by mu
	kinds map[mcp.Outcome]int
}

// run makes rounds of calls from several goroutines, of which some are their
// server's last.
func (y *tally) run(t *testing.T, c *client.Client, rounds int, seed uint64) {
	t.Helper()
	y.ends, y.kinds = make(map[string]error), make(map[mcp.Outcome]int)
	var workers sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		workers.Go(func() {
			for i := range rounds {
				in := work{ID: fmt.Sprintf("%d-%d", w, i), Die: deaths[random.IntN(len(deaths))]}
				began := time.Now()
				result, err := c.CallTool(t.Context(), "work", in, &client.CallOptions{Timeout: 20 * time.Second})
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the call %+v took %v: %v", in, took, err)
				}
				if err == nil && result.Content[0].(*mcp.Text).Text != in.ID {
					t.Errorf("the call %s got %v", in.ID, result.Content)
				}
				y.end(t, in.ID, err)
				if err != nil {
					recovered(t, c)
				}
			}
		})
	}
	workers.Wait()
}

// recovered returns when the server answers again.
func recovered(t *testing.T, c *client.Client) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		err := c.Ping(t.Context())
		if err == nil {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Errorf("the server did not come back: %v", err)
			return
		}
	}
}

func (y *tally) end(t *testing.T, id string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if _, twice := y.ends[id]; twice {
		t.Errorf("the call %s ended twice", id)
	}
	y.ends[id] = err
	if err != nil {
		y.kinds[mcp.OutcomeOf(err)]++
		return
	}
	y.kinds["done"]++
}

// check compares what the client says with what servers executed.
func (y *tally) check(t *testing.T, executed map[string]int) {
	t.Helper()
	for id, err := range y.ends {
		n := executed[id]
		_, sent := outcome(err)
		switch {
		case n > 1:
			t.Errorf("P2: the call %s was executed %d times", id, n)
		case err == nil && n != 1:
			t.Errorf("the call %s has a result, and was executed %d times", id, n)
		case err != nil && sent == mcp.NotSent && n != 0:
			t.Errorf("the call %s was executed, and not sent: %v", id, err)
		case err != nil && sent != mcp.NotSent && sent != mcp.MaybeExecuted:
			t.Errorf("the call %s ended with %v", id, err)
		}
	}
	if y.kinds["done"] == 0 || y.kinds[mcp.MaybeExecuted] == 0 {
		t.Errorf("the ends were %v", y.kinds)
	}
	t.Logf("%v", y.kinds)
}

// TestChildrenThatAreKilled_R1_P1_P2_P7: calls end once and are executed once, and
// the server is there again.
func TestChildrenThatAreKilled_R1_P1_P2_P7(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		journal := filepath.Join(t.TempDir(), "journal")
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		target := client.Command(exe)
		target.Command.Env = map[string]string{journalVar: journal, "GOCOVERDIR": os.TempDir()}
		c := connect(t, target, &client.Options{Era: era, Healing: patient})
		var y tally
		y.run(t, c, 15, 1)
		recovered(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		executed := make(map[string]int)
		file, err := os.Open(journal)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		children := 0
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if pid, ok := strings.CutPrefix(lines.Text(), pidMark+" "); ok {
				children++
				expectGone(t, pid)
				continue
			}
			executed[lines.Text()]++
		}
		y.check(t, executed)
		if children < 5 {
			t.Errorf("there were %d children only", children)
		}
	})
}

// expectGone checks that a process is not left.
func expectGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(n); err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Errorf("P7: the child %d is left", n)
	}
}

// A mortal is an HTTP server that is killed and comes back at the same address,
// with no memory of sessions.
type mortal struct {
	addr string

	mu       sync.Mutex
	executed map[string]int // guarded by mu, like what follows
	server   *http.Server
	handler  *streamable.Handler
	deaths   int
	back     chan struct{} // closed when it is there again; nil while it is
	immortal bool
}

func newMortal(t *testing.T) *mortal {
	m := &mortal{addr: "127.0.0.1:0", executed: make(map[string]int)}
	m.start()
	t.Cleanup(func() {
		m.spare()
		_ = m.server.Close()
		m.handler.Close()
	})
	return m
}

// spare has it live on.
func (m *mortal) spare() {
	m.mu.Lock()
	m.immortal = true
	back := m.back
	m.mu.Unlock()
	if back != nil {
		<-back
	}
}

func (m *mortal) start() {
	m.mu.Lock()
	addr := m.addr
	m.mu.Unlock()
	l, err := net.Listen("tcp", addr)
	for n := 0; err != nil; n++ {
		if n == 1000 {
			panic(err)
		}
		<-time.After(5 * time.Millisecond) // somebody else has the port
		l, err = net.Listen("tcp", addr)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addr = l.Addr().String()
	m.handler = streamable.NewHandler(newWorker(m.do), nil)
	m.server = &http.Server{Handler: m.handler, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(l) }(m.server)
}

// do executes a call, and dies as it says.
func (m *mortal) do(in work) {
	if in.Die == "before" && m.die() {
		return
	}
	if in.Die == "half" {
		m.die()
	}
	m.mu.Lock()
	m.executed[in.ID]++
	m.mu.Unlock()
	switch in.Die {
	case "after":
		m.die()
	case "answered":
		go m.die()
	}
}

// die cuts all connections, and comes back a moment later. It reports false if it
// is about to come back anyway.
func (m *mortal) die() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.immortal || m.back != nil {
		return false
	}
	m.back = make(chan struct{})
	m.deaths++
	_ = m.server.Close()
	go func(old *streamable.Handler) {
		m.start()
		old.Close()
		m.mu.Lock()
		defer m.mu.Unlock()
		close(m.back)
		m.back = nil
	}(m.handler)
	return true
}

// TestHTTPServersThatAreKilled_R3_P1_P2: the same over HTTP.
func TestHTTPServersThatAreKilled_R3_P1_P2(t *testing.T) {
	eras(t, func(t *testing.T, era mcp.Era) {
		m := newMortal(t)
		c := connect(t, client.URL("http://"+m.addr), &client.Options{Era: era, Healing: patient})
		s := listen(t, c, tools)
		var y tally
		y.run(t, c, 30, 2)
		m.spare()
		m.mu.Lock()
		defer m.mu.Unlock()
		y.check(t, m.executed)
		if m.deaths < 10 {
			t.Errorf("it died %d times only", m.deaths)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if e, err := s.Next(ctx); err != nil || e.Method != client.Resynced {
			t.Errorf("the subscription got %v, %v", e, err)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("after all that: %v", err)
		}
	})
}
