//go:build unix

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds the program as [Command].Path describes.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return lookFile(name, dir)
	}
	path := lookupEnv(env, "PATH")
	var denied, relative error
	for _, entry := range filepath.SplitList(path) {
		file := filepath.Join(entry, name)
		err := executable(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		case !filepath.IsAbs(entry):
			relative = fmt.Errorf("%w: %q stands in the relative PATH entry %q only: %w",
				ErrNotFound, name, entry, exec.ErrDot)
		case err == nil:
			return file, nil
		case denied == nil:
			denied = fmt.Errorf("%w: %s: %w", ErrNotExecutable, file, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	if relative != nil {
		return "", relative
	}
	return "", fmt.Errorf("%w in PATH %q", ErrNotFound, path)
}

func lookFile(name, dir string) (string, error) {
	file := name
	if !filepath.IsAbs(file) {
		abs, err := filepath.Abs(filepath.Join(dir, file))
		if err != nil {
			return "", err
		}
		file = abs
	}
	err := executable(file)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return "", fmt.Errorf("%w: %s: %w", ErrNotFound, file, err)
	}
	return "", fmt.Errorf("%w: %s: %w", ErrNotExecutable, file, err)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return reason(err)
	}
	if info.IsDir() {
		return unix.EISDIR
	}
	if info.Mode()&0o111 == 0 {
		return unix.EACCES
	}
	return nil
}

// explain names the culprit of a failed fork or exec. The kernel says "no such
// file" of the command, its interpreter and the directory alike, and
// "permission denied" too.
func (l *launch) explain(err error) error {
	err = reason(err)
	if l.dir != "" {
		if dirErr := unix.Access(l.dir, unix.X_OK); dirErr != nil {
			return fmt.Errorf("%w %q: %w", ErrDirectory, l.dir, dirErr)
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return l.explainMissing(err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%w: %s: %w (a script needs a #! line)", ErrNotExecutable, l.path, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM),
		errors.Is(err, unix.ETXTBSY), errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w: %s: %w", ErrNotExecutable, l.path, err)
	}
	return err
}

func (l *launch) explainMissing(err error) error {
	f, openErr := os.Open(l.path)
	if errors.Is(openErr, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", ErrNotFound, l.path, err)
	}
	what := "its loader or interpreter"
	if openErr == nil {
		head, _ := io.ReadAll(io.LimitReader(f, 256))
		_ = f.Close()
		if interpreter := shebang(head); interpreter != "" {
			// Quoted: a CR before the line end is the usual reason.
			what = fmt.Sprintf("its interpreter %q", interpreter)
		}
	}
	return fmt.Errorf("%w: %s: %s: %w", ErrNotExecutable, l.path, what, err)
}

// shebang returns the interpreter that the first line of a script names.
func shebang(head []byte) string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		line = line[:i]
	}
	return string(line)
}
