package quorum

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// newRaftLogger passes raft's warnings and errors on to logger; what raft says in the normal
// course of a start is left out.
func newRaftLogger(logger *slog.Logger, now func() time.Time) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level: hclog.Warn, Output: &lineLogger{logger: logger, now: now, said: map[string]*saying{}}, DisableTime: true,
	})
}

// A lineLogger logs each line that is written to it. What raft says of every attempt to reach a voter that is
// away it says once in repeatAfter.
type lineLogger struct {
	logger *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	said map[string]*saying // by what stays the same from one attempt to the next
}

// A saying is what is known of a line that may come again.
type saying struct {
	at     time.Time // when it was logged
	silent int       // how often it came since
}

const (
	repeatAfter = time.Minute
	sayingsMax  = 64 // voters times kinds of lines; all are forgotten when there are more
)

var _ io.Writer = (*lineLogger)(nil)

// Write implements io.Writer.
func (l *lineLogger) Write(b []byte) (int, error) {
	level, line := slog.LevelWarn, strings.TrimSpace(string(b))
	if rest, ok := strings.CutPrefix(line, "[ERROR]"); ok {
		level, line = slog.LevelError, rest
	}
	line = strings.TrimSpace(strings.TrimPrefix(line, "[WARN]"))
	if repeated, due := l.due(constant(line)); due {
		attrs := []slog.Attr{slog.String("from", "raft")}
		if repeated > 0 {
			attrs = append(attrs, slog.Int("repeated", repeated))
		}
		l.logger.LogAttrs(context.Background(), level, line, attrs...)
	}
	return len(b), nil
}

// due reports whether a line is to be logged, and how often it was not since it was.
func (l *lineLogger) due(what string) (repeated int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	s := l.said[what]
	if s != nil && now.Sub(s.at) < repeatAfter {
		s.silent++
		return 0, false
	}
	if s == nil {
		if len(l.said) >= sayingsMax {
			clear(l.said)
		}
		s = &saying{}
		l.said[what] = s
	}
	repeated, s.at, s.silent = s.silent, now, 0
	return repeated, true
}

// constant is a line without what is new at each attempt: it stands behind the name of the voter.
func constant(line string) string {
	for _, key := range []string{" error=", " time=", " backoff", " term=", " last-leader"} {
		if before, _, found := strings.Cut(line, key); found {
			line = before
		}
	}
	return line
}
