package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
)

// serve starts the demo and returns its address.
func serve(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("mcpsplice", append([]string{"serve", "--listen", "http://127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(first), "listening on ")
	if err != nil || !ok {
		t.Fatalf("got %q, %v", first, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return cmd, url
}

// TestFailureThatWasToldIsNotLoggedAgain: the first attempt to start what is missing tells
// nothing new, a later one that it is still missing.
func TestFailureThatWasToldIsNotLoggedAgain(t *testing.T) {
	var log bytes.Buffer
	missing := errors.New("command not found")
	logger := slog.New(cli.FailureLog(slog.NewTextHandler(&log, nil), missing))
	for _, step := range []struct {
		err  error
		want int // lines so far
	}{
		{errors.New("exit status 1"), 1},
		{fmt.Errorf("starting: %w", missing), 1},
		{fmt.Errorf("starting: %w", missing), 2},
	} {
		logger.Warn("the server cannot be reached", "err", cli.NotDialed(step.err))
		if got := strings.Count(log.String(), "\n"); got != step.want {
			t.Errorf("after %q there are %d lines, want %d", step.err, got, step.want)
		}
	}
}

// TestGuideIsRight makes the call that the guide tells people to make.
func TestGuideIsRight(t *testing.T) {
	_, url := serve(t)
	req, err := cli.GuideRequest(url)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), `"text":"hello"`) {
		t.Errorf("%d %s, %v", res.StatusCode, body, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\n  mcpsplice ls " + url + "\n", "curl -sS " + url + " \\\n", "-H 'Mcp-Name: echo'", `"mcpServers"`, "2024-11-05 use http://sse.example/sse\n"} {
		if !strings.Contains(cli.Guide(url, "http://sse.example/sse"), want) {
			t.Errorf("the guide lacks %s", want)
		}
	}
}

// callSlowly calls a tool that takes a minute, and returns when it has begun.
func callSlowly(t *testing.T, url string) {
	t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":600,"delay_ms":100},` +
		`"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "slow",
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "step 1 of 600") {
			return
		}
	}
	t.Fatal("the call has not begun")
}

// TestHangupEndsWell: a terminal that is closed ends the program as SIGTERM does, so
// that its server is taken leave of.
func TestHangupEndsWell(t *testing.T) {
	cmd, _ := serve(t)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	cmd, url := serve(t)
	callSlowly(t, url)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("the first signal cut the call off")
	case <-time.After(200 * time.Millisecond):
	}
	start := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != int(cli.ExitInterrupted) {
		t.Errorf("exit code %d", code)
	}
}

func TestProbeCanBeInterrupted(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	silent := exec.Command("mcpsplice", "probe", "--", "sh", "-c", `touch "$1"; exec sleep 60`, "sh", begun)
	silent.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	silent.Stderr = &stderr
	if err := silent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- silent.Wait() }()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(begun); err == nil {
			break
		}
	}
	if err := silent.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := silent.ProcessState.ExitCode(); code != int(cli.ExitInterrupted) {
		t.Errorf("exit code %d, stderr %s", code, stderr.String())
	}
}
