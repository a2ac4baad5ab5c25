package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Defaults of the zero values in [Command] and [Waits].
const (
	DefaultStderrTail = 64 << 10        // bytes
	DefaultExitWait   = 2 * time.Second // [Waits].Exit
	DefaultTermWait   = 2 * time.Second // [Waits].Term
	DefaultKillWait   = time.Second     // [Waits].Kill
	DefaultGroupWait  = 500 * time.Millisecond
)

// Causes of a [StartError], for errors.Is.
var (
	// ErrDirectory: the working directory is missing, not a directory, or
	// not ours to enter.
	ErrDirectory = errors.New("unusable working directory")
	// ErrNotFound: there is no such command.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable: the command exists and cannot be run: no permission,
	// a directory, a format that the system does not know, an interpreter
	// that is missing, arguments that cannot be passed safely.
	ErrNotExecutable = errors.New("command not executable")
)

// A StartError tells why a child was not started. Its Err wraps
// [ErrDirectory], [ErrNotFound] or [ErrNotExecutable] where one of them is the
// cause, and the system's error beneath; everything else (no more processes,
// argument list too long, a context that had ended) has neither.
type StartError struct {
	Path string // as in the Command
	Dir  string // as in the Command
	Err  error
}

// Error names the command and what is wrong: `starting "srv": unusable
// working directory "/x": no such file or directory`.
func (e *StartError) Error() string {
	return fmt.Sprintf("starting %q: %v", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// A Command says what to run. Only Path is required. [Start] copies what it
// keeps, so a Command may be used again and changed between two starts.
type Command struct {
	// Path names the program. Without a path separator it is looked up in
	// the PATH that the child will get; relative entries of PATH are skipped,
	// so that nothing is run from a directory by accident. With a separator
	// and not absolute it is resolved against Dir: "./srv" is Dir/srv. A
	// tilde and variables are the configuration's business, not ours.
	Path string

	// Args are the arguments without the program's name. No shell sees them.
	Args []string

	// Dir is the working directory; a relative one is resolved against ours,
	// and empty means ours. The child's PWD is set to it.
	Dir string

	// Env holds the configured variables. They are added to the pass list
	// (see [Environment]) and win over it.
	Env map[string]string

	// Stderr, if not nil, gets what the child writes to stderr in fragments
	// of at most 8 KiB, as written: not cut at line ends, not cleaned. Write
	// is called from one goroutine. Up to 64 fragments wait for a slow sink,
	// further ones are dropped and counted (StderrDropped); after an error it
	// is not called again. Close gives it Waits.Kill to take what waits, and
	// leaves it alone then: a Write may still run after Close, and one that
	// never returns keeps its goroutine.
	Stderr io.Writer

	// StderrTail is how many bytes of stderr are kept; 0 means
	// [DefaultStderrTail], negative none.
	StderrTail int

	// Waits bounds each step of the end.
	Waits Waits
}

// Waits are the times that the steps of [Process.Close] may take. In each, 0
// means the default and a negative value not to wait; Kill cannot be left out,
// as Close could not tell then whether it worked. Close returns within
// the sum of Exit, Term and Kill, or of Group, Term and Kill for a child that
// had ended by itself.
type Waits struct {
	// Exit is how long the group may take after its stdin was closed
	// ([DefaultExitWait], 2 s).
	Exit time.Duration
	// Term is how long it may take after SIGTERM ([DefaultTermWait], 2 s).
	Term time.Duration
	// Kill is how long its disappearance after SIGKILL is watched, and how
	// long the stderr sink may take to accept what is queued
	// ([DefaultKillWait], 1 s).
	Kill time.Duration
	// Group replaces Exit when the child ended by itself and other members
	// of its group live on ([DefaultGroupWait], 500 ms).
	Group time.Duration
}

func (w Waits) withDefaults() Waits {
	set := func(d *time.Duration, def time.Duration) {
		switch {
		case *d == 0:
			*d = def
		case *d < 0:
			*d = 0
		}
	}
	set(&w.Exit, DefaultExitWait)
	set(&w.Term, DefaultTermWait)
	set(&w.Kill, DefaultKillWait)
	if w.Kill == 0 {
		w.Kill = DefaultKillWait
	}
	set(&w.Group, DefaultGroupWait)
	return w
}

// A launch is a Command made ready: all that the system needs.
type launch struct {
	path string   // absolute
	argv []string // argv[0] is the name as given
	dir  string   // absolute, or empty for ours
	env  []string
}

func (c *Command) launch(ctx context.Context) (*launch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	dir, err := workDir(c.Dir)
	if err != nil {
		return nil, err
	}
	configured := c.Env
	if dir != "" {
		configured = withPWD(c.Env, dir)
	}
	env := Environment(configured)
	path, err := lookPath(c.Path, dir, env)
	if err != nil {
		return nil, err
	}
	return &launch{path: path, argv: append([]string{c.Path}, c.Args...), dir: dir, env: env}, nil
}

// Find returns the program that [Start] would run now, as an absolute path.
func (c *Command) Find() (string, error) {
	l, err := c.launch(context.Background())
	if err != nil {
		return "", &StartError{Path: c.Path, Dir: c.Dir, Err: err}
	}
	return l.path, nil
}

// check refuses what the system could only misread: a NUL ends a string early.
func (c *Command) check() error {
	if c.Path == "" {
		return fmt.Errorf("%w: no command given", ErrNotFound)
	}
	for _, s := range append([]string{c.Path, c.Dir}, c.Args...) {
		if strings.ContainsRune(s, 0) {
			return errors.New("NUL byte in command, argument or working directory")
		}
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("invalid variable name %q", name)
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("NUL byte in variable %q", name)
		}
	}
	return nil
}

// workDir returns dir as an absolute path after it was seen to be a directory.
// The check comes before the fork because a failing chdir in the child is
// reported as if the command were missing.
func workDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrDirectory, dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrDirectory, abs, reason(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%w %q: not a directory", ErrDirectory, abs)
	}
	return abs, nil
}

// reason strips the operation and path that our own text names already.
func reason(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
