package rounds

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// A server is what a run calls, and how it is harmed.
type server interface {
	target() client.Target
	// disturb begins a round's disturbance, and restored ends it and returns
	// since when the server can be called again.
	disturb()
	restored() (time.Time, error)
	kill()
	close() error
}

func newServer(kind Kind, child *faulttest.Child, seed uint64) (server, error) {
	if !kind.HTTP {
		child.Lives = []faulttest.Script{{faulttest.Serve()}}
		return &stdioServer{child: child}, nil
	}
	s := &httpServer{child: child}
	if err := s.start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	if !kind.Faulty {
		return s, nil
	}
	line := &faultyLine{httpServer: s}
	plan := faulttest.Seeded(seed, 1000)
	var err error
	line.proxy, err = faulttest.NewProxy(s.address, func(n int) faulttest.Faults {
		if line.calm.Load() {
			return faulttest.Faults{}
		}
		return plan(n)
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	line.calm.Store(true)
	return line, nil
}

// A stdioServer is started by its client.
type stdioServer struct {
	child *faulttest.Child
}

func (s *stdioServer) target() client.Target {
	return &client.CommandTarget{Command: stdio.Command{Path: faulttest.Executable(), Env: s.child.Env()}}
}

func (s *stdioServer) disturb() {}

func (s *stdioServer) restored() (time.Time, error) { return time.Now(), nil }

func (s *stdioServer) kill() {
	for _, pid := range faulttest.Processes(s.child.Dir) {
		kill(pid)
	}
}

func (s *stdioServer) close() error { return nil }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may be dead already
		_ = p.Release()
	}
}

// An httpServer is started again whenever it has ended.
type httpServer struct {
	child   *faulttest.Child
	address string
	current *process.Process
	back    time.Time // when it last began to listen
}

// start starts the server at an address and waits until it listens.
func (s *httpServer) start(address string) error {
	s.child.Lives = []faulttest.Script{{faulttest.ServeHTTP(address)}}
	p, err := process.Start(context.Background(), process.Command{Path: faulttest.Executable(), Env: s.child.Env()})
	if err != nil {
		return err
	}
	s.current = p
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		return fmt.Errorf("starting the server: %w; %s", err, p.StderrTail())
	}
	s.address, s.back = strings.TrimSpace(line), time.Now()
	return nil
}

func (s *httpServer) target() client.Target { return client.URL("http://" + s.address + "/mcp") }

func (s *httpServer) disturb() {}

// restored starts the server again, which is dying.
func (s *httpServer) restored() (time.Time, error) {
	<-s.current.Done()
	if _, err := s.current.Close(); err != nil {
		return time.Time{}, err
	}
	err := s.start(s.address)
	return s.back, err
}

func (s *httpServer) kill() { kill(s.current.PID()) }

func (s *httpServer) close() error {
	_, err := s.current.Close()
	return err
}

// A faultyLine is a server that lives, behind a line that has faults.
type faultyLine struct {
	*httpServer

	proxy *faulttest.Proxy
	calm  atomic.Bool
}

func (l *faultyLine) target() client.Target { return client.URL("http://" + l.proxy.Addr() + "/mcp") }

// disturb ends the connections that the client keeps, so that faults happen to new
// ones.
func (l *faultyLine) disturb() {
	l.calm.Store(false)
	l.proxy.Reset()
}

func (l *faultyLine) restored() (time.Time, error) {
	l.calm.Store(true)
	return time.Now(), nil
}

func (l *faultyLine) close() error { return errors.Join(l.proxy.Close(), l.httpServer.close()) }
