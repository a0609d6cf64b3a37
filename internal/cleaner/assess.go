package cleaner

import (
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/compaction"
)

// A shape is what the choice must know of a log.
type shape struct {
	logStart, lastStable, highWatermark, end int64
	segments                                 []stretch // oldest first; the last one is active
}

// A stretch is a segment of a shape: offsets [base, next) and bytes. The timestamps, in ms, may
// need to be read from files, and are asked for only where they count.
type stretch struct {
	base, next, bytes int64
	largest           func() (int64, error) // largest timestamp, or the file's time
	first             func() (int64, error) // of the first batch; 0 or less, or MaxInt64: none
}

// A Limit says what keeps a cleaning from going further.
type Limit string

const (
	LimitActive        Limit = "active segment"
	LimitTransaction   Limit = "open transaction"
	LimitHighWatermark Limit = "high watermark"
	LimitMinLag        Limit = "min.compaction.lag.ms"
)

// An assessment says what a cleaning of a log would do, and whether it is time for it.
type assessment struct {
	firstDirty, firstUncleanable int64
	limit                        Limit // why firstUncleanable is no later
	corrected                    bool  // the checkpoint is outside the log, and firstDirty the log start

	cleanBytes     int64 // below firstDirty
	cleanableBytes int64 // what a cleaning would go through that is dirty
	heldBytes      int64 // from firstUncleanable on

	ratio    float64
	mustFrom time.Time // when max.compaction.lag.ms is over; zero is never
	must     bool
	eligible bool
}

// noCheckpoint stands for the checkpoint of a log that was never cleaned.
const noCheckpoint = -1

// assess is doc/format.md 7.2 for one log. checkpoint is where its last cleaning ended.
func assess(s *shape, checkpoint int64, c *commitlog.Config, now time.Time) (assessment, error) {
	a := assessment{firstDirty: checkpoint}
	if checkpoint < s.logStart || checkpoint > s.end {
		a.firstDirty, a.corrected = s.logStart, checkpoint != noCheckpoint
	}
	if err := a.setLimit(s, c, now); err != nil {
		return a, err
	}
	for _, seg := range s.segments {
		if seg.base < a.firstDirty {
			a.cleanBytes += seg.bytes
		}
		if seg.next > a.firstDirty && seg.base < a.firstUncleanable {
			a.cleanableBytes += seg.bytes
		}
		if seg.base >= a.firstUncleanable {
			a.heldBytes += seg.bytes
		}
	}
	if total := a.cleanBytes + a.cleanableBytes; total > 0 {
		a.ratio = float64(a.cleanableBytes) / float64(total)
	}
	if err := a.setDue(s, c); err != nil {
		return a, err
	}
	a.must = a.cleanableBytes > 0 && !a.mustFrom.IsZero() && a.mustFrom.Before(now)
	a.eligible = a.must || a.ratio > c.MinCleanableRatio
	return a, nil
}

// setLimit finds the base of the segment that a cleaning must not touch: the one that holds the
// first offset which is not decided, or is too young.
func (a *assessment) setLimit(s *shape, c *commitlog.Config, now time.Time) error {
	sealed, active := s.sealed(), s.active()
	offset := active.base
	a.limit = LimitActive
	if s.lastStable < offset {
		offset, a.limit = s.lastStable, LimitTransaction
		if s.lastStable == s.highWatermark {
			a.limit = LimitHighWatermark
		}
	}
	young, err := firstYoung(sealed, a.firstDirty, c.MinCompactionLagMs, now)
	if err != nil {
		return err
	}
	if young < offset {
		offset, a.limit = young, LimitMinLag
	}
	offset = max(offset, a.firstDirty)
	a.firstUncleanable = active.base
	for _, seg := range sealed {
		if offset < seg.next {
			a.firstUncleanable = seg.base
			break
		}
	}
	return nil
}

// firstYoung returns the base of the first dirty segment that has a record younger than
// min.compaction.lag.ms, MaxInt64 if there is none.
func firstYoung(sealed []stretch, firstDirty, lagMs int64, now time.Time) (int64, error) {
	if lagMs <= 0 {
		return math.MaxInt64, nil
	}
	for _, seg := range sealed {
		if seg.next <= firstDirty {
			continue
		}
		largest, err := seg.largest()
		if err != nil {
			return 0, err
		}
		if largest > now.UnixMilli()-lagMs {
			return seg.base, nil
		}
	}
	return math.MaxInt64, nil
}

// setDue finds when the oldest dirty segment has waited for max.compaction.lag.ms.
func (a *assessment) setDue(s *shape, c *commitlog.Config) error {
	lag := max(c.MaxCompactionLagMs, 0)
	earliest := int64(math.MaxInt64)
	if lag == math.MaxInt64 {
		return nil
	}
	for _, seg := range s.sealed() {
		if seg.next <= a.firstDirty {
			continue
		}
		first, err := seg.first()
		if err != nil {
			return err
		}
		if first > 0 {
			earliest = min(earliest, first)
		}
	}
	if earliest < math.MaxInt64-lag {
		a.mustFrom = time.UnixMilli(earliest + lag)
	}
	return nil
}

func (s *shape) sealed() []stretch { return s.segments[:len(s.segments)-1] }
func (s *shape) active() *stretch  { return &s.segments[len(s.segments)-1] }

// plan is what an assessed cleaning is to do.
func (a *assessment) plan() compaction.Plan {
	return compaction.Plan{FirstDirty: a.firstDirty, FirstUncleanable: a.firstUncleanable, CleanedBytes: a.cleanBytes, DirtyBytes: a.cleanableBytes}
}

// assessForced is assess for a cleaning that somebody asked for: of what is dirty or, if nothing
// is, of everything again, for tombstones and markers whose time has come. There is something to
// do if it has cleanableBytes.
func assessForced(s *shape, checkpoint int64, c *commitlog.Config, now time.Time) (assessment, error) {
	a, err := assess(s, checkpoint, c, now)
	if err != nil || a.cleanableBytes > 0 {
		return a, err
	}
	return assess(s, noCheckpoint, c, now)
}

// missingBytes is how much more must become cleanable until the ratio is above the limit.
func (a *assessment) missingBytes(minRatio float64) int64 {
	if a.eligible || minRatio >= 1 {
		return 0
	}
	missing := (minRatio*float64(a.cleanBytes+a.cleanableBytes) - float64(a.cleanableBytes)) / (1 - minRatio)
	return int64(missing) + 1
}
