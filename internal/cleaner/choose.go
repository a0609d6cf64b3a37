package cleaner

import (
	"context"
	"errors"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Skip says why a compacted log is not cleaned now.
type Skip string

// The reasons, in the order in which they are looked at.
const (
	SkipBusy        Skip = "something is under way or it is paused"
	SkipUncleanable Skip = "uncleanable"
	SkipNothing     Skip = "nothing to clean below the active segment"
	SkipHeld        Skip = "what is dirty is held back"
	SkipRatio       Skip = "dirty ratio not above min.cleanable.dirty.ratio"
)

// A candidate is a compacted log with its assessment.
type candidate struct {
	log *commitlog.Log
	dir string
	assessment
}

func (c *candidate) partition() topic.Partition { return c.log.Partition() }

// A choice is the outcome of a look at all compacted logs.
type choice struct {
	at       time.Time
	best     *candidate // nil: none is eligible
	skipped  map[Skip]int
	dirtiest float64       // the highest ratio
	overdue  time.Duration // by how much max.compaction.lag.ms is exceeded at most

	// corrected has, by directory, the first dirty offsets of checkpoints outside their logs.
	corrected map[string]map[topic.Partition]int64
}

// choose is doc/format.md 7.2: the log with the highest ratio of those that are due.
func (m *Manager) choose(now time.Time) choice {
	found := choice{at: now, skipped: make(map[Skip]int), corrected: make(map[string]map[topic.Partition]int64)}
	for l, dir := range m.logs.Placed() {
		if !l.Config().Compact || l.Size() == 0 {
			continue
		}
		c, skip := m.look(l, dir, now)
		if c != nil {
			found.dirtiest = max(found.dirtiest, c.ratio)
			if c.must {
				found.overdue = max(found.overdue, now.Sub(c.mustFrom))
			}
			if c.corrected {
				found.correct(dir, l.Partition(), c.firstDirty)
			}
		}
		switch {
		case skip != "":
			found.skipped[skip]++
		case found.best == nil || c.ratio > found.best.ratio:
			found.best = c
		}
	}
	return found
}

func (c *choice) correct(dir string, p topic.Partition, offset int64) {
	if c.corrected[dir] == nil {
		c.corrected[dir] = make(map[topic.Partition]int64)
	}
	c.corrected[dir][p] = offset
}

// look assesses one log. The candidate is nil if that was not possible.
func (m *Manager) look(l *commitlog.Log, dir string, now time.Time) (*candidate, Skip) {
	p := l.Partition()
	if t, paused := m.states.running(p); t != nil || paused {
		return nil, SkipBusy
	}
	if m.uncleanable(dir, p) != nil {
		return nil, SkipUncleanable
	}
	c := &candidate{log: l, dir: dir}
	var err error
	s, config := shapeOf(l), l.Config()
	if c.assessment, err = assess(s, m.checkpoints.get(dir, p), &config, now); err != nil {
		m.failed(p, l, dir, err)
		return nil, SkipUncleanable
	}
	return c, c.skip(s)
}

// skip says why the log is not eligible, "" if it is.
func (a *assessment) skip(s *shape) Skip {
	switch {
	case a.eligible:
		return ""
	case a.cleanableBytes > 0:
		return SkipRatio
	case a.limit != LimitActive && a.firstDirty < s.active().base:
		return SkipHeld
	}
	return SkipNothing
}

// shapeOf describes a log as it is.
func shapeOf(l *commitlog.Log) *shape {
	o := l.Offsets()
	s := &shape{logStart: o.LogStart, lastStable: o.LastStable, highWatermark: o.HighWatermark, end: o.End}
	for _, seg := range o.CleanSegments() {
		s.segments = append(s.segments, stretch{
			base: seg.BaseOffset(), next: seg.Next, bytes: seg.Bytes, largest: seg.LargestTimestamp, first: seg.FirstTimestamp,
		})
	}
	return s
}

// correct writes checkpoints that were outside their logs: after a deletion of records, or a
// crash. (KAFKA-6266, KAFKA-8764, KAFKA-9826.)
func (m *Manager) correct(corrected map[string]map[topic.Partition]int64) {
	for dir, offsets := range corrected {
		for p, offset := range offsets {
			m.logger.Info("cleaning begins at the log start", "partition", p, "offset", offset)
		}
		if err := m.checkpoints.set(dir, offsets); err != nil {
			m.logs.FailSoon(dir, err)
		}
	}
}

// claim gives the best log to a cleaning under ctx, or returns nil if none is due.
func (m *Manager) claim(ctx context.Context) *cleaning {
	m.choosing.Lock()
	defer m.choosing.Unlock()
	found := m.choose(m.now())
	m.correct(found.corrected)
	m.mu.Lock()
	m.mu.lastChoice = found
	m.mu.Unlock()
	if found.best == nil {
		return nil
	}
	run := m.newCleaning(ctx, found.best.log, found.best.dir, found.best.plan())
	if !m.begin(run) {
		run.cancel()
		return nil
	}
	return run
}

// failed decides what an error at a log means: bytes or files that are wrong set the log aside, a
// failed disk takes the directory offline, a shortage passes, and nothing is wrong if the log is gone.
func (m *Manager) failed(p topic.Partition, l *commitlog.Log, dir string, err error) {
	placed, _ := m.logs.Place(p)
	switch {
	case l.Failed() != nil || placed != l:
		m.logger.Debug("log was deleted while it was cleaned", "partition", p, "err", err)
	case errors.Is(err, commitlog.ErrSegmentsChanged):
		m.logger.Info("log has changed while it was cleaned", "partition", p, "err", err)
	case isFull(err):
		m.logger.Error("no room to clean", "partition", p, "err", err)
	case vfs.FaultOf(err) == vfs.ProcessFault:
		m.logger.Error("cleaning failed, it will be tried again", "partition", p, "err", err)
	case vfs.FaultOf(err) == vfs.DiskFault:
		m.logger.Error("cleaning failed", "partition", p, "err", err)
		m.logs.FailSoon(dir, err)
	default:
		m.logger.Error("log is not cleaned any more until the next start", "partition", p, "err", err)
		m.mu.Lock()
		m.setUncleanableLocked(dir, p, err)
		m.mu.Unlock()
	}
}

func isFull(err error) bool {
	_, full := errors.AsType[*commitlog.DiskFullError](err)
	return full || vfs.IsFull(err)
}
