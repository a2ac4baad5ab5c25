package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A child's stderr is among our own messages, and perhaps beside that of other children:
// each line says whose it is.

// Bounds of the lines of a child.
const (
	maxChildLine  = 8 << 10                // bytes; a longer one is shown in pieces
	childLineWait = 200 * time.Millisecond // how long the rest of a line is waited for, as behind a prompt there is none
	maxChildName  = 32                     // characters
)

// childLines take what one child writes to its stderr. Several goroutines may write.
type childLines struct {
	// Set at construction.
	app      *app
	from     string // "node#1"
	harmless bool   // it may reach a terminal

	mu   sync.Mutex
	rest []byte      // of a line that has not ended, guarded by mu, like what follows
	late *time.Timer // shows the rest; nil if there never was one
}

// newChildLines returns what takes the stderr of the nth connection to a program.
func (a *app) newChildLines(path string, n int64, harmless bool) *childLines {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	return &childLines{app: a, from: fmt.Sprintf("%s#%d", shorten(clean(name), maxChildName), n), harmless: harmless}
}

// Write implements [io.Writer]. A line is shown when it has ended.
func (c *childLines) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	var shown []byte
	for {
		line, rest, ended := cutLine(c.rest)
		if !ended && len(c.rest) <= maxChildLine {
			break
		}
		c.rest = rest
		shown = c.appendLine(shown, line)
	}
	c.await()
	if len(shown) == 0 {
		return len(p), nil
	}
	if _, err := c.app.Err.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cutLine takes the first line from a text, and as much as a line may have from one that
// is too long. A CR ends a line as well: programs begin one again to show how far they are.
func cutLine(text []byte) (line, rest []byte, ended bool) {
	end := bytes.IndexAny(text, "\r\n")
	switch {
	case end > maxChildLine, end < 0:
		n := min(len(text), maxChildLine)
		return text[:n], text[n:], end > maxChildLine
	case text[end] == '\n':
		return text[:end], text[end+1:], true
	case end+1 == len(text):
		return text[:end], nil, false // a LF may follow
	case text[end+1] == '\n':
		return text[:end], text[end+2:], true
	}
	return text[:end], text[end+1:], true
}

// appendLine appends a line as it is shown.
func (c *childLines) appendLine(shown, line []byte) []byte {
	text := strings.ToValidUTF8(string(line), "\ufffd")
	if c.app.asJSON {
		raw, err := mcp.NewJSON(struct {
			Stderr string `json:"stderr"`
			From   string `json:"from"`
		}{text, c.from})
		if err != nil {
			return shown // invariant: strings of UTF-8 become JSON
		}
		return append(append(shown, raw...), '\n')
	}
	if c.harmless {
		text = harmlessText(text)
	} else {
		text = string(line)
	}
	return append(shown, strings.TrimRight("["+c.from+"] "+text, " ")+"\n"...)
}

// await has the rest of a line shown if no end of it comes. c.mu is held.
func (c *childLines) await() {
	c.app.console.unfinished(c, len(c.rest) > 0)
	switch {
	case len(c.rest) == 0 && c.late != nil:
		c.late.Stop()
	case len(c.rest) > 0 && c.late == nil:
		c.late = time.AfterFunc(childLineWait, c.finish)
	case len(c.rest) > 0:
		c.late.Reset(childLineWait)
	}
}

// finish shows what there is of a line that has not ended.
func (c *childLines) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil {
		c.late.Stop()
	}
	line := bytes.TrimRight(c.rest, "\r")
	c.rest = nil
	if len(line) > 0 {
		// Whom stderr does not reach cannot be told so.
		_, _ = c.app.Err.Write(c.appendLine(nil, line))
	}
	c.app.console.unfinished(c, false) // not before: whoever ends all lines waits for this one
}

// unfinished notes whether a line of a child has not ended.
func (c *console) unfinished(of *childLines, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !is {
		delete(c.open, of)
		return
	}
	if c.open == nil {
		c.open = make(map[*childLines]struct{})
	}
	c.open[of] = struct{}{}
}

// finish shows all lines of children that have not ended.
func (c *console) finish() {
	c.mu.Lock()
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for of := range open {
		of.finish()
	}
}

// A loggedCommand is a target that shows the stderr of its children.
type loggedCommand struct {
	*client.CommandTarget
	app    *app
	starts int64 // a client dials once at a time
}

// Dial implements [client.Target].
func (t *loggedCommand) Dial(ctx context.Context, opts transport.DialOptions) (transport.Edge, error) {
	t.starts++
	command := *t.CommandTarget
	command.Options.Stderr = t.app.newChildLines(command.Command.Path, t.starts, true)
	return command.Dial(ctx, opts)
}
