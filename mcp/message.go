package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// A Request is a request, or a notification of a client, on its way to a
// server. It is not changed once it has been handed to a [Handler].
type Request struct {
	Method string
	// ID is the id that the client gave it, for logs; absent in a notification
	// and in what was made in this process.
	ID jsonrpc.ID
	// Params are the params as they came, absent if there were none. They may
	// still hold reserved keys in _meta; Meta says what counts.
	Params jsonrpc.Value
	// Notification says that the message has no id and gets no answer.
	Notification bool
	Meta         Metadata
}

// Metadata is what a request says about itself and whoever made it: in modern
// revisions the reserved keys of its _meta, in legacy ones what the session
// knows.
type Metadata struct {
	Revision      Revision   // of the wire that it came over; empty if made in this process
	Client        []byte     // Implementation of the client as JSON; nil if not told
	Capabilities  []byte     // ClientCapabilities as JSON; nil if not told
	LogLevel      Level      // least severe log message wanted; empty for none
	ProgressToken jsonrpc.ID // absent if no progress is wanted
	Principal     Principal  // who it is for certain
	// Grant tells apart what one principal may be shown: it is a digest of the access
	// token, empty if there is none. Results that are kept are kept for one grant
	// (2026-07-28, server/utilities/caching, Cache Scope Field).
	Grant string
	// Session names the legacy session or the byte-stream connection that the
	// request came over; empty if it stands for itself. It is a secret.
	Session string
	// Headers are Mcp-Param-* headers that this process does not know, to be
	// forwarded; nil if there are none. Keys are canonical header names.
	Headers map[string]string
	// TakesTasks says that whoever made the request awaits a task that it results
	// in (ExtensionTasks), for a client that cannot. Modern edges declare that.
	TakesTasks bool
}

// ClientKey returns a short text that is the same for requests of one client, as
// far as can be told: of one session or connection, or else of one principal with
// one Implementation.
func (m *Metadata) ClientKey() string {
	if m.Session != "" {
		return m.Session
	}
	// Quoted, so that no name can reach into the next one.
	return strconv.Quote(m.Principal.Issuer) + strconv.Quote(m.Principal.Subject) + shortened(m.Client)
}

// maxKeyPart is how long an Implementation may be to be a part of a key itself: keys are
// kept beyond their requests.
const maxKeyPart = 512

func shortened(client []byte) string {
	if len(client) <= maxKeyPart {
		return string(client)
	}
	sum := sha256.Sum256(client)
	return hex.EncodeToString(sum[:]) // which no JSON object is
}

// A Principal is a verified identity. The zero Principal is the anonymous one.
type Principal struct {
	Issuer  string
	Subject string
}

// NewRequest returns a request whose params are encoded from params: nil for
// none, a [jsonrpc.Value] as it is, anything else by encoding/json's rules.
func NewRequest(method string, params any) (*Request, error) {
	v, err := encode(params)
	if err != nil {
		return nil, err
	}
	return &Request{Method: method, Params: v}, nil
}

// A Notification is a notification on its way to a client.
type Notification struct {
	Method string
	Params jsonrpc.Value // absent if there are none
}

// NewNotification is [NewRequest] for a notification.
func NewNotification(method string, params any) (*Notification, error) {
	v, err := encode(params)
	if err != nil {
		return nil, err
	}
	return &Notification{Method: method, Params: v}, nil
}

// A Result is the result of a request: a JSON object, as it came or as it will
// be sent. The zero Result is an empty one.
type Result struct {
	jsonrpc.Value
}

// Result types ([Result.Type]) of the protocol itself.
const (
	Complete      = "complete"
	InputRequired = "input_required"
)

// NewResult encodes v, which must encode to a JSON object, by encoding/json's
// rules.
func NewResult(v any) (Result, error) {
	value, err := encode(v)
	return Result{value}, err
}

// RawResult returns the result that raw is. The caller vouches that raw is a
// valid JSON object; a peer's bytes go through [jsonrpc.ParseValue] instead.
func RawResult(raw []byte) Result { return Result{jsonrpc.Trusted(raw)} }

// Type returns the member resultType; an absent one counts as [Complete].
func (r *Result) Type() string {
	raw, ok := r.Lookup("resultType")
	if !ok {
		return Complete
	}
	if string(raw) == `"complete"` {
		return Complete
	}
	t, _ := jsonrpc.Unquote(raw)
	return t
}

func encode(v any) (jsonrpc.Value, error) {
	switch v := v.(type) {
	case nil:
		return jsonrpc.Value{}, nil
	case jsonrpc.Value:
		return v, nil
	}
	raw, err := marshal(v)
	if err != nil {
		return jsonrpc.Value{}, err
	}
	return jsonrpc.Trusted(raw), nil
}
