package transport

import (
	"log/slog"
	"sync"
	"time"
)

// limitedLogger lets one message of each text through in a second, with the
// number of those held back, so that a noisy peer does not fill a log.
type limitedLogger struct {
	logger *slog.Logger

	mu   sync.Mutex
	last map[string]*burst // guarded by mu; few texts
}

type burst struct {
	at      time.Time
	omitted int
}

// Warn logs at the level of the same name.
func (l *limitedLogger) Warn(text string, args ...any) {
	if omitted, ok := l.admit(text); ok {
		if omitted > 0 {
			args = append(args, "omitted", omitted)
		}
		l.logger.Warn(text, args...)
	}
}

// Debug logs at the level of the same name.
func (l *limitedLogger) Debug(text string, args ...any) {
	if omitted, ok := l.admit(text); ok {
		if omitted > 0 {
			args = append(args, "omitted", omitted)
		}
		l.logger.Debug(text, args...)
	}
}

func (l *limitedLogger) admit(text string) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[string]*burst)
	}
	b := l.last[text]
	if b == nil {
		b = new(burst)
		l.last[text] = b
	}
	if now := time.Now(); now.Sub(b.at) >= time.Second {
		omitted, b.omitted, b.at = b.omitted, 0, now
		return omitted, true
	}
	b.omitted++
	return 0, false
}
