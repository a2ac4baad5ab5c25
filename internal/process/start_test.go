//go:build unix

package process_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestStartErrorNamesTheCulprit(t *testing.T) {
	nothingLeft(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain", "x", 0o600)
	write("noformat", "x", 0o700)
	write("badscript", "#!/no/such/interpreter -x\n", 0o700)
	write("crlf", "#!/bin/sh\r\n", 0o700)
	for _, c := range []struct {
		name string
		cmd  process.Command
		kind error
		text string
	}{
		{"directory missing", process.Command{Path: "sh", Dir: "/does/not/exist"},
			process.ErrDirectory, `unusable working directory "/does/not/exist": no such file or directory`},
		{"directory is a file", process.Command{Path: "sh", Dir: plain},
			process.ErrDirectory, "not a directory"},
		{"command missing", process.Command{Path: "no-such-command"},
			process.ErrNotFound, `starting "no-such-command": command not found in PATH "`},
		{"command missing in a PATH of its own",
			process.Command{Path: "sh", Env: map[string]string{"PATH": "/nowhere"}},
			process.ErrNotFound, `command not found in PATH "/nowhere"`},
		{"path missing", process.Command{Path: "./srv", Dir: dir},
			process.ErrNotFound, "command not found: " + dir + "/srv: no such file or directory"},
		{"below a file", process.Command{Path: plain + "/srv"},
			process.ErrNotFound, "not a directory"},
		{"relative PATH entry",
			process.Command{Path: "process.go", Env: map[string]string{"PATH": ".:/bin"}},
			exec.ErrDot, `relative PATH entry "."`},
		{"not executable", process.Command{Path: "./plain", Dir: dir},
			process.ErrNotExecutable, plain + ": permission denied"},
		{"not executable in PATH", process.Command{Path: "plain", Env: map[string]string{"PATH": dir}},
			process.ErrNotExecutable, plain + ": permission denied"},
		{"directory as command", process.Command{Path: dir},
			process.ErrNotExecutable, "is a directory"},
		{"no format", process.Command{Path: "./noformat", Dir: dir},
			process.ErrNotExecutable, "a script needs a #! line"},
		{"interpreter missing", process.Command{Path: "./badscript", Dir: dir},
			process.ErrNotExecutable, `its interpreter "/no/such/interpreter": no such file`},
		{"interpreter with CR", process.Command{Path: "./crlf", Dir: dir},
			process.ErrNotExecutable, `its interpreter "/bin/sh\r"`},
		{"nothing", process.Command{}, process.ErrNotFound, "no command given"},
		{"NUL", process.Command{Path: "sh", Args: []string{"a\x00b"}}, nil, "NUL byte"},
		{"variable name", process.Command{Path: "sh", Env: map[string]string{"A=B": "c"}},
			nil, `invalid variable name "A=B"`},
		{"too long", process.Command{Path: "sh", Args: []string{strings.Repeat("x", 8<<20)}},
			nil, "argument list too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := process.Start(t.Context(), c.cmd)
			var se *process.StartError
			if !errors.As(err, &se) || se.Path != c.cmd.Path || se.Dir != c.cmd.Dir {
				t.Fatalf("err = %v", err)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
			for _, other := range []error{process.ErrDirectory, process.ErrNotFound, process.ErrNotExecutable} {
				if errors.Is(err, other) && other != c.kind && c.kind != exec.ErrDot {
					t.Errorf("%v is also %v", err, other)
				}
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v\nlacks %s", err, c.text)
			}
		})
	}
}

func TestStartErrorKeepsTheCause(t *testing.T) {
	_, err := process.Start(t.Context(), process.Command{Path: "/no/such/file"})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestStartWithEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := process.Start(ctx, process.Command{Path: "sh"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestRelativeCommandIsResolvedAgainstDir(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho here\n"
	if err := os.WriteFile(filepath.Join(dir, "srv"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	for _, c := range []process.Command{
		{Path: "./srv", Dir: dir},
		{Path: "../srv", Dir: filepath.Join(dir, "sub")},
		{Path: filepath.Join(dir, "srv")},
		{Path: "srv", Env: map[string]string{"PATH": dir}},
	} {
		p := another(t, c)
		if got := line(t, p); got != "here" {
			t.Errorf("%+v: %q", c, got)
		}
		if _, err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
