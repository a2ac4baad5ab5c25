package cli

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	"github.com/spf13/cobra"
)

// A target is the server that a command line names. Exactly one of URL and
// Command is set.
type target struct {
	url     *url.URL
	command *stdio.Command
	header  http.Header
	binding streamable.Binding // of the URL
	era     mcp.Era
	timeout time.Duration
}

// transport names the way to the target.
func (t *target) transport() string {
	if t.url != nil {
		return "http"
	}
	return "stdio"
}

// String returns the target as it may be shown: without passwords.
func (t *target) String() string {
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
	fs.StringArrayVarP(&f.env, "env", "e", nil, "give the command the variable `KEY=VALUE` (repeatable)")
	fs.StringVar(&f.cwd, "cwd", "", "run the command in `DIR`")
	fs.StringVar(&f.era, "era", "auto", "`ERA` of the server's protocol: auto, legacy or modern")
}

// target returns the target that the arguments of a command name, nil if they
// name none.
func (f *targetFlags) target(cmd *cobra.Command, args []string) (*target, error) {
	before, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return nil, usagef("", "there is no command after --")
		}
	}
	switch {
	case len(before) > 0 && command != nil:
		return nil, usagef("", "name one server: %q, or the command after --", before[0])
	case len(before) > 1:
		return nil, usagef("a command stands after --: "+cmd.CommandPath()+" -- "+strings.Join(before, " "),
			"one target was expected, not %d", len(before))
	case len(before) == 0 && command == nil:
		return nil, f.unused(cmd, "needs a server: a URL, or a command after --",
			"header", "transport", "env", "cwd", "era", "timeout", "isolation")
	}
	t := &target{timeout: f.timeout}
	var err error
	if t.era, err = parseEra(f.era); err != nil {
		return nil, err
	}
	if command != nil {
		if err := f.unused(cmd, "is for HTTP servers", "header", "transport"); err != nil {
			return nil, err
		}
		t.command, err = f.command(command)
		return t, err
	}
	if err := f.unused(cmd, "is for servers that a command starts", "env", "cwd"); err != nil {
		return nil, err
	}
	if t.binding, err = parseBinding(f.transport, t.era); err != nil {
		return nil, err
	}
	if t.url, err = parseTarget(before[0], cmd.CommandPath()); err != nil {
		return nil, err
	}
	t.header, err = parseHeaders(f.headers)
	return t, err
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

func parseTarget(text, command string) (*url.URL, error) {
	scheme, _, hasScheme := strings.Cut(text, ":")
	if !hasScheme || strings.ContainsAny(scheme, "/.") {
		return nil, usagef("to start a server write "+command+" -- "+text, "%q is no URL", text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, usagef("", "%q is no URL: %w", text, err.(*url.Error).Err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, usagef("http and https can be reached, and commands after --", "cannot reach a server by %q", u.Scheme)
	case u.Host == "":
		return nil, usagef("", "%q names no host", text)
	}
	return u, nil
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
