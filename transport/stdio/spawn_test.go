//go:build unix

package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// A surroundings is what a child can see of how it was started.
type surroundings struct {
	Args []string
	Env  []string
	Dir  string
}

// inspecting tells its surroundings.
var inspecting = newMode("inspecting", func(c *child) int {
	c.handshake()
	for m := c.next(); m != nil; m = c.next() {
		dir, err := os.Getwd()
		if err != nil {
			c.fail("%v", err)
		}
		told, err := json.Marshal(surroundings{os.Args, os.Environ(), dir})
		if err != nil {
			c.fail("%v", err)
		}
		c.answer(m, string(told))
	}
	return 0
})

func inspect(t *testing.T, cmd stdio.Command) surroundings {
	t.Helper()
	c := dial(t, cmd, legacy())
	var s surroundings
	if err := json.Unmarshal([]byte(succeed(t, c, "inspect", "{}")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	args := []string{"", "a b", `"quoted"`, "$(touch x)", "`id`", "*", "~/x", "--", "-c", "ümläut", "a\nb", `\`, "./server.js", "${HOME}"}
	got := inspect(t, inspecting.command(args...))
	if !slices.Equal(got.Args[1:], args) {
		t.Errorf("B160: got %q", got.Args[1:])
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	for _, name := range []string{"STDIO_TEST_CANARY", "NODE_OPTIONS", "LD_PRELOAD", "BASH_ENV", "PYTHONSTARTUP"} {
		t.Setenv(name, "")
		if err := os.Setenv(name, "/nonexistent"); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LC_ALL", "C")
	cmd := inspecting.command()
	cmd.Env["CONFIGURED"] = "a=b c"
	cmd.Env["HOME"] = "/elsewhere"
	got := inspect(t, cmd)
	for _, kv := range got.Env {
		if strings.Contains(kv, "nonexistent") {
			t.Errorf("D1.8a: the child has %s", kv)
		}
	}
	for _, kv := range []string{"CONFIGURED=a=b c", "HOME=/elsewhere", "LC_ALL=C", "PATH=" + os.Getenv("PATH")} {
		if !slices.Contains(got.Env, kv) {
			t.Errorf("S1.47: the child has no %s, but %q", kv, got.Env)
		}
	}
}

func TestConfiguredVariableWins(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "ours")
	cmd := inspecting.command()
	cmd.Env["NODE_OPTIONS"] = "theirs"
	if got := inspect(t, cmd); !slices.Contains(got.Env, "NODE_OPTIONS=theirs") {
		t.Errorf("D1.8a: the child has %q", got.Env)
	}
}

func TestWorkingDirectory(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(base, "sub dir")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	exe := inspecting.command().Path
	for _, link := range []string{filepath.Join(base, "srv"), filepath.Join(sub, "srv")} {
		if err := os.Symlink(exe, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(base)
	for _, tt := range []struct{ name, path, dir, want string }{
		{"B160 ours by default", exe, "", base},
		{"B160 absolute", exe, sub, sub},
		{"B160 a dot", exe, ".", base},
		{"B160 relative to ours", exe, "sub dir", sub},
		{"B160 a command in it", "./srv", sub, sub},
		{"B160 a command in ours", "./srv", "", base},
		{"B160 a command below it", "sub dir/srv", base, base},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := inspecting.command()
			cmd.Path, cmd.Dir = tt.path, tt.dir
			got := inspect(t, cmd)
			if got.Dir != tt.want || got.Args[0] != tt.path {
				t.Errorf("the child is %q in %q", got.Args[0], got.Dir)
			}
			if tt.dir != "" && !slices.Contains(got.Env, "PWD="+tt.want) {
				t.Errorf("PWD is not %q: %q", tt.want, got.Env)
			}
		})
	}
}

func TestCommandIsLookedUpInTheChildsPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(inspecting.command().Path, filepath.Join(dir, "mcp-test-server")); err != nil {
		t.Fatal(err)
	}
	cmd := inspecting.command()
	cmd.Path = "mcp-test-server"
	cmd.Env["PATH"] = dir
	if got := inspect(t, cmd); got.Args[0] != "mcp-test-server" {
		t.Errorf("B160: the child is %q", got.Args[0])
	}
}

// trace is what a server prints that cannot start.
const trace = "Error: Cannot find module 'x'\n    at node:internal/modules:1\n"

// exitsAtOnce prints a trace and exits.
var exitsAtOnce = newMode("exits at once", func(*child) int {
	fmt.Fprint(os.Stderr, trace)
	return 1
})

// silent reads and never answers.
var silent = newMode("silent", func(c *child) int {
	fmt.Fprintln(os.Stderr, "waiting for a licence")
	return c.untilEOF()
})

// refuses answers initialize with an error.
var refuses = newMode("refuses", func(c *child) int {
	for m := c.next(); m != nil; m = c.next() {
		c.say(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32000,"message":"no licence"}}`)
	}
	return 0
})

func TestStartErrorsNameTheirCause(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.txt")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(dir string) stdio.Command {
		cmd := silent.command()
		cmd.Dir = dir
		return cmd
	}
	for _, tt := range []struct {
		name  string
		cmd   stdio.Command
		limit time.Duration
		is    error
		parts []string
		kind  mcp.FailureKind
	}{
		{"B055 missing working directory", in("/does/not/exist"), 0, process.ErrDirectory, []string{"/does/not/exist"}, mcp.Unreachable},
		{"B055 working directory is a file", in(plain), 0, process.ErrDirectory, []string{plain}, mcp.Unreachable},
		{"B055 missing command", stdio.Command{Path: "no-such-server"}, 0, process.ErrNotFound, []string{"no-such-server"}, mcp.Unreachable},
		{"B055 missing file", stdio.Command{Path: dir + "/nope"}, 0, process.ErrNotFound, []string{"nope"}, mcp.Unreachable},
		{"B055 not executable", stdio.Command{Path: plain}, 0, process.ErrNotExecutable, []string{plain}, mcp.Unreachable},
		{"B055 no command", stdio.Command{}, 0, process.ErrNotFound, nil, mcp.Unreachable},
		{"B055 D1.8 B056 exits at once", exitsAtOnce.command(), 0, nil, []string{"exit status 1", "Cannot find module"}, mcp.ConnectionLost},
		{"B055 never answers", silent.command(), 300 * time.Millisecond, nil,
			[]string{"start timeout of 300ms", "waiting for a licence"}, mcp.TimedOut},
		{"B055 refuses", refuses.command(), 0, nil, []string{"no licence"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, era := range []mcp.Era{mcp.NoEra, mcp.Legacy} {
				o := legacy()
				o.Era, o.StartTimeout = era, tt.limit
				began := time.Now()
				c, err := tryDial(t, tt.cmd, o)
				if err == nil {
					t.Fatalf("the server runs: %v", c.Server())
				}
				if took := time.Since(began); took > promptly+tt.limit {
					t.Errorf("it took %v", took)
				}
				mention(t, err.Error(), append(tt.parts, fmt.Sprintf("%q", tt.cmd.Path))...)
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("the error is %v, want %v", err, tt.is)
				}
				if tt.kind == "" {
					continue
				}
				if e := failure(t, err); e.Kind != tt.kind {
					t.Errorf("the kind is %s, want %s: %v", e.Kind, tt.kind, err)
				}
			}
		})
	}
}

func TestExitAtStartIsInTheError(t *testing.T) {
	_, err := tryDial(t, exitsAtOnce.command(), legacy())
	if exit := exitOf(t, err); exit.Status.Code != 1 || exit.Stderr != trace {
		t.Errorf("D1.8: got %v, %q", exit.Status, exit.Stderr)
	}
	if n := strings.Count(err.Error(), "Cannot find module"); n != 1 {
		t.Errorf("D1.8: stderr is told %d times: %v", n, err)
	}
}

func TestContextEndsTheStartOnly(t *testing.T) {
	t.Run("S1.58 that has ended", func(t *testing.T) {
		nothingLeft(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := stdio.Dial(ctx, silent.command(), legacy()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("during the handshake", func(t *testing.T) {
		nothingLeft(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := stdio.Dial(ctx, silent.command(), &stdio.DialOptions{ExitWait: patience})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("after it", func(t *testing.T) {
		nothingLeft(t)
		ctx, cancel := context.WithCancel(t.Context())
		c, err := stdio.Dial(ctx, scripted.command(), legacy())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(t, c) })
		succeed(t, c, "x", "{}")
	})
}

// TestFind: what is found is what a Dial starts, and nothing is started.
func TestFind(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found := stdio.Command{Path: "./" + filepath.Base(self), Dir: filepath.Dir(self)}
	if got, err := found.Find(); err != nil || got != self {
		t.Errorf("got %q, %v, want %q", got, err, self)
	}
	missing := stdio.Command{Path: "no-such-program"}
	if got, err := missing.Find(); err == nil || got != "" || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %q, %v", got, err)
	}
}
