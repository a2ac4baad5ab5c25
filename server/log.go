package server

import (
	"context"
	"log/slog"
	"math"
	"slices"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A logHandler sends log records to a client.
type logHandler struct {
	call   *Call
	name   string
	group  string      // prefix of the names of attributes
	fields []slog.Attr // with their prefixes
}

// levelOf returns the level of the protocol for one of slog.
func levelOf(level slog.Level) mcp.Level {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warning"
	}
	return "error"
}

// Enabled implements [slog.Handler].
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return h.call.wants(levelOf(level))
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Done() == nil {
		ctx = h.call.ctx
	}
	data := map[string]any{"msg": r.Message}
	for _, field := range h.fields {
		data[field.Key] = valueOf(field.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		for _, field := range flatten(h.group, a) {
			data[field.Key] = valueOf(field.Value)
		}
		return true
	})
	return h.call.Log(ctx, levelOf(r.Level), h.name, data)
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.fields = slices.Clone(h.fields)
	for _, a := range attrs {
		with.fields = append(with.fields, flatten(h.group, a)...)
	}
	return &with
}

// WithGroup implements [slog.Handler].
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.group = h.group + name + "."
	return &with
}

// flatten returns an attribute as those of one level, named with a prefix.
func flatten(prefix string, a slog.Attr) []slog.Attr {
	value := a.Value.Resolve()
	if a.Key == "" && value.Equal(slog.Value{}) {
		return nil
	}
	if value.Kind() != slog.KindGroup {
		return []slog.Attr{{Key: prefix + a.Key, Value: value}}
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	var flat []slog.Attr
	for _, member := range value.Group() {
		flat = append(flat, flatten(prefix, member)...)
	}
	return flat
}

// valueOf returns a value that encodes as JSON.
func valueOf(v slog.Value) any {
	switch v.Kind() {
	case slog.KindBool:
		return v.Bool()
	case slog.KindInt64:
		return v.Int64()
	case slog.KindUint64:
		return v.Uint64()
	case slog.KindFloat64:
		if n := v.Float64(); !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n
		}
	case slog.KindAny:
		switch any := v.Any().(type) {
		case nil:
			return nil
		case error:
			return any.Error()
		}
		if raw, err := mcp.NewJSON(v.Any()); err == nil {
			return raw
		}
	}
	return v.String()
}
