package client

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Start is a place in a log: its beginning, its end, an offset, a distance from the
// end, or a time.
type Start struct {
	kind   startKind
	offset int64 // an offset, or records before the end
	time   time.Time
}

type startKind int

const (
	startBeginning startKind = iota
	startEnd
	startOffset
	startTime
)

// ParseStart reads "beginning", "end", an offset ("42"), records before the end
// ("-10"), a duration before now ("90m", "36h"), or a time ("2026-11-30",
// "2026-11-30T08:00:00Z", "@1700000000000" in milliseconds).
func ParseStart(s string, now time.Time) (Start, error) {
	switch s {
	case "beginning":
		return Start{kind: startBeginning}, nil
	case "end":
		return Start{kind: startEnd}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 0 {
			return Start{kind: startEnd, offset: -n}, nil
		}
		return Start{kind: startOffset, offset: n}, nil
	}
	if ms, ok := strings.CutPrefix(s, "@"); ok {
		if n, err := strconv.ParseInt(ms, 10, 64); err == nil && n >= 0 {
			return Start{kind: startTime, time: time.UnixMilli(n)}, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil {
		return Start{kind: startTime, time: now.Add(-d)}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return Start{kind: startTime, time: t}, nil
		}
	}
	return Start{}, fmt.Errorf("%q is no place in a log: want beginning, end, an offset (42), records before the end (-10), "+
		"a duration before now (90m) or a time (2026-11-30, 2026-11-30T08:00:00Z, @1700000000000)", s)
}

// list asks for the offsets that belong to a time; nil if no time is involved.
func (s Start) list(ctx context.Context, admin *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	if s.kind != startTime {
		return nil, nil
	}
	return admin.ListOffsetsAfterMilli(ctx, s.millis(), topic)
}

// millis is the time as the protocol has it, where negative numbers have other meanings.
func (s Start) millis() int64 { return max(s.time.UnixMilli(), 0) }

// in is the offset to start at in a partition that holds [earliest, latest); at is the
// broker's answer for the time.
func (s Start) in(earliest, latest, at int64) int64 {
	switch s.kind {
	case startBeginning:
		return earliest
	case startEnd:
		return max(earliest, latest-s.offset)
	case startOffset:
		return min(max(earliest, s.offset), latest)
	}
	if at < 0 {
		return latest
	}
	return at
}

// reset is where a consumer group without committed offsets begins.
func (s Start) reset() kgo.Offset {
	switch s.kind {
	case startBeginning:
		return kgo.NewOffset().AtStart()
	case startEnd:
		return kgo.NewOffset().AtEnd().Relative(-s.offset)
	case startOffset:
		return kgo.NewOffset().At(s.offset)
	}
	return kgo.NewOffset().AfterMilli(s.millis())
}
