package repotest_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// ban keeps an import out of some packages.
type ban struct {
	path   string
	dirs   []string // the packages, without those below them; nil means all
	reason string
	except []exception
}

var bans = []ban{
	{
		path:   "net/http",
		dirs:   []string{"jsonrpc", "mcp", "session", "transport", "transport/stdio", "transport/socket"},
		reason: "what a message means does not depend on HTTP, and a user of stdio does not link it",
	},
	{
		path:   "os/exec",
		reason: "a process is started in one place, where its whole group also ends",
		except: []exception{
			{"internal/process", "is that place"},
			{"internal/exampletest", "runs the examples in their tests"},
		},
	},
	{
		path:   "log",
		reason: "a log is a *slog.Logger that the caller hands in",
	},
}

func TestBannedImports(t *testing.T) {
	for _, b := range bans {
		t.Run(path.Base(b.path), func(t *testing.T) {
			rule{
				section: sectionImports,
				applies: func(f *file) bool {
					return f.main && !f.test && !within(f.path, "examples") &&
						(b.dirs == nil || slices.Contains(b.dirs, f.dir))
				},
				check: func(f *file) []finding {
					var all []finding
					for _, spec := range f.ast.Imports {
						if importPath(spec) == b.path {
							all = append(all, at(f, spec.Pos(), "%s must not import %s: %s", f.dir, b.path, b.reason))
						}
					}
					return all
				},
				except: b.except,
			}.enforce(t)
		})
	}
}

// thirdParty lists the modules that the message and transport packages may use.
// Everything else that somebody else wrote stays out of them, so that whoever
// imports them downloads next to nothing.
var thirdParty = []exception{
	{"golang.org/x/sys", "signals and process groups are not in the standard library"},
	{"golang.org/x/sync", "the standard library has no weighted semaphore and no single flight"},
	{"golang.org/x/time", "warnings about a noisy peer are logged at a limited rate"},
	{"github.com/go-json-experiment/json", "encoding/json matches names in any case and keeps duplicates"},
	{"github.com/coder/websocket", "the framing of RFC 6455 is not what this project is about"},
}

func TestMessageAndTransportPackagesUseFewModules(t *testing.T) {
	thin := func(f *file) bool {
		return f.main && !f.test &&
			(within(f.dir, "jsonrpc") || within(f.dir, "mcp") || within(f.dir, "transport"))
	}
	rule{
		section: sectionDependencies,
		applies: thin,
		check: func(f *file) []finding {
			var all []finding
			for _, spec := range f.ast.Imports {
				imported := importPath(spec)
				if _, ours := inModule(imported); ours || !strings.Contains(strings.Split(imported, "/")[0], ".") {
					continue
				}
				if !slices.ContainsFunc(thirdParty, func(e exception) bool { return within(imported, e.path) }) {
					all = append(all, at(f, spec.Pos(), "%s imports %s, which is not on the short list of internal/repotest/bans_test.go", f.dir, imported))
				}
			}
			return all
		},
	}.enforce(t)
}
