package quorum

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// newRaftLogger passes raft's warnings and errors on to logger; what raft says in the normal
// course of a start is left out.
func newRaftLogger(logger *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level: hclog.Warn, Output: lineLogger{logger}, DisableTime: true,
	})
}

// A lineLogger logs each line that is written to it.
type lineLogger struct{ logger *slog.Logger }

var _ io.Writer = lineLogger{}

// Write implements io.Writer.
func (l lineLogger) Write(b []byte) (int, error) {
	level, line := slog.LevelWarn, strings.TrimSpace(string(b))
	if rest, ok := strings.CutPrefix(line, "[ERROR]"); ok {
		level, line = slog.LevelError, rest
	}
	line = strings.TrimSpace(strings.TrimPrefix(line, "[WARN]"))
	l.logger.Log(context.Background(), level, line, "from", "raft")
	return len(b), nil
}
