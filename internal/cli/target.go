package cli

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/spf13/cobra"
)

// demoTarget names the built-in server.
const demoTarget = "demo"

// A target is the server that a command line names. Exactly one of url, command
// and demo is set.
type target struct {
	url     *url.URL
	command *stdio.Command
	demo    bool
	header  http.Header
	binding streamable.Binding // of the URL
	era     mcp.Era
	timeout time.Duration
}

// transport names the way to the target.
func (t *target) transport() string {
	switch {
	case t.demo:
		return "in process"
	case t.url != nil:
		return "http"
	}
	return "stdio"
}

// String returns the target as it may be shown: without passwords.
func (t *target) String() string {
	if t.demo {
		return demoTarget
	}
	if t.url == nil {
		return strings.Join(append([]string{t.command.Path}, t.command.Args...), " ")
	}
	shown := *t.url
	query := shown.Query()
	for name := range query {
		if isSecret(name) {
			query.Set(name, "xxxxx")
			shown.RawQuery = query.Encode()
		}
	}
	return shown.Redacted()
}

// targetFlags are the flags that say how to reach a target.
type targetFlags struct {
	headers   []string
	transport string
	env       []string
	cwd       string
	era       string
	timeout   time.Duration
}

func (f *targetFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "send the header `'Name: value'` to an HTTP server (repeatable)")
	fs.StringVar(&f.transport, "transport", "auto", "`TRANSPORT` of an HTTP server: http (Streamable HTTP), sse\n(HTTP with SSE), or auto: the first of them that it has")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "give the command the variable `KEY=VALUE` (repeatable); of our\nown variables it gets only PATH, HOME, LANG and the like")
	fs.StringVar(&f.cwd, "cwd", "", "run the command in `DIR`")
	fs.StringVar(&f.era, "era", "auto", "`ERA` of the server's protocol: modern (2026-07-28), legacy\n(what was before), or auto")
}

// target returns the target that the arguments of a command name, nil if they
// name none.
func (f *targetFlags) target(cmd *cobra.Command, args []string) (*target, error) {
	before, command, err := splitCommand(cmd, args)
	switch {
	case err != nil:
		return nil, err
	case len(before) > 0 && command != nil:
		return nil, usagef("", "name one server: %q, or the command after --", before[0])
	case len(before) > 1 && (before[0] == demoTarget || strings.Contains(before[0], "://")):
		return nil, usagef("", "one target was expected; what is %q?", before[1])
	case len(before) > 1:
		return nil, usagef("a command stands after --: "+cmd.CommandPath()+" -- "+strings.Join(before, " "),
			"one target was expected, not %d", len(before))
	case len(before) == 0 && command == nil:
		return nil, f.unused(cmd, "needs a server: a URL, or a command after --",
			"header", "transport", "env", "cwd", "timeout", "isolation",
			"max-connections", "idle", "turn-wait")
	case command != nil:
		return f.commandTarget(cmd, command)
	}
	return f.namedTarget(cmd, before[0], "to start a server write "+cmd.CommandPath()+" -- "+before[0])
}

// targetAnd returns the target that the arguments of a command begin or end with,
// and the other arguments.
func (f *targetFlags) targetAnd(cmd *cobra.Command, args []string) (*target, []string, error) {
	before, command, err := splitCommand(cmd, args)
	switch {
	case err != nil:
		return nil, nil, err
	case command == nil && len(before) == 0:
		return nil, nil, usagef(exampleOf(cmd), "no server is named")
	case command == nil:
		hint := "a command that starts a server stands at the end, after --, as in " + cmd.CommandPath() + " ... -- COMMAND ARGS..."
		if cmd.Name() == "ls" {
			hint = "to start a server write " + cmd.CommandPath() + " -- " + strings.Join(before, " ")
		}
		t, err := f.namedTarget(cmd, before[0], hint)
		return t, before[1:], err
	case len(before) > 0 && strings.Contains(before[0], "://") && strings.HasPrefix(before[0], "http"):
		return nil, nil, usagef("", "name one server: %q, or the command after --", before[0])
	}
	t, err := f.commandTarget(cmd, command)
	return t, before, err
}

// splitCommand returns the arguments before "--", and the command after it, nil
// if there is no "--".
func splitCommand(cmd *cobra.Command, args []string) (before, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil, nil
	}
	if dash == len(args) {
		return nil, nil, usagef("", "there is no command after --")
	}
	return args[:dash], args[dash:], nil
}

func (f *targetFlags) commandTarget(cmd *cobra.Command, words []string) (*target, error) {
	era, err := parseEra(f.era)
	if err != nil {
		return nil, err
	}
	if err := f.unused(cmd, "is for HTTP servers", "header", "transport"); err != nil {
		return nil, err
	}
	command, err := f.command(words)
	if err != nil {
		return nil, err
	}
	return &target{command: command, era: era, timeout: f.timeout}, nil
}

// namedTarget returns the target that one word names. Hint is for words that name
// none.
func (f *targetFlags) namedTarget(cmd *cobra.Command, word, hint string) (*target, error) {
	if word == demoTarget {
		err := f.unused(cmd, "is not for the demo, which is a part of this program", "header", "transport", "env", "cwd", "era")
		return &target{demo: true, timeout: f.timeout}, err
	}
	era, err := parseEra(f.era)
	if err != nil {
		return nil, err
	}
	if err := f.unused(cmd, "is for servers that a command starts", "env", "cwd"); err != nil {
		return nil, err
	}
	binding, err := parseBinding(f.transport, era)
	if err != nil {
		return nil, err
	}
	if near := meant(word); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	u, err := parseTarget(word, hint)
	if err != nil {
		return nil, err
	}
	header, err := parseHeaders(f.headers)
	if err != nil {
		return nil, err
	}
	return &target{url: u, header: header, binding: binding, era: era, timeout: f.timeout}, nil
}

// unused refuses flags that were given and would have no effect.
func (f *targetFlags) unused(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("", "--%s %s", name, why)
		}
	}
	return nil
}

func (f *targetFlags) command(words []string) (*stdio.Command, error) {
	if words[0] == "" {
		return nil, usagef("", "the command after -- is empty")
	}
	if f.cwd != "" {
		if info, err := os.Stat(f.cwd); err != nil {
			return nil, usagef("", "--cwd: %w", err)
		} else if !info.IsDir() {
			return nil, usagef("", "--cwd: %s is no directory", f.cwd)
		}
	}
	env := make(map[string]string, len(f.env))
	for _, variable := range f.env {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" {
			// The text may be a secret that lost its name.
			return nil, usagef("", "--env must be KEY=VALUE")
		}
		env[name] = value
	}
	return &stdio.Command{Path: words[0], Args: words[1:], Dir: f.cwd, Env: env}, nil
}

func parseEra(text string) (mcp.Era, error) {
	switch text {
	case "auto":
		return mcp.NoEra, nil
	case "legacy":
		return mcp.Legacy, nil
	case "modern":
		return mcp.Modern, nil
	}
	return mcp.NoEra, usagef("", "--era must be auto, legacy or modern, not %q", text)
}

func parseBinding(text string, era mcp.Era) (streamable.Binding, error) {
	switch binding := streamable.Binding(text); {
	case text == "auto":
		return streamable.AnyBinding, nil
	case binding == streamable.HTTPWithSSE && era == mcp.Modern:
		return "", usagef("", "--transport sse has legacy revisions only, not --era modern")
	case binding == streamable.StreamableHTTP, binding == streamable.HTTPWithSSE:
		return binding, nil
	}
	return "", usagef("", "--transport must be auto, http or sse, not %q", text)
}

// hostAndMore matches what would be a URL with http:// before it.
var hostAndMore = regexp.MustCompile(`^(localhost|[\w-]+(\.[\w-]+)+|[\w-]+:\d+|\[[\d:a-f]+\])(:\d+)?(/|$)`)

// meant returns the target that was meant by a word that is none, empty if nobody
// can tell. The name of a file is that of a program.
func meant(word string) string {
	if len(nearest(word, []string{demoTarget})) > 0 {
		return demoTarget
	}
	if _, err := os.Stat(word); err == nil || !hostAndMore.MatchString(word) {
		return ""
	}
	return "http://" + word
}

func parseTarget(text, hint string) (*url.URL, error) {
	scheme, _, hasScheme := strings.Cut(text, ":")
	if !hasScheme || strings.ContainsAny(scheme, "/.[") || hostAndMore.MatchString(text) {
		return nil, usagef(hint, "%q is no URL", text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, usagef("", "%q is no URL: %w", text, err.(*url.Error).Err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, usagef("http and https can be reached, and commands after --", "cannot reach a server by %q", u.Scheme)
	case u.Host == "":
		return nil, usagef("", "%q names no host", text)
	case !isPort(u.Port()):
		return nil, usagef("", "%q has a port beyond 65535", text)
	}
	return u, nil
}

// isPort reports whether a URL may have a port, which is a number or empty.
func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil
}

// parseHeaders returns the headers that lines like "Name: value" say. An error
// does not repeat a value, which may be a secret.
func parseHeaders(lines []string) (http.Header, error) {
	header := make(http.Header, len(lines))
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, usagef("", "--header must be 'Name: value'")
		case name == "" || strings.ContainsFunc(name, notInToken):
			return nil, usagef("", "--header: %q is no name of a header", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			return nil, usagef("", "--header: the value of %s holds a line break", name)
		}
		header.Add(name, value)
	}
	return header, nil
}

// notInToken reports whether a rune cannot be part of a header's name (RFC
// 9110, 5.6.2).
func notInToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
