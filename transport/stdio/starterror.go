package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Causes of a [StartError], for errors.Is, if there was nothing to start.
var (
	ErrNotFound      = process.ErrNotFound      // there is no such program
	ErrNotExecutable = process.ErrNotExecutable // there is, and it cannot be run
	ErrDirectory     = process.ErrDirectory     // the working directory cannot be used
)

// A StartError is why [Dial] has started no server, or could not connect to it. Its
// Err wraps one of the causes above, the [mcp.CallError] of the handshake, or the
// answer of the server.
type StartError struct {
	Path string // of the command
	// Output is what the program began to write to stdout, at most 512 bytes, if no
	// line of it was a message: then the program may be no server at all.
	Output string
	// Echo says that the program sent back what it was sent, as no server does.
	Echo bool
	// Exit is how the program ended by itself, such as "exit status 1". Empty if it
	// did not.
	Exit   string
	Stderr string // the end of what it wrote to stderr, at most 64 KiB
	Err    error
}

// maxQuoted is how much of what a program wrote to stdout, and to stderr, is in an error.
const maxQuoted = 512 // bytes

// Error names the program and what is wrong, with what it wrote.
func (e *StartError) Error() string {
	text := fmt.Sprintf("starting server %q: ", e.Path)
	if e.Echo {
		text += "it sends back what it is sent, as no server does: "
	}
	text += e.Err.Error()
	if e.Output != "" {
		text += fmt.Sprintf("; stdout: %q", e.Output)
	}
	if _, told := errors.AsType[*process.ExitError](e.Err); !told && e.Stderr != "" {
		text += fmt.Sprintf("; stderr: %q", e.Stderr[max(0, len(e.Stderr)-maxQuoted):])
	}
	return text
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// failed returns the error of a server that was started and not connected to.
func (c *Conn) failed(path string, err error) error {
	e := &StartError{Path: path, Stderr: c.child.StderrTail(), Err: err}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		e.Exit, e.Stderr = exit.Status.String(), exit.Stderr
	}
	if said := c.output.said.Load(); said != nil {
		e.Output, e.Echo = said.judge()
	}
	return e
}

// A beginning is what a child writes to stdout before it is connected to.
type beginning struct {
	text []byte // at most maxBeginning; owned by the reader, and once that has ended by failed
}

// maxBeginning is how much is kept: more than what a client sends first.
const maxBeginning = 4 << 10 // bytes

// keep keeps what was read, if there is room, until the connection is made.
func keep(said *atomic.Pointer[beginning], p []byte) {
	if b := said.Load(); b != nil {
		b.text = append(b.text, p[:min(len(p), maxBeginning-len(b.text))]...)
	}
}

// judge returns the beginning if it holds no message, and whether it holds one that
// only a client sends.
func (b *beginning) judge() (output string, echo bool) {
	messages := 0
	for line := range bytes.Lines(b.text) {
		var m jsonrpc.Message
		if jsonrpc.Scan(bytes.TrimSpace(line), &m) != nil {
			continue
		}
		messages++
		method := string(m.Method)
		echo = echo || m.Kind == jsonrpc.Request && (method == mcp.MethodDiscover || method == mcp.MethodInitialize)
	}
	if messages > 0 {
		return "", echo
	}
	return strings.ToValidUTF8(string(bytes.TrimSpace(b.text[:min(len(b.text), maxQuoted)])), "\ufffd"), false
}
