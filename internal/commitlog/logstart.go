package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// IncrementLogStart moves the log start forward, to at most the high watermark. Whole
// segments below it go with the next DeleteOldSegments.
func (l *Log) IncrementLogStart(offset int64) error {
	if err := l.prepare(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	switch {
	case offset > o.HighWatermark:
		return fmt.Errorf("%v: %w: log start %d above high watermark %d", l.partition, ErrOffsetOutOfRange, offset, o.HighWatermark)
	case offset > o.LogStart:
		l.raiseLogStartLocked(offset, o.segments)
	}
	return nil
}

// raiseLogStartLocked publishes a later log start, and a list of segments without those
// that go with it. What the epoch cache loses reaches its file with the next flush.
func (l *Log) raiseLogStartLocked(offset int64, segments []*segment.Segment) {
	l.epochs.truncateFromStart(offset)
	next := l.offsets.next()
	next.LogStart = offset
	next.segments = segments
	l.offsets.publish(next, l.mu.producers)
}

// DeleteOldSegments removes what retention allows, as of now, and returns how many
// segments went.
func (l *Log) DeleteOldSegments(now time.Time) (int, error) {
	if err := l.prepare(); err != nil {
		return 0, err
	}
	l.files.Lock()
	defer l.files.Unlock()
	o := l.offsets.Load()
	c := l.config.Load()
	stretches, err := o.stretches()
	if err != nil {
		return 0, fmt.Errorf("%v: %w", l.partition, err)
	}
	count, reason := expired(stretches, c, o.LogStart, o.HighWatermark, now)
	if count == 0 {
		return 0, nil
	}
	l.mu.Lock()
	gone, err := l.dropOldestLocked(o, count, c)
	dir := l.dirLocked()
	l.unlockRolled()
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	l.logger.Info("segments deleted", "partition", l.partition, "count", len(gone), "last", gone[len(gone)-1].BaseOffset(), "reason", reason)
	// The segment that the log now begins with may have a name that only memory knows. Without
	// it a crash in the middle would leave no file that says where the log had come to.
	if err := l.fs.SyncDir(dir); err != nil {
		return 0, l.fail("delete segments", err)
	}
	if err := l.retire(dir, gone); err != nil {
		return 0, l.fail("delete segments", err)
	}
	return len(gone), nil
}

// stretches describes the segments for the rules of retention.
func (o *Offsets) stretches() ([]stretch, error) {
	list := make([]stretch, len(o.segments))
	for i, s := range o.segments {
		largest, err := s.LargestTimestamp()
		if err != nil {
			return nil, err
		}
		list[i] = stretch{base: s.BaseOffset(), end: o.End, size: s.Size(), largest: largest, last: i == len(o.segments)-1}
		if i > 0 {
			list[i-1].end = s.BaseOffset()
		}
	}
	return list, nil
}

// dropOldestLocked takes the count oldest segments out of the list. seen is the state that
// the count was made from; what was appended since stays.
func (l *Log) dropOldestLocked(seen *Offsets, count int, c *Config) ([]*segment.Segment, error) {
	if err := l.usableLocked(); err != nil {
		return nil, err
	}
	o := l.offsets.Load()
	if count == len(o.segments) {
		if o.End != seen.End {
			count--
		} else if err := l.rollLocked(l.offsets.data, "retention", c); err == nil {
			o = l.offsets.Load()
		} else if _, full := errors.AsType[*DiskFullError](err); full && count > 1 {
			count-- // what goes first makes room for the rest
		} else {
			return nil, err
		}
	}
	gone := slices.Clone(o.segments[:count])
	for _, s := range gone {
		if err := l.mu.snapshots.remove(s.BaseOffset()); err != nil {
			return nil, l.fail("remove producer snapshot", err)
		}
	}
	l.mu.unsynced = slices.DeleteFunc(l.mu.unsynced, func(s *segment.Segment) bool { return slices.Contains(gone, s) })
	l.raiseLogStartLocked(max(o.LogStart, o.segments[count].BaseOffset()), slices.Clone(o.segments[count:]))
	return gone, nil
}
