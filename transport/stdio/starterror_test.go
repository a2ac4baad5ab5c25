//go:build unix

package stdio_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// echoing sends back what it reads.
var echoing = newMode("echoing", func(*child) int {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(lines.Text())
	}
	return 0
})

// printing writes its first argument, and ends with status 3 once it has been asked
// something. With a second argument it answers that before.
var printing = newMode("printing", func(c *child) int {
	c.write(c.args[0])
	m := c.next()
	if len(c.args) > 1 && m != nil {
		c.say(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32000,"message":"` + c.args[1] + `"}}`)
	}
	return 3
})

// chattering writes what is no message and does not end.
var chattering = newMode("chattering", func(c *child) int {
	for range 20_000 {
		c.say("y")
	}
	return c.untilEOF()
})

// startErrorOf returns the error of a server that must not start.
func startErrorOf(t *testing.T, cmd stdio.Command, era mcp.Era) *stdio.StartError {
	t.Helper()
	o := legacy()
	o.Era = era
	_, err := tryDial(t, cmd, o)
	e, ok := errors.AsType[*stdio.StartError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	return e
}

func TestEchoIsRecognised(t *testing.T) {
	for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			e := startErrorOf(t, echoing.command(), era)
			if !e.Echo || e.Output != "" || !jsonrpc.FromPeer(e) {
				t.Errorf("got %#v", e)
			}
			mention(t, e.Error(), "sends back what it is sent")
		})
	}
}

func TestErrorHoldsWhatAProgramPrinted_B004(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		output string
	}{
		{"text", []string{"hi\n"}, "hi"},
		{"text without a line end", []string{"Password: "}, "Password:"},
		{"JSON that is no message", []string{`{"error":"bad"}` + "\n"}, `{"error":"bad"}`},
		{"bytes that are no text", []string{"a\xffb\n"}, "a\ufffdb"},
		{"much text", []string{strings.Repeat("words\n", 5000)}, strings.TrimSpace(strings.Repeat("words\n", 512)[:512])},
		{"nothing", []string{""}, ""},
		{"text before an answer", []string{"Welcome\n", "no licence"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := startErrorOf(t, printing.command(tt.args...), mcp.Legacy)
			if e.Output != tt.output || e.Echo {
				t.Errorf("got %q, echo %v, want %q", e.Output, e.Echo, tt.output)
			}
			if tt.output != "" {
				mention(t, e.Error(), fmt.Sprintf("; stdout: %q", tt.output))
			}
		})
	}
}

func TestErrorTellsHowAProgramEnded_B056(t *testing.T) {
	e := startErrorOf(t, printing.command("hi\n"), mcp.NoEra)
	if e.Exit != "exit status 3" || e.Output != "hi" {
		t.Errorf("a program that exits: got %#v", e)
	}
	if e = startErrorOf(t, failing.command(), mcp.Legacy); e.Exit != "exit status 9" || !strings.Contains(e.Stderr, "99%") {
		t.Errorf("a program that fails: got %q, %.50q", e.Exit, e.Stderr)
	}
	if e = startErrorOf(t, chattering.command(), mcp.Legacy); e.Exit != "" || !strings.HasPrefix(e.Output, "y\ny\n") {
		t.Errorf("a program that goes on: got %#v", e)
	}
}

func TestProgramsThatCannotBeStarted_B056(t *testing.T) {
	for _, tt := range []struct {
		cmd  stdio.Command
		want error
	}{
		{stdio.Command{Path: "no-such-program"}, stdio.ErrNotFound},
		{stdio.Command{Path: "/dev/null"}, stdio.ErrNotExecutable},
		{stdio.Command{Path: "sh", Dir: "/nowhere"}, stdio.ErrDirectory},
	} {
		if e := startErrorOf(t, tt.cmd, mcp.NoEra); !errors.Is(e, tt.want) || e.Path != tt.cmd.Path {
			t.Errorf("%s: got %v", tt.cmd.Path, e)
		}
	}
}
