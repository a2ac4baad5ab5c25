package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_EXAMPLE") != "" {
		main()
		return
	}
	m.Run()
}

// start starts the example at a free port and returns its address. At the end of
// the test it is told to end, and must do so well.
func start(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "BE_THE_EXAMPLE=1", "GORACE=atexit_sleep_ms=0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
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

// post sends a message and returns the reply, of which the caller reads the body.
func post(t *testing.T, url, message string, header ...string) *http.Response {
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

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestPingOverHTTP_S278(t *testing.T) {
	url := start(t)
	for _, tt := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"pong"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}`},
	} {
		if got := body(t, post(t, url, tt.send)); got != tt.want {
			t.Errorf("%s is answered with %s, want %s", tt.send, got, tt.want)
		}
	}
}

func TestHeartbeatsAreBroadcast_S280(t *testing.T) {
	url := start(t, "-every", "20ms")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	stream := bufio.NewReader(res.Body)
	var before, ts int64
	for beats, event := 0, ""; beats < 3; {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "event" {
			event = value
		}
		if name != "data" || event != "heartbeat" {
			continue
		}
		if _, err := fmt.Sscanf(value, `{"ts":%d}`, &ts); err != nil || ts < before {
			t.Errorf("after %d comes %q, %v", before, value, err)
		}
		before = ts
		beats++
	}
}
