package process

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Variables that a child inherits. Everything else is either configured or
// absent: API keys of other servers, and above all the variables that make a
// program run code (BASH_ENV, LD_PRELOAD, NODE_OPTIONS, PYTHONSTARTUP,
// GIT_SSH_COMMAND).
var (
	passUnix = []string{
		"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	}
	passUnixPrefix = "LC_"

	// Without most of these Windows programs do not start, or do not find
	// their profile.
	passWindows = []string{
		"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)",
		"COMMONPROGRAMW6432", "COMPUTERNAME", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
		"NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT",
		"TEMP", "TMP", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR",
	}
)

// Environment returns the environment of a child, sorted: what our own
// environment holds of the pass list, then the configured variables, which
// win. The pass list is HOME, LANG, LC_*, LOGNAME, PATH, SHELL, TERM, TMPDIR,
// TZ and USER; on Windows, where case does not count, it is PATH, PATHEXT,
// SystemRoot, TEMP, USERPROFILE and the other variables that name the system
// and the user's folders. A value that begins with "()" is a shell function in
// disguise and not passed on. A child with a working directory of its own
// also gets PWD.
func Environment(configured map[string]string) []string {
	return buildEnv(os.Environ(), configured, runtime.GOOS == "windows")
}

func buildEnv(parent []string, configured map[string]string, windows bool) []string {
	key := func(name string) string { return name }
	if windows {
		key = strings.ToUpper
	}
	entries := make(map[string]string)
	for _, kv := range parent {
		name, value, ok := strings.Cut(kv, "=")
		if ok && passes(key(name), windows) && !strings.HasPrefix(value, "()") {
			entries[key(name)] = kv
		}
	}
	for name, value := range configured {
		entries[key(name)] = name + "=" + value
	}
	return slices.Sorted(maps.Values(entries))
}

func passes(name string, windows bool) bool {
	if windows {
		return slices.Contains(passWindows, name)
	}
	return slices.Contains(passUnix, name) || strings.HasPrefix(name, passUnixPrefix)
}

// lookupEnv returns a variable of an environment made by buildEnv.
func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

func withPWD(configured map[string]string, dir string) map[string]string {
	if _, ok := configured["PWD"]; ok || runtime.GOOS == "windows" {
		return configured
	}
	env := maps.Clone(configured)
	if env == nil {
		env = make(map[string]string)
	}
	env["PWD"] = dir
	return env
}
