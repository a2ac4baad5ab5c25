//go:build unix

package stdio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/transport/stdio"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// served is a program as others write them: it serves its standard streams until
// they or SIGTERM end it, and has something else to do meanwhile.
var served = newMode("served", func(*child) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	go func() {
		for range ticker.C {
			ticker.Reset(time.Millisecond)
		}
	}()
	if err := stdio.Serve(ctx, tools, nil); err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		return 1
	}
	return 0
})

// A program is a served one with us as its client.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      *os.File // its stdin
	out     *os.File // its stdout
	lines   *jsonrpc.LineReader
	stderr  bytes.Buffer
	waiting <-chan error
}

// run starts a program on pipes, or on what set gives it instead.
func run(t *testing.T, set func(cmd *exec.Cmd)) *program {
	t.Helper()
	nothingLeft(t)
	ends := newPipes(t)
	us := served.command()
	p := &program{t: t, cmd: exec.Command(us.Path), in: ends.toIn, out: ends.fromOut}
	p.lines = jsonrpc.NewLineReader(p.out, 0)
	p.cmd.Env = append(os.Environ(), modeVar+"="+string(served))
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = ends.in, ends.out, &p.stderr
	if set != nil {
		set(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = ends.in.Close(), ends.out.Close()
	ended := make(chan error, 1)
	p.waiting = ended
	go func() { ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// say writes lines to the program.
func (p *program) say(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads lines, in this order.
func (p *program) expect(lines ...string) {
	p.t.Helper()
	if err := p.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	for _, want := range lines {
		if got, err := p.lines.ReadLine(); err != nil || string(got) != want {
			p.t.Fatalf("got %s, %v, want %s", got, err, want)
		}
	}
}

// exits waits for the program's quiet end.
func (p *program) exits() {
	p.t.Helper()
	if err := receive(p.t, "the program's end", p.waiting); err != nil {
		p.t.Errorf("the program ended with %v", err)
	}
	if p.stderr.Len() > 0 {
		p.t.Errorf("stderr: %s", p.stderr.String())
	}
}

func TestS244OnlyMessagesOnStdout(t *testing.T) {
	p := run(t, nil)
	p.say("no message", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"nope"}`, `{"jsonrpc":"2.0","method":"nope"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`, `[]`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"panic"}}`, slowCall)
	_ = p.in.Close()
	all, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	p.exits()
	n := 0
	for line := range strings.Lines(string(all)) {
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(line), &m); err != nil || !strings.HasSuffix(line, "\n") {
			t.Errorf("S2.44: %q on stdout: %v", line, err)
		}
		n++
	}
	if n != 8 {
		t.Errorf("there are %d messages on stdout: %s", n, all)
	}
}

func TestEndOfInputDrains(t *testing.T) {
	t.Run("S2.42 D2.6 a slow call", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize, slowCall)
		_ = p.in.Close()
		p.expect(toInitialize, slowStarted, toSlowCall)
		p.exits()
	})
	t.Run("S2.42 D2.6 initialize and tools/list in one write", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize, listTools)
		_ = p.in.Close()
		p.expect(toInitialize, toListTools)
		p.exits()
	})
	t.Run("B047a nothing in flight", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize)
		p.expect(toInitialize)
		began := time.Now()
		_ = p.in.Close()
		p.exits()
		if took := time.Since(began); took > promptly {
			t.Errorf("the program ended after %v", took)
		}
	})
	t.Run("B047a nothing at all", func(t *testing.T) {
		p := run(t, func(cmd *exec.Cmd) { cmd.Stdin = nil })
		p.exits()
	})
}

func TestStreamsOfAllKinds(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 500 {
		text.WriteString(ping(fmt.Sprint(i)) + "\n")
		want = append(want, pong(fmt.Sprint(i)))
	}
	t.Run("S2.42 stdout is a regular file", func(t *testing.T) {
		file := create(t, "out", "")
		p := run(t, func(cmd *exec.Cmd) { cmd.Stdout = file })
		p.say(strings.TrimSuffix(text.String(), "\n"))
		_ = p.in.Close()
		p.exits()
		linesOf(t, file, want)
	})
	t.Run("S2.42 both are regular files", func(t *testing.T) {
		in, out := create(t, "in", text.String()), create(t, "out", "")
		p := run(t, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out })
		p.exits()
		linesOf(t, out, want)
	})
	t.Run("both are a socket", func(t *testing.T) {
		ours, theirs := socketPair(t)
		p := run(t, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = theirs, theirs })
		_ = theirs.Close()
		if _, err := io.WriteString(ours, text.String()); err != nil {
			t.Fatal(err)
		}
		p.lines, p.out = jsonrpc.NewLineReader(ours, 0), ours
		p.expect(want...)
		_ = ours.Close()
		p.exits()
	})
}

// create returns a file with a content, to be read or written from its beginning.
func create(t *testing.T, name, content string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// linesOf checks what lines a file has, in whatever order.
func linesOf(t *testing.T, file *os.File, want []string) {
	t.Helper()
	got, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n")
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(lines))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// socketPair returns what some hosts use instead of pipes.
func socketPair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
}

func TestSignalDrains(t *testing.T) {
	p := run(t, nil)
	p.say(initialize, slowCall)
	p.expect(toInitialize, slowStarted)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.expect(toSlowCall)
	p.exits()
	if got, err := p.lines.ReadLine(); !errors.Is(err, io.EOF) {
		t.Errorf("S2.28: the output goes on with %s, %v", got, err)
	}
}

func TestB047ClientThatHasGone(t *testing.T) {
	t.Run("B047 stdout is closed while stdin is not", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize)
		p.expect(toInitialize)
		_ = p.out.Close()
		p.say(ping("1"))
		p.exits()
	})
	t.Run("B047b both are closed before the answer", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize, slowCall)
		p.expect(toInitialize, slowStarted)
		_, _ = p.in.Close(), p.out.Close()
		p.exits()
	})
	t.Run("B047b both are closed before all of a long answer was read", func(t *testing.T) {
		p := run(t, nil)
		p.say(initialize)
		p.expect(toInitialize)
		go func() { _, _ = io.WriteString(p.in, echoCall("1", `{"a":"`+strings.Repeat("x", 4<<20)+`"}`)+"\n") }()
		if _, err := io.ReadFull(p.out, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		_, _ = p.in.Close(), p.out.Close()
		p.exits()
	})
	t.Run("B047c the parent is killed", parentIsKilled)
}

// parent starts a served program as hosts do that know nothing of groups, tells
// its process id, and waits for its own end.
var parent = newMode("parent", func(c *child) int {
	us := served.command()
	cmd := exec.Command(us.Path)
	cmd.Env = append(os.Environ(), modeVar+"="+string(served))
	if _, err := cmd.StdinPipe(); err != nil {
		c.fail("%v", err)
	}
	if _, err := cmd.StdoutPipe(); err != nil {
		c.fail("%v", err)
	}
	if err := cmd.Start(); err != nil {
		c.fail("%v", err)
	}
	c.say(fmt.Sprint(cmd.Process.Pid))
	forever()
	return 0
})

func parentIsKilled(t *testing.T) {
	nothingLeft(t)
	us := parent.command()
	cmd := exec.Command(us.Path)
	cmd.Env = append(os.Environ(), modeVar+"="+string(parent))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // signal: killed
	eventually(t, "the end of the program", func() bool { return !running(pid) })
}

func TestS229SecondServeIsRefused(t *testing.T) {
	p := run(t, nil)
	p.say(initialize)
	p.expect(toInitialize)
	p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"serve"}}`)
	p.expect(`{"jsonrpc":"2.0","id":1,"result":{"serving":true}}`)
	// The first one is not disturbed.
	p.say(ping("2"))
	p.expect(pong("2"))
	_ = p.in.Close()
	p.exits()
}

// A shell that runs a program of ours must still find its streams as they were.
func TestServeLeavesTheModeOfSharedStreams(t *testing.T) {
	var shared []int
	p := run(t, func(cmd *exec.Cmd) {
		for _, f := range []any{cmd.Stdin, cmd.Stdout} {
			fd, err := unix.FcntlInt(f.(*os.File).Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			shared = append(shared, fd)
		}
	})
	p.say(ping("1"))
	p.expect(pong("1"))
	for _, fd := range shared {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("the flags are %x, %v", flags, err)
		}
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
	_ = p.in.Close()
	p.exits()
}
