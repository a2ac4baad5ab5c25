package main

import (
	"bufio"
	"io"
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

// start starts the example, which is killed if it takes too long.
func start(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BE_THE_EXAMPLE=1", "GORACE=atexit_sleep_ms=0")
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
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill()
	})
	return cmd, in, bufio.NewReader(pipe)
}

func TestPingIsAnswered_S278(t *testing.T) {
	cmd, in, out := start(t)
	for _, tt := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`},
		{`{"jsonrpc":"2.0","id":"two","method":"pong"}`, `{"jsonrpc":"2.0","id":"two","error":{"code":-32601,"message":"Method not found"}}`},
		// The notification has no answer, so that the batch has one.
		{`[{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":3,"result":{"pong":true}}]`},
		{`no JSON`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
	} {
		if _, err := io.WriteString(in, tt.send+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s is answered with %s, want %s", tt.send, got, tt.want)
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of its input the example ends with %v", err)
	}
}

func TestSIGTERMEndsWell_S279(t *testing.T) {
	cmd, in, out := start(t)
	const pings = 100
	if _, err := io.WriteString(in, strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", pings)); err != nil {
		t.Fatal(err)
	}
	if _, err := out.ReadString('\n'); err != nil { // it serves by now
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	if len(rest) > 0 && !strings.HasSuffix(string(rest), "{\"pong\":true}}\n") {
		t.Errorf("the last answer is cut: %q", rest[max(0, len(rest)-60):])
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at SIGTERM, its input still open, the example ends with %v", err)
	}
}
