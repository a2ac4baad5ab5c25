//go:build unix

package process_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestCloseLetsChildSaveItsWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	p := start(t, self("save", file))
	line(t, p)
	end, err := p.Close()
	if err != nil || end.Step != process.StepExit || !end.Status.Success() || end.GroupStep != process.StepNone {
		t.Errorf("Close = %v, %v", end, err)
	}
	if b, err := os.ReadFile(file); string(b) != "saved" {
		t.Errorf("file: %q, %v", b, err)
	}
}

func TestCloseTerminatesChildThatIgnoresEOF(t *testing.T) {
	c := self("obeys-term")
	c.Waits = ignoresEOF
	p := start(t, c)
	line(t, p)
	end, err := p.Close()
	if err != nil || end.Step != process.StepTerm || end.Status.Code != 7 {
		t.Errorf("Close = %v, %v", end, err)
	}
}

func TestCloseKillsChildThatIgnoresAll(t *testing.T) {
	c := self("stubborn")
	c.Waits = ignoresAll
	p := start(t, c)
	line(t, p)
	begin := time.Now()
	end, err := p.Close()
	if err != nil || end.Step != process.StepKill || end.Status.String() != "signal: killed" {
		t.Errorf("Close = %v, %v", end, err)
	}
	if d := time.Since(begin); d < c.Waits.Exit+c.Waits.Term || d > patience {
		t.Errorf("Close took %v", d)
	}
}

func TestCloseEndsStoppedChild(t *testing.T) {
	c := self("obeys-term")
	c.Waits = ignoresEOF
	p := start(t, c)
	line(t, p)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	end, err := p.Close()
	if err != nil || end.Step != process.StepTerm || end.Status.Code != 7 {
		t.Errorf("Close = %v, %v", end, err)
	}
}

func TestCloseAfterExitReturnsAtOnce(t *testing.T) {
	p := start(t, self("fatal"))
	await(t, "exit", p.Done())
	begin := time.Now()
	end, err := p.Close()
	if err != nil || end.Step != process.StepNone || end.Status.Code != 3 {
		t.Errorf("Close = %v, %v", end, err)
	}
	if d := time.Since(begin); d > patience/2 {
		t.Errorf("Close took %v", d)
	}
}

func TestErrHasStatusAndStderr(t *testing.T) {
	p := start(t, self("fatal"))
	await(t, "exit", p.Done())
	var exit *process.ExitError
	if !errors.As(p.Err(), &exit) {
		t.Fatalf("Err = %v", p.Err())
	}
	if exit.Status.Code != 3 || exit.Stderr != "FATAL: missing API key\n" {
		t.Errorf("ExitError = %+v", exit)
	}
	if got, want := exit.Error(), `exit status 3; stderr: "FATAL: missing API key"`; got != want {
		t.Errorf("Error() = %s, want %s", got, want)
	}
}

func TestErrIsNilWhileRunning(t *testing.T) {
	p := start(t, self("echo"))
	if err := p.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
	select {
	case <-p.Done():
		t.Error("Done is closed")
	default:
	}
}

func TestCloseIsConcurrentAndIdempotent(t *testing.T) {
	c := self("obeys-term")
	c.Waits = ignoresEOF
	p := start(t, c)
	line(t, p)
	ends := make([]process.End, 8)
	var all sync.WaitGroup
	for i := range ends {
		all.Go(func() { ends[i], _ = p.Close() })
	}
	all.Wait()
	again, err := p.Close()
	if err != nil {
		t.Error(err)
	}
	for _, end := range ends {
		if end != again || end.Step != process.StepTerm {
			t.Errorf("Close = %v, later %v", end, again)
		}
	}
}

// The real server is a grandchild that holds stdout open and ignores SIGTERM.
func TestCloseEndsGrandchild(t *testing.T) {
	c := self("wrapper", "same-group")
	c.Waits = ignoresAll
	c.Waits.Exit = 300 * time.Millisecond
	p := start(t, c)
	grandchild := pidIn(t, line(t, p))
	end, err := p.Close()
	// Usually the wrapper has left by then, and its child was killed alone.
	if err != nil || end.Step == process.StepExit && end.GroupStep != process.StepKill {
		t.Errorf("Close = %v, %v", end, err)
	}
	if running(grandchild) {
		t.Error("grandchild runs")
	}
}

func TestGroupEndsWithChildUnasked(t *testing.T) {
	c := self("wrapper", "same-group")
	c.Waits = ignoresAll
	p := start(t, c)
	grandchild := pidIn(t, line(t, p))
	if _, err := p.Stdin().Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	await(t, "exit of the child", p.Done())
	if got := p.Err().Error(); got != "exit status 5" {
		t.Errorf("Err = %v", got)
	}
	// No Close: the end of the group closes stdout.
	if _, err := io.ReadAll(p.Stdout()); err != nil {
		t.Error(err)
	}
	eventually(t, "end of the grandchild", func() bool { return !running(grandchild) })
	end, err := p.Close()
	if err != nil || end.Step != process.StepNone || end.GroupStep != process.StepKill {
		t.Errorf("Close = %v, %v", end, err)
	}
}

func TestCloseUnblocksReaderAndWriter(t *testing.T) {
	c := self("stubborn")
	c.Waits = ignoresAll
	p := start(t, c)
	line(t, p)
	var both sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(io.Discard, p.Stdout())
		// Either the group's end or our close comes first.
		if err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("read: %v", err)
		}
	})
	writing := make(chan struct{})
	both.Go(func() {
		_, err := p.Stdin().Write(make([]byte, 4096))
		close(writing)
		for err == nil {
			_, err = p.Stdin().Write(make([]byte, 1<<20))
		}
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("write: %v", err)
		}
	})
	await(t, "first write", writing)
	if _, err := p.Close(); err != nil {
		t.Error(err)
	}
	both.Wait()
}

func TestWriteToDeafChildHasDeadline(t *testing.T) {
	c := self("stubborn")
	c.Waits = ignoresAll
	p := start(t, c)
	line(t, p)
	if err := p.Stdin().SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdin().Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
}

func TestReadHasDeadline(t *testing.T) {
	p := start(t, self("echo"))
	if err := p.Stdout().SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdout().Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
}

func TestChildThatClosesStdoutIsReaped(t *testing.T) {
	p := start(t, self("closes-stdout"))
	if b, err := io.ReadAll(p.Stdout()); err != nil || len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
	}
	if p.Err() != nil {
		t.Fatalf("child has ended: %v", p.Err())
	}
	end, err := p.Close()
	if err != nil || end.Step != process.StepExit || end.Status.Code != 4 {
		t.Errorf("Close = %v, %v", end, err)
	}
}

func TestChildSeesBlockingPipesOwnSessionAndDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c := self("inspect", "a b", "", `$HOME "*`)
	c.Dir = link
	p := start(t, c)
	got, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fd0 nonblock=false\nfd1 nonblock=false\nfd2 nonblock=false\n",
		"leader=true\n", "pwd=" + link + "\n", ` "a b" "" "$HOME \"*"]`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestChildEnvironmentIsBuiltUp(t *testing.T) {
	for _, name := range []string{"SECRET_X", "BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS",
		"GIT_SSH_COMMAND", "PYTHONSTARTUP", "PWD"} {
		t.Setenv(name, "canary")
	}
	t.Setenv("LC_TIME", "C")
	t.Setenv("HOME", "/home/inherited")
	c := self("environ")
	c.Env["HOME"] = "/home/configured"
	c.Env["API_KEY"] = "k"
	p := start(t, c)
	b, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	got := "\n" + string(b)
	if strings.Contains(got, "canary") {
		t.Errorf("inherited:\n%s", got)
	}
	for _, want := range []string{"\nHOME=/home/configured\n", "\nAPI_KEY=k\n", "\nLC_TIME=C\n", "\nPATH="} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestStderrFloodIsDrainedAndBounded(t *testing.T) {
	var sink countingSink
	c := self("flood", "100")
	c.StderrTail = 1000
	c.Stderr = &sink
	p := start(t, c)
	if got := line(t, p); got != "done" {
		t.Fatalf("line %q", got)
	}
	// Its stdout was written after its stderr, and the drain may lag.
	eventually(t, "last words", func() bool {
		return strings.HasSuffix(p.StderrTail(), "\nlast words")
	})
	if end, err := p.Close(); err != nil || end.Step != process.StepExit {
		t.Errorf("Close = %v, %v", end, err)
	}
	if n := len(p.StderrTail()); n > 3*1000 { // an invalid byte takes three
		t.Errorf("tail of %d bytes", n)
	}
	if got, want := sink.bytes.Load()+p.StderrDropped(), int64(100<<20)+11; got != want {
		t.Errorf("sink got %d, %d dropped, %d together, want %d",
			sink.bytes.Load(), p.StderrDropped(), got, want)
	}
	if n := sink.largest.Load(); n > 8<<10 {
		t.Errorf("fragment of %d bytes", n)
	}
}

type countingSink struct{ bytes, largest atomic.Int64 }

func (s *countingSink) Write(b []byte) (int, error) {
	s.bytes.Add(int64(len(b)))
	s.largest.Store(max(s.largest.Load(), int64(len(b))))
	return len(b), nil
}

type blockingSink struct{ release chan struct{} }

func (s blockingSink) Write(b []byte) (int, error) {
	<-s.release
	return len(b), nil
}

func TestBlockingSinkStallsNobody(t *testing.T) {
	sink := blockingSink{make(chan struct{})}
	defer close(sink.release)
	c := self("flood", "2")
	c.Stderr = sink
	c.Waits.Kill = 300 * time.Millisecond // what the sink may take in the end
	p := start(t, c)
	line(t, p)
	begin := time.Now()
	if end, err := p.Close(); err != nil || end.Step != process.StepExit {
		t.Errorf("Close = %v, %v", end, err)
	}
	if d := time.Since(begin); d > patience {
		t.Errorf("Close took %v", d)
	}
	if p.StderrDropped() < 1<<20 {
		t.Errorf("dropped %d", p.StderrDropped())
	}
}

type failingSink struct{ calls int }

func (s *failingSink) Write([]byte) (int, error) {
	s.calls++
	return 0, errors.New("disk full")
}

func TestFailingSinkIsLeftAlone(t *testing.T) {
	sink := &failingSink{}
	c := self("flood", "1")
	c.Stderr = sink
	p := start(t, c)
	line(t, p)
	if _, err := p.Close(); err != nil {
		t.Error(err)
	}
	if sink.calls != 1 || p.StderrDropped() != 1<<20+11 {
		t.Errorf("%d calls, %d dropped", sink.calls, p.StderrDropped())
	}
}

// A wrapper whose child ignores SIGTERM and holds stdout, again and again:
// nothing may pile up. start checks processes and descriptors at the end.
func TestManyCyclesLeaveNothing(t *testing.T) {
	nothingLeft(t)
	var pids []int
	for range 12 {
		p, err := process.Start(t.Context(), process.Command{
			Path:  "sh",
			Args:  []string{"-c", shells["stubborn"]},
			Waits: ignoresAll,
		})
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p.PID(), pidIn(t, line(t, p)))
		if _, err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("%d runs", pid)
		}
	}
}

func TestManyAtOnceLeaveNothing(t *testing.T) {
	nothingLeft(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			p, err := process.Start(context.Background(), process.Command{
				Path: "sh", Args: []string{"-c", shells["polite"]}, Waits: ignoresEOF,
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
