package commitlog

import (
	"fmt"

	"github.com/gregor-kafka/gregor/internal/record"
)

// appendMessagesLocked appends a set of format v0 or v1: what message.format.version asks
// for. Messages know neither producers nor leader epochs, so what the epoch cache says
// would be wrong for them: it is cleared, as for a follower.
func (l *Log) appendMessagesLocked(v *record.Validated, o AppendOptions, c *Config) (AppendInfo, error) {
	first, err := l.firstOffsetOf(v)
	if err != nil {
		return AppendInfo{}, err
	}
	if err := v.Stamp(first, -1); err != nil {
		return AppendInfo{}, err
	}
	if len(v.Set) > c.SegmentBytes {
		return AppendInfo{}, fmt.Errorf("%w: %d bytes, %d allowed", ErrRecordListTooLarge, len(v.Set), c.SegmentBytes)
	}
	s := stampedSet{
		bytes:        v.Set,
		first:        first,
		last:         first + int64(v.LastOffsetDelta),
		maxTimestamp: v.MaxTimestamp,
		count:        v.Count,
		commits:      o.Commits,
	}
	l.epochs.clear()
	info, err := l.writeLocked(&s, c)
	info.LogAppendTime, info.Converted = v.LogAppendTime, v.Converted
	return info, err
}
