package main

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/exampletest"
)

// TestMain lets the test binary be the example as well.
func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestPingIsAnswered_S278(t *testing.T) {
	cmd, in, out := exampletest.Start(t)
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
	cmd, in, out := exampletest.Start(t)
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
	// What was read and not begun by then may be refused, as not sent.
	for line := range strings.Lines(string(rest)) {
		pong := line == `{"jsonrpc":"2.0","id":1,"result":{"pong":true}}`+"\n"
		refused := strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,"error":{`) && strings.HasSuffix(line, `"outcome":"not sent"}}}}`+"\n")
		if !pong && !refused {
			t.Errorf("an answer is cut: %q", line)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at SIGTERM, its input still open, the example ends with %v", err)
	}
}
