package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

func lookPath(name, dir string, env []string) (string, error) {
	w := windowsLookup{
		path:    lookupEnv(env, "PATH"),
		pathExt: lookupEnv(env, "PATHEXT"),
		exists: func(file string) bool {
			info, err := os.Stat(file)
			return err == nil && !info.IsDir()
		},
	}
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	file, err := w.find(name, dir)
	if err != nil {
		return "", err
	}
	return filepath.Clean(file), nil
}

// throughCmd returns the path of cmd.exe and the command line that makes it run
// the batch file, or the path itself and no line for any other program.
func (l *launch) throughCmd() (path, line string, err error) {
	if !isBatch(l.path) {
		return l.path, "", nil
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return "", "", fmt.Errorf("finding cmd.exe: %w", err)
	}
	path = filepath.Join(system, "cmd.exe")
	line, err = batchLine(path, l.path, l.argv[1:])
	if err != nil {
		return "", "", fmt.Errorf("%w: %s: %w", ErrNotExecutable, l.path, err)
	}
	return path, line, nil
}

func (l *launch) explain(err error) error {
	err = reason(err)
	switch {
	case errors.Is(err, syscall.ERROR_FILE_NOT_FOUND), errors.Is(err, syscall.ERROR_PATH_NOT_FOUND):
		return fmt.Errorf("%w: %s: %w", ErrNotFound, l.path, err)
	case errors.Is(err, syscall.ERROR_ACCESS_DENIED), errors.Is(err, windows.ERROR_BAD_EXE_FORMAT):
		return fmt.Errorf("%w: %s: %w", ErrNotExecutable, l.path, err)
	}
	return err
}
