package cli

import (
	"cmp"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
)

// defaultColumns is the width of a terminal that does not tell its own.
const defaultColumns = 80

// A console is where messages to people go. Several goroutines may write, one
// whole text at a time. On a terminal it has a status line below the text.
type console struct {
	w       io.Writer // set at construction
	columns int       // set at construction, 0 if it is no terminal
	dumb    bool      // set at construction: a terminal that takes no line away

	mu     sync.Mutex
	status string                   // what the last line shows, guarded by mu, like what follows
	shown  time.Time                // when it was shown
	held   bool                     // nothing is to be shown there
	open   map[*childLines]struct{} // children that have begun a line
}

func newConsole(w io.Writer) *console {
	c := &console{w: w}
	c.dumb = os.Getenv("TERM") == "dumb"
	if f, ok := w.(*os.File); ok {
		if columns, ok := terminal(f); ok {
			c.columns = cmp.Or(columns, defaultColumns)
		}
	}
	return c
}

// terminal reports whether a person reads it.
func (c *console) terminal() bool { return c.columns > 0 }

// Write writes a text above the status line, which it takes away.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	return c.w.Write(p)
}

// minShown is how long a status line stays before another one takes its place.
const minShown = 20 * time.Millisecond

// show replaces the status line; empty takes it away. What comes too soon after
// the one before is not shown.
func (c *console) show(status string) {
	if !c.terminal() || c.dumb {
		return
	}
	status = shorten(strings.Map(printable, status), c.columns-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case status == "":
		c.clear()
		return
	case status == c.status, c.held, now.Sub(c.shown) < minShown:
		return
	}
	c.clear()
	// A terminal that is gone shows nothing.
	_, _ = io.WriteString(c.w, status)
	c.status, c.shown = status, now
}

// hold keeps the status line away while somebody is typing.
func (c *console) hold(held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.held = held
}

// clear takes the status line away. c.mu is held.
func (c *console) clear() {
	if c.status == "" {
		return
	}
	c.status = ""
	_, _ = io.WriteString(c.w, "\r\x1b[K")
}

// harmless is for strings.Map: it is printable, but leaves a text its lines.
func harmless(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// harmlessText returns a text of a peer's that is safe to write to a terminal.
func harmlessText(text string) string {
	return strings.Map(harmless, strings.ReplaceAll(text, "\r\n", "\n"))
}

// A style makes text stand out, if anybody wants that.
type style bool

// newStyle returns the style of a stream: none unless it is a terminal that has
// styles, and not if NO_COLOR is set (no-color.org).
func newStyle(terminal bool, env func(string) string) style {
	return style(terminal && env("NO_COLOR") == "" && env("TERM") != "dumb")
}

func (s style) bold(text string) string { return s.within("1", text) }
func (s style) dim(text string) string  { return s.within("2", text) }

func (s style) within(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
