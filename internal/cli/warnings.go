package cli

import (
	"context"
	"log/slog"
	"strings"
)

// leftOut ends what is logged of something that no list shows.
const leftOut = "left out of the list"

// warnings takes what a client logs, and tells people what they would miss
// otherwise: a tool whose header annotations are invalid, and what cannot be read, is
// in no list.
type warnings struct{ app *app }

// Enabled implements slog.Handler.
func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasSuffix(r.Message, leftOut) {
		return nil
	}
	said := make(map[string]string)
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		return true
	})
	w.app.notice("%q is left out of the list: %s", clean(said["name"]), clean(said["err"]))
	return nil
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(string) slog.Handler { return w }
