// Package exampletest runs the examples from their tests: the test binary of an
// example is the example as well.
package exampletest

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// variable has a test binary be the example that it tests.
const variable = "BE_THE_EXAMPLE"

// Running reports whether this process is the example, not its test.
func Running() bool { return os.Getenv(variable) != "" }

// Main is called by TestMain with the main of the example.
func Main(m *testing.M, main func()) {
	if Running() {
		main()
		return
	}
	m.Run()
}

// limit is how long an example may run.
const limit = 20 * time.Second

// Command returns a command that runs the example.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Start starts the example, which is killed when it runs for too long or the test
// ends, and returns its standard streams.
func Start(t *testing.T, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = Command(args...)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill()
	})
	return cmd, in, bufio.NewReader(pipe)
}

// Listen starts an example that takes the flag -addr, at a free port, and returns
// its address. At the end of the test it is told to end, and must do so well.
func Listen(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := Command(append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		defer late.Stop()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(stderr)
		if err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("at SIGTERM the example ends with %v\n%s", err, rest)
		}
	})
	first, err := bufio.NewReader(stderr).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(first), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the example says %q, %v", first, err)
	}
	return url
}

// Post sends a message with headers, names and values in turn, and returns the
// reply, of which the caller reads the body.
func Post(t *testing.T, url, message string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// Body returns the whole body of a reply.
func Body(t *testing.T, res *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
