package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/session"
)

// An ExitCode is how the program ends.
type ExitCode int

// The exit codes, which scripts rely on.
const (
	ExitOK           ExitCode = 0
	ExitUnexpected   ExitCode = 1
	ExitUsage        ExitCode = 2 // or configuration
	ExitUnauthorized ExitCode = 3
	ExitUnreachable  ExitCode = 4
	ExitToolError    ExitCode = 5
	ExitNotFound     ExitCode = 6 // no such tool, resource or prompt
	ExitMismatch     ExitCode = 7 // of protocol or revision
	ExitTimedOut     ExitCode = 8
	ExitInterrupted  ExitCode = 130
)

// String returns the kind of error that the code stands for.
func (c ExitCode) String() string {
	switch c {
	case ExitOK:
		return "ok"
	case ExitUsage:
		return "usage"
	case ExitUnauthorized:
		return "unauthorized"
	case ExitUnreachable:
		return "unreachable"
	case ExitToolError:
		return "tool_error"
	case ExitNotFound:
		return "not_found"
	case ExitMismatch:
		return "protocol_mismatch"
	case ExitTimedOut:
		return "timed_out"
	case ExitInterrupted:
		return "interrupted"
	}
	return "unexpected"
}

// A usageError says that the program was called in a way that cannot work.
type usageError struct {
	err  error
	hint string // the way out, if there is one
}

func usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), hint}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A timeoutError says that the time that a command may take was up.
type timeoutError struct {
	limit time.Duration
	err   error // what that ended
}

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %v: %v", e.limit, e.err) }
func (e *timeoutError) Unwrap() error { return e.err }

// A toolError says that a tool could not do what it was asked.
type toolError struct {
	tool string
	text string // what it said
}

func (e *toolError) Error() string {
	text := fmt.Sprintf("the tool %q reported an error", e.tool)
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

// A notFoundError says that a server has no feature of that name.
type notFoundError struct {
	what string // "tool"
	name string
	hint string
	err  error // of the server; nil if it was not asked
}

func (e *notFoundError) Error() string {
	text := fmt.Sprintf("the server has no %s %q", e.what, e.name)
	said, ok := errors.AsType[*jsonrpc.Error](e.err)
	if !ok || said.Code != jsonrpc.CodeInvalidParams || strings.Contains(strings.ToLower(said.Message), "not found") {
		return text
	}
	return text + ": " + said.Error() // the code may mean something else
}

func (e *notFoundError) Unwrap() error { return e.err }

// interruption is what there is to say when a signal has ended a command with err.
func interruption(err error) error {
	if e, ok := errors.AsType[*mcp.CallError](err); ok && e.Method == mcp.MethodCallTool && e.Outcome == mcp.MaybeExecuted {
		return fmt.Errorf("%w; the tool may have been called", errInterrupted)
	}
	return errInterrupted
}

// codeOf returns how the program ends with an error.
func codeOf(err error) ExitCode {
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*toolError](err); ok {
		return ExitToolError
	}
	if _, ok := errors.AsType[*notFoundError](err); ok {
		return ExitNotFound
	}
	if _, ok := errors.AsType[*timeoutError](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return ExitTimedOut
	}
	if needsAuthorization(err) {
		return ExitUnauthorized
	}
	if speaksNoMCP(err) {
		return ExitMismatch
	}
	if statusOf(err) == http.StatusForbidden {
		return ExitUnauthorized // with no challenge, but refused all the same
	}
	if status := statusOf(err); status >= 500 || status == 429 {
		return ExitUnreachable // for now
	}
	if errors.Is(err, session.ErrRevision) {
		return ExitMismatch
	}
	switch failureKind(err) {
	case mcp.Unreachable, mcp.ConnectionLost:
		return ExitUnreachable
	case mcp.TimedOut:
		return ExitTimedOut
	case mcp.BadReply, mcp.Unsupported:
		return ExitMismatch
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch e.Code {
		case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound,
			jsonrpc.CodeHeaderMismatch, jsonrpc.CodeUnsupportedVersion:
			return ExitMismatch
		}
	}
	return ExitUnexpected
}

// failureKind returns how a call failed: ours, or that of a bridge like serve, which
// says so of the server behind it. Empty if neither did.
func failureKind(err error) mcp.FailureKind {
	if e, ok := errors.AsType[*mcp.CallError](err); ok {
		return e.Kind
	}
	kind, _ := saidByBridge(err, "kind")
	return mcp.FailureKind(kind)
}

// saidByBridge returns what the error of a bridge says of a call that the server behind
// it did not answer (see mcp.CallError).
func saidByBridge(err error, name string) (string, bool) {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != jsonrpc.CodeInternalError {
		return "", false
	}
	raw, _ := e.Data.Lookup("mcpsplice")
	said := jsonrpc.Trusted(raw)
	return said.LookupString(name)
}

// hintOf returns the way out of an error where we know one.
func hintOf(err error) string {
	if e, ok := errors.AsType[*usageError](err); ok {
		return e.hint
	}
	if e, ok := errors.AsType[*notFoundError](err); ok {
		return e.hint
	}
	if pages := pagesOf(err); pages != "" {
		return "visit " + pages + " if you trust it, then call again"
	}
	switch outcome, _ := saidByBridge(err, "outcome"); mcp.Outcome(outcome) {
	case mcp.NotSent:
		return "the server behind the bridge did not get the call; the bridge logs why"
	case mcp.MaybeExecuted:
		return "the server behind the bridge may have executed the call; the bridge logs what happened"
	}
	if rest := restOf(err); rest > 0 {
		return "the server wants to be left alone for " + rest.Round(time.Second).String()
	}
	switch code := codeOf(err); {
	case statusOf(err) == http.StatusForbidden:
		return `the server refuses this client; if it wants a token, give one with -H "Authorization: Bearer TOKEN"`
	case code == ExitUnauthorized:
		return `give a token with -H "Authorization: Bearer TOKEN"`
	case statusOf(err) == http.StatusNotFound, statusOf(err) == http.StatusMethodNotAllowed:
		return "is the path right? that of an endpoint is often /mcp"
	case isWebPage(err) && code != ExitUnreachable:
		return "that is a web page: is the path right? that of an endpoint is often /mcp"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server speaks http, not https"
	case isUntrusted(err):
		return "if you trust whoever made the certificate, SSL_CERT_FILE=FILE names it (not on macOS and Windows, which keep their own)"
	case lacksCapability(err, "roots"):
		return "--root DIR tells the server which directory it may work on"
	case lacksCapability(err, "sampling"):
		return "mcpsplice has no model that a server could ask"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at that address: is the server running?"
	case code == ExitTimedOut:
		return "--timeout gives the server longer"
	}
	return ""
}

// hint returns the way out of an error, with what is known of the command line.
func (a *app) hint(err error) string {
	if a.authorized && codeOf(err) == ExitUnauthorized {
		return "the server does not accept what -H gives it as Authorization"
	}
	return cmp.Or(diagnose(err).hint, hintOf(err))
}

// isUntrusted reports whether a server has a certificate whose maker is not known.
func isUntrusted(err error) bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// lacksCapability reports whether a server needs a capability of its clients that we
// have not declared.
func lacksCapability(err error, name string) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != jsonrpc.CodeMissingCapability {
		return false
	}
	required, _ := e.Data.Lookup("requiredCapabilities")
	all := jsonrpc.Trusted(required)
	_, ok = all.Lookup(name)
	return ok
}

// pagesOf returns the addresses of the pages that a legacy server wants to be
// visited before it makes a call (2025-11-25, client/elicitation, URL Elicitation
// Required Error).
func pagesOf(err error) string {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != jsonrpc.CodeURLElicitationRequired {
		return ""
	}
	var pages []string
	raw, _ := e.Data.Lookup("elicitations")
	for _, item := range jsonrpc.Elements(raw) {
		page := jsonrpc.Trusted(item)
		if address, ok := page.LookupString("url"); ok {
			pages = append(pages, shorten(address, maxText))
		}
	}
	return strings.Join(pages, " and ")
}

// fail says what went wrong, to people or as one line of JSON: in plain words, if we
// have any, and the exact cause.
func (a *app) fail(err error, code ExitCode) {
	exact := strings.Map(printable, strings.ReplaceAll(err.Error(), "\n", "; "))
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && jsonrpc.FromPeer(err) && answer.Error() == err.Error() {
		exact = "the server answers with an error: " + exact
	}
	text, cause := exact, ""
	if said := diagnose(err).said; said != "" && code != ExitInterrupted {
		text, cause = strings.Map(printable, said), exact
	}
	if a.asJSON {
		a.failAsJSON(failure{code.String(), text, cause, a.hint(err), code})
		return
	}
	if code == ExitInterrupted {
		a.notice("%s", text)
		return
	}
	a.notice("error: %s", text)
	if cause != "" {
		a.notice("cause: %s", cause)
	}
	if hint := a.hint(err); hint != "" {
		a.notice("hint: %s", clean(hint))
	}
}

// A failure is an error as scripts read it.
type failure struct {
	Kind    string   `json:"kind"`
	Message string   `json:"message"`
	Cause   string   `json:"cause,omitzero"` // exactly, if the message says it in other words
	Hint    string   `json:"hint,omitzero"`
	Code    ExitCode `json:"code"`
}

func (a *app) failAsJSON(f failure) {
	a.errLine(struct {
		Error failure `json:"error"`
	}{f})
}

// errLine writes a value to stderr as one line of JSON.
func (a *app) errLine(v any) {
	raw, err := mcp.NewJSON(v)
	if err != nil {
		raw = mcp.JSON("{}") // which no value of ours becomes
	}
	// Whom stderr does not reach cannot be told so.
	_, _ = a.Err.Write(append(raw, '\n'))
}
