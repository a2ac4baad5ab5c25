package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Call is one request of a client, and the way back to it. It is valid until
// the function that it was given to returns; its methods may be called
// concurrently.
type Call struct {
	ctx    context.Context // of this one call, for records that are logged without one
	server *Server
	req    *mcp.Request
	caller mcp.Caller
	over   atomic.Bool

	opened   sync.Once // guards what follows
	state    []byte
	stateErr error
}

// errOver is the error of whoever uses a call that has returned.
var errOver = errors.New("the call is over")

// Request returns the request. It must not be changed, and parts of it must be
// copied to be kept.
func (c *Call) Request() *mcp.Request { return c.req }

// Principal returns who the client is for certain.
func (c *Call) Principal() mcp.Principal { return c.req.Meta.Principal }

// Client returns the name and version that the client gives itself, the zero
// value if it gives none. They are not verified.
func (c *Call) Client() mcp.Implementation {
	var client mcp.Implementation
	if mcp.JSON(c.req.Meta.Client).Decode(&client) != nil {
		return mcp.Implementation{}
	}
	return client
}

// Capabilities returns what the client has declared to have.
func (c *Call) Capabilities() mcp.ClientCapabilitySet {
	var set mcp.ClientCapabilitySet
	if mcp.JSON(c.req.Meta.Capabilities).Decode(&set) != nil {
		return mcp.ClientCapabilitySet{}
	}
	return set
}

// Meta returns a member of the request's _meta, nil if there is none.
func (c *Call) Meta(name string) mcp.JSON {
	meta := c.req.Params.Get("_meta")
	raw, ok := meta.Lookup(name)
	if !ok {
		return nil
	}
	return bytes.Clone(raw)
}

// Arguments returns the arguments of a tool or prompt as they came, {} if there
// are none. They are a part of the request, and must be copied to be kept.
func (c *Call) Arguments() mcp.JSON {
	raw, ok := c.req.Params.Lookup("arguments")
	if !ok || string(raw) == "null" {
		return mcp.JSON("{}")
	}
	return raw
}

// Notify sends the client a notification about the request, with params encoded
// as by [mcp.NewJSON], to an object; nil for none.
func (c *Call) Notify(ctx context.Context, method string, params any) error {
	if c.over.Load() {
		return errOver
	}
	n := &mcp.Notification{Method: method}
	if params != nil {
		raw, err := mcp.NewJSON(params)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		if raw[0] != '{' {
			return fmt.Errorf("%s: params must be an object, not %.40s", method, raw)
		}
		n.Params = jsonrpc.Trusted(raw)
	}
	return c.caller.Notify(ctx, n)
}

// Progress tells the client how far the call is, if it wants to know. Progress
// must grow from call to call; a total of 0 stands for an unknown one, and
// message may be empty.
func (c *Call) Progress(ctx context.Context, progress, total float64, message string) error {
	token := c.req.Meta.ProgressToken
	if token.IsZero() {
		return nil
	}
	params := mcp.ProgressParams{ProgressToken: token.Raw(), Progress: progress, Message: message}
	if total != 0 {
		params.Total = &total
	}
	return c.Notify(ctx, mcp.NotificationProgress, params)
}

// Log sends the client a log message, if it wants one of that level. Data is any
// JSON value; logger, which may be empty, names the part of the server.
func (c *Call) Log(ctx context.Context, level mcp.Level, logger string, data any) error {
	if !level.Valid() {
		return fmt.Errorf("%.40q is not a log level", level)
	}
	if !c.wants(level) {
		return nil
	}
	raw, err := mcp.NewJSON(data)
	if err != nil {
		return err
	}
	return c.Notify(ctx, mcp.NotificationMessage, mcp.LogParams{Level: level, Logger: logger, Data: raw})
}

// wants reports whether the client wants log messages of a level. To a legacy
// client that has set no level "the server MAY decide" (2025-11-25,
// server/utilities/logging).
func (c *Call) wants(level mcp.Level) bool {
	wanted := c.req.Meta.LogLevel
	if wanted == "" && !isModern(c.req) {
		wanted = "info"
	}
	return wanted.Includes(level)
}

// Logger returns a logger whose records go to the client, as objects with the
// record's message, "msg", and attributes. It waits for a client that is slow, no
// longer than the call lasts. What it logs when the call is over is lost.
func (c *Call) Logger(name string) *slog.Logger {
	return slog.New(&logHandler{call: c, name: name})
}

// Release lets go of the client's connection until it comes back for the rest of
// the call's messages, where the client's revision can do that (2025-11-25 over
// HTTP). Elsewhere it does nothing.
func (c *Call) Release(ctx context.Context) error {
	if c.over.Load() {
		return errOver
	}
	return mcp.Release(ctx, c.caller, 0)
}

// invalid returns the error of a request whose params are wrong.
func invalid(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: "+format, args...)
}
