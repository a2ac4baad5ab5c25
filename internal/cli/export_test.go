package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/spf13/cobra"
)

// AppendMasked is appendMasked, and CodeOf codeOf.
var (
	AppendMasked = appendMasked
	CodeOf       = codeOf
)

// Root returns the program as a command, with all others below it.
func Root() *cobra.Command {
	return newRoot(newApp(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// PoolOptions returns what flags of serve say about connections.
func PoolOptions(args ...string) (transport.PoolOptions, error) {
	var f poolFlags
	cmd := new(cobra.Command)
	f.add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return transport.PoolOptions{}, err
	}
	return f.options(cmd)
}

// GuideRequest returns the request that the guide to the demo tells people to
// make.
func GuideRequest(url string) (*http.Request, error) {
	call := newExampleCall()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	for _, line := range call.headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req, nil
}

// Guide is guide.
var Guide = guide

// OpenTrace opens a trace that writes to w, and returns its tap and its Close.
func OpenTrace(w io.Writer) (tap func(outgoing bool, message []byte), closeTrace func() error, err error) {
	t, err := openTrace("-", w)
	if err != nil {
		return nil, nil, err
	}
	return t.tap("dial"), t.Close, nil
}

// Signature returns how a tool is shown.
func Signature(tool *mcp.Tool) string { return signatureOf(tool, false) }

// Arguments returns the arguments that the words of a command line stand for, as
// a tool takes them.
func Arguments(tool *mcp.Tool, object string, words ...string) (string, error) {
	a := new(app)
	o, err := a.parseObject(object)
	if err != nil {
		return "", err
	}
	parsed, err := a.parseArguments(words)
	if err != nil {
		return "", err
	}
	input := newSchema(tool.InputSchema)
	merged, err := merge(&o, parsed, input, false)
	if err != nil {
		return "", err
	}
	return string(merged.Raw()), checkArguments(tool, &merged, input)
}

// HintOf is hintOf, and DidYouMean didYouMean.
var (
	HintOf     = hintOf
	DidYouMean = didYouMean
)

// Ask puts a question to a user who types what in holds, and shows it on out.
func Ask(ctx context.Context, in io.Reader, out io.Writer, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	c := newConsole(out)
	f := &forms{app: &app{Streams: Streams{Err: c}, console: c}, from: "test", lines: lines{in: in}, ask: true}
	return f.answer(ctx, params)
}

// FileName returns the name that content gets in a directory.
func FileName(tool, mimeType, uri string) string {
	s := &saver{base: tool}
	return s.ownName(mimeType, uri)
}

// Terminal returns what writes to w as to a terminal of some columns, what shows
// its status line, and what keeps that away.
func Terminal(w io.Writer, columns int) (write func(string), show func(string), hold func(bool)) {
	c := &console{w: w, columns: columns}
	return func(s string) { _, _ = io.WriteString(c, s) }, c.show, c.hold
}

// ProgressLine is progressLine.
var ProgressLine = progressLine

// Harmless is harmlessText, Shorten shorten, and Wrap wrap.
var (
	Harmless = harmlessText
	Shorten  = shorten
	Wrap     = wrap
)

// SaidOf is what people are told of an error of a call.
func SaidOf(err error) string { return diagnose(err).said }

// Diagnosis is what people are told of an error of connecting to an address.
func Diagnosis(address string, err error) (said, hint string) {
	u, parseErr := url.Parse(address)
	if parseErr != nil {
		return "", ""
	}
	d := diagnose(connecting(&target{url: u}, err))
	return d.said, d.hint
}

// ChildLines returns what shows the stderr of the nth connection to a program on w, and what
// shows the rest of it.
func ChildLines(w io.Writer, path string, n int64, asJSON, harmless bool) (write func(string), finish func()) {
	a := newApp(Streams{In: os.Stdin, Out: os.Stdout, Err: w})
	a.asJSON = asJSON
	lines := a.newChildLines(path, n, harmless)
	return func(s string) { _, _ = io.WriteString(lines, s) }, a.console.finish
}

// FailureLog returns a handler for what serve logs, when people have been told of a
// failure.
func FailureLog(next slog.Handler, failure error) slog.Handler {
	told := new(knownFailure)
	told.set(failure)
	return failureLog{next, told, hintOf}
}

// NotDialed returns err as that of a connection which was not made.
func NotDialed(err error) error { return &dialError{err} }
