package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// theServer is the argument of a test binary that is to be the bridge's server.
const theServer = "be-the-server"

// TestMain lets the test binary be the example as well, and the server behind it.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("BE_THE_EXAMPLE") != "":
		main()
	case os.Args[len(os.Args)-1] == theServer:
		s := server.New(mcp.Implementation{Name: "behind", Version: "1"}, nil)
		server.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, _ *server.Call, in struct{ Text string }) (string, error) {
			return in.Text, nil
		})
		if err := stdio.Serve(context.Background(), s, nil); err != nil {
			os.Exit(1)
		}
	default:
		m.Run()
	}
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

func TestBridgeCarriesCallsOfBothEras(t *testing.T) {
	url := start(t, os.Args[0], theServer)
	const call = `"method":"tools/call","params":{"name":"echo","arguments":{"Text":"hi"}`
	modern := body(t, post(t, url, `{"jsonrpc":"2.0","id":1,`+call+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"))
	if !strings.Contains(modern, `"text":"hi"`) {
		t.Errorf("a modern client gets %s", modern)
	}
	res := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	if got := body(t, res); !strings.Contains(got, `"serverInfo":{"name":"behind"`) {
		t.Errorf("initialize is answered with %s", got)
	}
	post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	legacy := body(t, post(t, url, `{"jsonrpc":"2.0","id":2,`+call+`}}`, session...))
	if !strings.Contains(legacy, `"text":"hi"`) {
		t.Errorf("a legacy client gets %s", legacy)
	}
}
