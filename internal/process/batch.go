package process

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// This file has what Windows needs and no Windows call, so that it is tested
// everywhere.

// defaultPathExt is what Windows uses when PATHEXT is not set.
const defaultPathExt = ".COM;.EXE;.BAT;.CMD"

// A windowsLookup finds programs as Windows does: by the extensions of
// PATHEXT.
type windowsLookup struct {
	path    string                 // PATH
	pathExt string                 // PATHEXT; empty for the default
	exists  func(file string) bool // reports whether a regular file is there
}

// find returns the file that name stands for. A name with a separator is resolved
// against dir, other names against the absolute entries of PATH; unlike cmd.exe and
// CreateProcess it never looks into the current directory.
func (w *windowsLookup) find(name, dir string) (string, error) {
	if strings.ContainsAny(name, `\/:`) {
		full, ok := resolveWindows(name, dir)
		if !ok {
			return "", fmt.Errorf("%w: %s is relative to a drive, or no file", ErrNotFound, name)
		}
		if file, ok := w.extend(full); ok {
			return file, nil
		}
		return "", w.missing(full, fmt.Errorf("%w: %s", ErrNotFound, full))
	}
	var relative, scriptOnly error
	for entry := range strings.SplitSeq(w.path, ";") {
		entry = strings.Trim(entry, `"`)
		base := strings.TrimRight(entry, `\/`) + `\` + name
		file, ok := w.extend(base)
		switch {
		case !isWindowsAbs(entry):
			if ok && relative == nil {
				relative = fmt.Errorf("%w: %q stands in the relative PATH entry %q only: %w",
					ErrNotFound, name, entry, exec.ErrDot)
			}
		case ok:
			return file, nil
		case scriptOnly == nil:
			scriptOnly = w.missing(base, nil)
		}
	}
	if scriptOnly != nil {
		return "", scriptOnly
	}
	if relative != nil {
		return "", relative
	}
	return "", fmt.Errorf("%w in PATH %q", ErrNotFound, w.path)
}

// extend returns the first existing of the name itself, if it bears an
// extension of PATHEXT, and the name with each extension. A bare name without
// extension is no program: npm puts a shell script "npx" beside npx.cmd.
func (w *windowsLookup) extend(name string) (string, bool) {
	exts := w.extensions()
	if slices.Contains(exts, strings.ToLower(extension(name))) && w.exists(name) {
		return name, true
	}
	for _, ext := range exts {
		if w.exists(name + ext) {
			return name + ext, true
		}
	}
	return "", false
}

func (w *windowsLookup) extensions() []string {
	list := w.pathExt
	if list == "" {
		list = defaultPathExt
	}
	var exts []string
	for ext := range strings.SplitSeq(strings.ToLower(list), ";") {
		if len(ext) < 2 {
			continue
		}
		if ext[0] != '.' {
			ext = "." + ext
		}
		exts = append(exts, ext)
	}
	return exts
}

// missing tells of a file that is there but cannot be started as it is.
func (w *windowsLookup) missing(name string, otherwise error) error {
	for _, file := range []string{name, name + ".ps1"} {
		if strings.EqualFold(extension(file), ".ps1") && w.exists(file) {
			return fmt.Errorf("%w: %s: a PowerShell script needs powershell.exe -File as its command",
				ErrNotExecutable, file)
		}
	}
	return otherwise
}

// resolveWindows returns a name with a separator or a colon as an absolute path. It
// reports false for what is relative to a drive's own working directory, which is
// nobody's but the shell's, and for a stream of a file.
func resolveWindows(name, dir string) (string, bool) {
	switch {
	case isWindowsAbs(name):
		return name, true
	case strings.Contains(name, ":"):
		return "", false
	case isSlash(name[0]):
		return windowsVolume(dir) + name, true
	}
	return dir + `\` + name, true
}

// windowsVolume returns the drive of an absolute path, or its \\server\share.
func windowsVolume(dir string) string {
	end := strings.IndexAny(dir, `\/`)
	if end == 0 { // UNC
		server := strings.IndexAny(dir[2:]+`\`, `\/`)
		at := min(2+server+1, len(dir))
		end = at + strings.IndexAny(dir[at:]+`\`, `\/`)
	}
	return dir[:max(end, 0)]
}

// isWindowsAbs reports whether a path has a drive and a root, or is UNC.
func isWindowsAbs(path string) bool {
	if len(path) >= 3 && path[1] == ':' && isSlash(path[2]) {
		return true
	}
	return len(path) >= 2 && isSlash(path[0]) && isSlash(path[1])
}

func isSlash(c byte) bool { return c == '\\' || c == '/' }

// extension returns the last extension of the last path element, with its dot.
func extension(name string) string {
	name = name[strings.LastIndexAny(name, `\/:`)+1:]
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return name[i:]
}

// isBatch reports whether cmd.exe interprets the file. CreateProcess would
// start cmd.exe for it by itself, with a command line that is escaped for other
// programs: the hole of CVE-2024-24576 and CVE-2024-27980.
func isBatch(file string) bool {
	// CreateProcess ignores dots and spaces at the end of a name.
	ext := strings.ToLower(extension(strings.TrimRight(file, ". ")))
	return ext == ".bat" || ext == ".cmd"
}

// batchLine returns the command line that makes cmd.exe run a batch file with
// the arguments, escaped as by Rust's standard library since 1.77.2:
//
//   - every argument with a character outside a short list is quoted, and then
//     & | < > ( ) ^ and the separators mean themselves;
//   - a quote is doubled, which ends and begins the quoted part without a gap;
//   - backslashes before a quote are doubled, for the program behind;
//   - %, which is expanded even within quotes, is followed by %cd:~,%, which
//     expands to nothing and takes the meaning from the first one (/e:ON);
//   - ! means itself under /v:OFF.
//
// The batch file itself passes %* on, in which % is not expanded again unless
// it uses CALL; what it then expands are variables of its own environment.
//
// It refuses what has no escape: CR and LF, which end the command, and NUL.
// A file name with a quote does not exist on Windows and is refused as well.
func batchLine(cmdExe, file string, args []string) (string, error) {
	if strings.ContainsAny(file, "\"\r\n\x00") {
		return "", errors.New("file name with a quote or a line end")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `"%s" /e:ON /v:OFF /d /c ""%s"`, cmdExe, escapePercent(file))
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("argument %d has a line end, which a batch file cannot get", i+1)
		}
		b.WriteByte(' ')
		appendBatchArg(&b, arg)
	}
	b.WriteByte('"')
	return b.String(), nil
}

func escapePercent(s string) string {
	return strings.ReplaceAll(s, "%", "%%cd:~,%")
}

func appendBatchArg(b *strings.Builder, arg string) {
	if arg != "" && strings.Trim(arg, batchPlain) == "" && !strings.HasSuffix(arg, `\`) {
		b.WriteString(arg)
		return
	}
	b.WriteByte('"')
	backslashes := 0
	for _, r := range arg {
		switch r {
		case '\\':
			backslashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes))
			b.WriteByte('"')
			backslashes = 0
		case '%':
			b.WriteString("%%cd:~,")
			backslashes = 0
		default:
			backslashes = 0
		}
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat(`\`, backslashes))
	b.WriteByte('"')
}

// batchPlain are the characters that cmd.exe gives no meaning to.
const batchPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + `#$*+-./:?@\_`
