package commitlog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A rollQuestion is what decides whether the active segment must make place for another
// one before a set is appended.
type rollQuestion struct {
	size, setSize  int64
	indexFull      bool
	base, last     int64 // base of the segment, last offset of the set
	first, largest int64 // largest timestamp of the segment's first batch, and of the set; negative or MaxInt64: none
	created, now   time.Time
	maxSegmentMs   int64 // segment.ms or less, jitter taken off
	maxSegmentSize int64
}

// mustRoll answers with the reason, or "" for no. (doc/format.md 4.3.) An empty segment
// stays unless the offsets do not fit: a new one would be no better.
func (q rollQuestion) mustRoll() string {
	switch delta := q.last - q.base; {
	case delta < 0 || delta > math.MaxInt32:
		return "offset range"
	case q.size == 0:
		return ""
	case q.size > q.maxSegmentSize-q.setSize:
		return "segment.bytes"
	case q.waitedMs() > q.maxSegmentMs:
		return "segment.ms"
	case q.indexFull:
		return "index full"
	}
	return ""
}

// waitedMs is the age of the segment by the clock of its records, if they have one.
func (q rollQuestion) waitedMs() int64 {
	if q.first >= 0 && q.first != math.MaxInt64 {
		return q.largest - q.first
	}
	return q.now.Sub(q.created).Milliseconds()
}

// maybeRollLocked rolls if the set s asks for it.
func (l *Log) maybeRollLocked(s *stampedSet, c *Config) error {
	active := l.offsets.Load().active()
	first, err := active.FirstTimestamp()
	switch vfs.FaultOf(err) {
	case vfs.NoFault:
	case vfs.ValueFault:
		first = -1 // the batch is damaged: the segment has the age of its file
	default:
		return l.spare("read first batch", err)
	}
	q := rollQuestion{
		size:           active.Size(),
		setSize:        int64(len(s.bytes)),
		indexFull:      active.IndexFull(),
		base:           active.BaseOffset(),
		last:           s.last,
		first:          first,
		largest:        s.maxTimestamp,
		created:        l.mu.created,
		now:            l.now(),
		maxSegmentMs:   c.maxSegmentMs() - l.mu.jitterMs,
		maxSegmentSize: int64(c.SegmentBytes),
	}
	reason := q.mustRoll()
	if reason == "" {
		return nil
	}
	return l.rollLocked(l.rollBaseLocked(s), reason, c)
}

// rollBaseLocked names the segment that s will be the first set of: by the end of the one
// before, so that a gap between two segments always means a loss. Only where the offsets
// would not fit then, by its own first offset (KAFKA-4451).
func (l *Log) rollBaseLocked(s *stampedSet) int64 {
	base := l.offsets.data
	if base <= l.offsets.Load().active().BaseOffset() || s.last-base > math.MaxInt32 {
		return s.first
	}
	return base
}

// Roll starts a new segment at the log end, if the active one is not empty.
func (l *Log) Roll() error {
	if err := l.prepare(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.unlockRolled()
	if err := l.usableLocked(); err != nil {
		return err
	}
	o := l.offsets.Load()
	if o.active().Size() == 0 {
		return nil
	}
	return l.rollLocked(l.offsets.data, "asked", l.config.Load())
}

// rollLocked seals the active segment and starts a new one at base. A sync of the sealed
// one follows in the background. On a full disk all stays as it was.
func (l *Log) rollLocked(base int64, reason string, c *Config) error {
	old := l.offsets.Load()
	if active := old.active(); base <= active.BaseOffset() {
		return l.fail("roll", fmt.Errorf("BUG: new segment at %d, active one at %d", base, active.BaseOffset()))
	}
	if err := old.active().Seal(); err != nil {
		return l.spare("seal segment", err)
	}
	if l.offsets.recoveryPoint.Load() >= base {
		// A checkpoint may say so already, and then nobody looks below the new segment.
		if err := old.active().Flush(); err != nil {
			return l.fail("flush sealed segment", err)
		}
	}
	s, err := l.createLocked(base, c)
	if err != nil {
		return l.spare("create segment", err)
	}
	before := l.mu.producers.end
	l.mu.producers.end = base
	if err := l.mu.snapshots.write(l.mu.producers); err != nil {
		l.mu.producers.end = before
		if undo := errors.Join(s.Remove(), l.mu.snapshots.discard(base)); undo != nil {
			return l.fail("undo a roll", undo)
		}
		return l.spare("write producer snapshot", err)
	}
	l.mu.producers.end = max(before, base) // the log end, also where a truncation left a gap
	l.mu.unsynced = append(l.mu.unsynced, old.active())
	old.active().Guard(base)
	next := l.offsets.next()
	next.segments = append(slices.Clip(old.segments), s)
	next.end = position{old.End, s, 0}
	l.noteOpenLocked(next.segments, old.active())
	l.offsets.publish(next, l.mu.producers)
	l.logger.Debug("log rolled", "partition", l.partition, "base", base, "reason", reason)
	l.mu.bare = true
	l.runLater(func() { _ = l.flushSealed() }) // a failure poisons the log: nothing is hidden
	return nil
}

// unlockRolled gives up the mutex after what may have rolled. Whoever rolled makes the index files of
// the new segment then, as nobody else needs them yet.
func (l *Log) unlockRolled() {
	bare, active := l.mu.bare, l.offsets.Load().active()
	l.mu.bare = false
	l.mu.Unlock()
	if bare {
		_ = active.MakeIndexFiles() // the first entries meet the error again
	}
}

// createCompleteLocked makes an empty active segment with all its files.
func (l *Log) createCompleteLocked(base int64, c *Config) (*segment.Segment, error) {
	s, err := l.createLocked(base, c)
	if err != nil {
		return nil, err
	}
	if err := s.MakeIndexFiles(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// createLocked makes an empty active segment, without index files.
func (l *Log) createLocked(base int64, c *Config) (*segment.Segment, error) {
	s, err := segment.Create(l.fs, l.dirLocked(), base, c.segment(l.disk.Caches), l.now())
	if err != nil {
		return nil, err
	}
	s.OnDamage(l.noteDamage)
	l.startSegmentLocked(base, c)
	return s, nil
}
