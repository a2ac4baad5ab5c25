package cli

import (
	"context"
	"log/slog"
	"strings"
)

// What is logged ends with leftOut if it is of something that no list shows, and begins
// with interrupted if changes are not told for a while.
const (
	leftOut     = "left out of the list"
	interrupted = "listening was interrupted"
)

// warnings takes what a client logs, and tells people what they would miss
// otherwise: a tool whose header annotations are invalid, and what cannot be read, is
// in no list; and over HTTP nothing else shows that a server has gone which is watched.
type warnings struct{ app *app }

// Enabled implements slog.Handler.
func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	said := make(map[string]string)
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		if err, ok := a.Value.Any().(error); ok {
			said[a.Key] = innermost(err)
		}
		return true
	})
	switch {
	case strings.HasSuffix(r.Message, leftOut):
		w.app.notice("%q is left out of the list: %s", clean(said["name"]), clean(said["err"]))
	case strings.HasPrefix(r.Message, interrupted):
		w.app.notice("%s: %s", r.Message, clean(said["err"]))
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(string) slog.Handler { return w }
