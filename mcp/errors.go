package mcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	json "github.com/go-json-experiment/json"
)

// Conditions that callers branch on.
var (
	// ErrCannotAsk says that whoever made a request cannot be asked.
	ErrCannotAsk = errors.New("the caller cannot be asked")
	// ErrClosed says that a connection was closed by this process.
	ErrClosed = errors.New("connection closed")
)

// An Outcome says what is known of a call that ended without an answer.
type Outcome string

// The outcomes.
const (
	NotSent       Outcome = "not sent"       // no byte of it reached the peer
	MaybeExecuted Outcome = "maybe executed" // it was sent; the peer may have acted
	Answered      Outcome = "answered"       // the peer answered, with something unusable
)

// A FailureKind says how a call failed on our side of the wire.
type FailureKind string

// The kinds of failures.
const (
	Cancelled      FailureKind = "cancelled"       // whoever asked no longer wants it
	TimedOut       FailureKind = "timed out"       // its deadline passed
	ConnectionLost FailureKind = "connection lost" // the link to the peer ended
	Unreachable    FailureKind = "unreachable"     // there was no link
	BadReply       FailureKind = "bad reply"       // the peer's answer was no answer
	LimitExceeded  FailureKind = "limit exceeded"  // a limit of ours was reached
	Unsupported    FailureKind = "unsupported"     // the other side's revision cannot do it
)

// A CallError is the failure of a call that the peer did not answer with an
// error of its own.
type CallError struct {
	Method  string
	Kind    FailureKind
	Outcome Outcome
	Limit   string // name of the limit, with LimitExceeded
	Err     error  // the cause; may hold what a remote peer is not to be told
	// Public is what a remote peer may be told besides kind and outcome.
	Public string
}

// Error says which call failed, how, and what is known of it.
func (e *CallError) Error() string {
	var b strings.Builder
	if e.Method != "" {
		b.WriteString(e.Method + ": ")
	}
	b.WriteString(string(e.Kind))
	if e.Limit != "" {
		b.WriteString(" (" + e.Limit + ")")
	}
	if e.Outcome != "" {
		fmt.Fprintf(&b, ", %s", e.Outcome)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	} else if e.Public != "" {
		b.WriteString(": " + e.Public)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// ToWire returns the error as a peer is told it: CodeInternalError, with kind,
// outcome and limit in data.mcpsplice, so that it cannot be mistaken for an
// error of a server behind us.
func (e *CallError) ToWire() *jsonrpc.Error {
	data, err := json.Marshal(struct {
		Mcpsplice wireFailure `json:"mcpsplice"`
	}{wireFailure{e.Kind, e.Outcome, e.Limit}})
	if err != nil {
		data = nil
	}
	message := "Internal error: " + string(e.Kind)
	if e.Public != "" {
		message += ": " + e.Public
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message, Data: jsonrpc.Trusted(data)}
}

type wireFailure struct {
	Kind    FailureKind `json:"kind"`
	Outcome Outcome     `json:"outcome,omitempty"`
	Limit   string      `json:"limit,omitempty"`
}

// OutcomeOf returns what err says about whether the call reached the peer, and
// Answered for a peer's own error.
func OutcomeOf(err error) Outcome {
	if e, ok := errors.AsType[*CallError](err); ok {
		return e.Outcome
	}
	if jsonrpc.FromPeer(err) {
		return Answered
	}
	return MaybeExecuted
}

// Begun returns err as the failure of a call that consists of several requests, of which
// the peer has had one before: if the last one was not sent, the call may have been
// executed nevertheless.
func Begun(err error) error {
	e, ok := errors.AsType[*CallError](err)
	if !ok || e.Outcome != NotSent {
		return err
	}
	begun := *e
	begun.Outcome = MaybeExecuted
	return &begun
}

// UnsupportedRevision returns the error of a request whose revision is not
// served (2026-07-28, basic/versioning).
func UnsupportedRevision(requested Revision, supported []Revision) *jsonrpc.Error {
	data, err := json.Marshal(struct {
		Supported []Revision `json:"supported"`
		Requested Revision   `json:"requested"`
	}{supported, Revision(strings.ToValidUTF8(string(requested), "\uFFFD"))}) // a header may hold any byte
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeUnsupportedVersion,
		Message: "Unsupported protocol version",
		Data:    jsonrpc.Trusted(data),
	}
}

// IsModernError reports whether err is one of the errors that only a modern
// server sends.
func IsModernError(err *jsonrpc.Error) bool {
	switch err.Code {
	case jsonrpc.CodeHeaderMismatch, jsonrpc.CodeMissingCapability:
		return true
	case jsonrpc.CodeUnsupportedVersion:
		return len(SupportedIn(err)) > 0
	}
	return false
}

// SupportedIn returns the revisions that an unsupported-version error lists.
func SupportedIn(err *jsonrpc.Error) []Revision {
	supported, _ := err.Data.Lookup("supported")
	return readRevisions(supported)
}

func readRevisions(raw []byte) []Revision {
	var revisions []Revision
	for _, item := range jsonrpc.Elements(raw) {
		if text, ok := jsonrpc.Unquote(item); ok {
			revisions = append(revisions, Revision(text))
		}
	}
	return revisions
}
