package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// This file is about what serve logs of a server that fails: each failure once.

// errNotDialed says of the failure of a call that there was no connection for it. Why, the
// pool has logged when it failed to make one.
var errNotDialed = errors.New("there is no connection")

// A dialError is why there is no connection.
type dialError struct{ error }

func (e *dialError) Unwrap() error      { return e.error }
func (*dialError) Is(target error) bool { return target == errNotDialed }

// logFailures returns next with a line in the log for each call that the server
// did not answer: what the client is told of it leaves out whatever may be
// nobody else's business.
func logFailures(next mcp.Handler, logger *slog.Logger) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
		result, err := next.Handle(ctx, req, caller)
		if e, ok := errors.AsType[*mcp.CallError](err); ok && e.Kind != mcp.Cancelled {
			level := slog.LevelWarn
			if errors.Is(err, errNotDialed) {
				level = slog.LevelDebug
			}
			logger.Log(ctx, level, "a call failed", "method", req.Method, "err", err)
		}
		return result, err
	})
}

// tellMissing tells of a command that cannot be started as things are, long before a
// client wants it. It may be there by then; if it is not, that is logged again from the
// second attempt on.
func (o *serveOptions) tellMissing() {
	if o.target == nil || o.target.command == nil {
		return
	}
	if _, err := o.target.command.Find(); err != nil {
		o.told.set(err)
		o.logger.Warn("the server's command cannot be started now", "err", err, "hint", notStarted(o.target.command, err).hint)
	}
}

// A knownFailure is one that people have been told of. It is safe for concurrent use.
type knownFailure struct{ text atomic.Pointer[string] }

func (f *knownFailure) set(err error) {
	text := err.Error()
	f.text.Store(&text)
}

// takes reports whether err is the failure that was told, once.
func (f *knownFailure) takes(err error) bool {
	text := f.text.Load()
	return text != nil && strings.HasSuffix(err.Error(), *text) && f.text.CompareAndSwap(text, nil)
}

// A failureLog is a handler that adds to a line about a connection that was not made the
// way out, and leaves out the next line about a failure that was told.
type failureLog struct {
	slog.Handler
	told *knownFailure
	hint func(error) string
}

// WithAttrs implements slog.Handler.
func (h failureLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h failureLog) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// Handle implements slog.Handler.
func (h failureLog) Handle(ctx context.Context, r slog.Record) error {
	var failure error
	r.Attrs(func(a slog.Attr) bool {
		failure, _ = a.Value.Any().(error)
		return failure == nil
	})
	if failure == nil || !errors.Is(failure, errNotDialed) || r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	if h.told.takes(failure) {
		return nil
	}
	if hint := h.hint(failure); hint != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("hint", clean(hint)))
	}
	return h.Handler.Handle(ctx, r)
}
