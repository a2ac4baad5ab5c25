package faulttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	json "github.com/go-json-experiment/json"
)

// childVar holds the plan of a child. A process that has it is one.
const childVar = childPrefix + "CHILD"

// childPrefix begins the variables that make a process a child, of this package or
// of one that builds on it.
const childPrefix = "MCPSPLICE_FAULTTEST_"

// A Child is a program of scripts. It is started as [Executable] with the
// environment [Child.Env].
type Child struct {
	// Dir is a directory of the child's own, which outlives it. Child processes
	// that have been left behind are recognised by it.
	Dir string
	// Lives are its scripts: the nth start runs the nth, and the last is run by
	// all that follow.
	Lives []Script
	// Era is whether it is a legacy or a modern server.
	Era mcp.Era
}

// plan is how a Child travels.
type plan struct {
	Dir    string
	Lives  []Script
	Modern bool
}

// Executable returns the path of the running program, which is what children run.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err) // invariant: the systems that tests run on know it
	}
	return path
}

// Env returns the variables that make the running program the child.
func (c *Child) Env() map[string]string {
	text, err := json.Marshal(plan{Dir: c.Dir, Lives: c.Lives, Modern: c.Era == mcp.Modern})
	if err != nil {
		panic(err) // invariant: a plan holds texts and numbers only
	}
	return map[string]string{childVar: string(text), "GOCOVERDIR": c.Dir}
}

// Starts returns how often the child was started.
func (c *Child) Starts() int {
	info, err := os.Stat(filepath.Join(c.Dir, startsFile))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// Ledger returns the ledger of what the child has executed.
func (c *Child) Ledger() Ledger { return Ledger(filepath.Join(c.Dir, "ledger")) }

// startsFile has one byte for each start.
const startsFile = "starts"

// RunChild runs a child, if this process is to be one, and returns its exit status.
// Main functions and TestMain call it first of all, with the standard streams of
// the process, and exit with the status. It reports false in a process that is no
// child.
func RunChild(stdin, stdout, stderr *os.File) (status int, isChild bool) {
	text, isChild := os.LookupEnv(childVar)
	if !isChild {
		return 0, false
	}
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return complain(stderr, err), true
	}
	life, err := begin(&p)
	if err != nil {
		return complain(stderr, err), true
	}
	a := &actor{
		plan: &p, streams: [3]*os.File{stdin, stdout, stderr},
		lines:  jsonrpc.NewLineReader(stdin, 64<<20),
		worker: worker{modern: p.Modern, ledger: Ledger(filepath.Join(p.Dir, "ledger"))},
	}
	for _, step := range p.Lives[life] {
		if status, err := a.act(step); err != nil || status >= 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return complain(stderr, err), true
			}
			return max(status, 0), true
		}
	}
	return 0, true
}

// badStatus is the exit status of a child whose script did not go as written.
const badStatus = 97

func complain(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintf(stderr, "the child failed: %v\n", err)
	return badStatus
}

// begin counts a start, and returns which script is run.
func begin(p *plan) (life int, err error) {
	f, err := os.OpenFile(filepath.Join(p.Dir, startsFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.WriteString("."); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return min(int(info.Size()), len(p.Lives)) - 1, nil
}

// An actor is a child that plays its script.
type actor struct {
	plan    *plan
	streams [3]*os.File
	lines   *jsonrpc.LineReader
	worker  worker
	asked   jsonrpc.Message // the request that was expected last
}

// act takes a step. A status that is not negative ends the child.
func (a *actor) act(s Step) (status int, err error) {
	switch s.Do {
	case doHandshake:
		err = a.handshake()
	case doExpect:
		err = a.expect(string(s.Text))
	case doWrite:
		_, _ = a.streams[Stdout].Write(a.filled(s.Text)) // whoever reads may be gone
	case doComplain:
		_, _ = a.streams[Stderr].Write(s.Text)
	case doFlood:
		a.flood(a.streams[s.Text[0]], s.Text[1:], s.Number)
	case doFloodOn:
		go a.floodOn(a.streams[s.Text[0]], s.Text[1:], s.Number)
	case doPause:
		time.Sleep(time.Duration(s.Number))
	case doClose:
		err = a.streams[s.Number].Close()
	case doIgnoreSignals:
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	case doGrandchild:
		err = a.grandchild()
	default:
		return a.finally(s)
	}
	return -1, err
}

// finally takes a step that is the last one.
func (a *actor) finally(s Step) (status int, err error) {
	switch s.Do {
	case doServe:
		return 0, a.serve()
	case doServeHTTP:
		return 0, a.serveHTTP(string(s.Text))
	case doDrain:
		_, _ = io.Copy(io.Discard, a.streams[Stdin])
		return 0, nil
	case doHang:
		hang()
	case doExit:
		return int(s.Number), nil
	case doDie:
		die()
	}
	return badStatus, fmt.Errorf("there is no step %q", s.Do)
}

func hang() { time.Sleep(time.Hour) }

// die kills this process. It does not return.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	hang()
}

// filled returns text with the id and the progress token of the last request.
func (a *actor) filled(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("$ID"), a.asked.ID.Raw())
	return bytes.ReplaceAll(text, []byte("$TOKEN"), progressToken(&a.asked))
}

func (a *actor) flood(to io.Writer, text []byte, size int64) {
	chunk := bytes.Repeat(text, 1+(32<<10)/len(text))
	for size > 0 {
		n, err := to.Write(chunk)
		if err != nil {
			return
		}
		size -= int64(n)
	}
}

// floodOn writes text again and again, so many bytes a second. It ends with the
// child, or when nobody reads any more.
func (a *actor) floodOn(to io.Writer, text []byte, perSecond int64) {
	const slices = 100 // a second
	chunk := bytes.Repeat(text, 1+int(perSecond)/slices/len(text))
	for ticks := time.Tick(time.Second / slices); ; <-ticks {
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
}

// grandchild starts this program once more with a script of its own.
func (a *actor) grandchild() error {
	dir := filepath.Join(a.plan.Dir, fmt.Sprintf("grandchild%d", os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	other := Child{Dir: dir, Lives: []Script{{IgnoreSignals(), Hang()}}}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, childVar+"=") })
	for name, value := range other.Env() {
		env = append(env, name+"="+value)
	}
	_, err := os.StartProcess(Executable(), []string{"grandchild"}, &os.ProcAttr{Env: env, Files: a.streams[:]})
	if err != nil {
		return err
	}
	for other.Starts() == 0 {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// next returns the next message.
func (a *actor) next() (*jsonrpc.Message, error) {
	line, err := a.lines.ReadLine()
	if err != nil {
		return nil, err
	}
	m := new(jsonrpc.Message)
	if err := jsonrpc.Scan(bytes.Clone(line), m); err != nil {
		return nil, fmt.Errorf("%.200q: %w", line, err)
	}
	return m, nil
}

func (a *actor) handshake() error {
	for {
		m, err := a.next()
		if err != nil {
			return err
		}
		if m.Kind == jsonrpc.Request {
			a.say(a.worker.answer(m))
		}
		switch string(m.Method) {
		case mcp.NotificationInitialized:
			return nil
		case mcp.MethodDiscover:
			if a.plan.Modern {
				return nil
			}
		}
	}
}

func (a *actor) expect(method string) error {
	for {
		m, err := a.next()
		if err != nil {
			return err
		}
		switch {
		case m.Kind == jsonrpc.Notification && string(m.Method) == method:
			return nil
		case m.Kind != jsonrpc.Request:
		case method == "" || string(m.Method) == method:
			a.asked = *m
			return nil
		default:
			a.say(a.worker.answer(m))
		}
	}
}

func (a *actor) say(line []byte) { _, _ = a.streams[Stdout].Write(append(line, '\n')) }
