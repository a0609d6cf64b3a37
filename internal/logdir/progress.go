package logdir

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// progressInterval is how often Load tells the log how far it is.
const progressInterval = 5 * time.Second

// Progress says how far the loading of all directories has come.
type Progress struct {
	Started time.Time // zero before Load
	Done    bool
	Elapsed time.Duration // until now, or the end of Load
	// Left is an estimate of the time until all is loaded: the longest of the directories',
	// which load side by side. It is negative as long as one of them has nothing to go by.
	Left time.Duration
	Dirs []DirProgress // in the order of the configuration
}

// unknownTime is an estimate of time that cannot be given.
const unknownTime = time.Duration(-1)

// DirProgress says how far the loading of one directory has come.
type DirProgress struct {
	Path           string
	Clean          bool // stopped cleanly
	Logs, LogsDone int64
	// After an unclean stop: what has to be read of LogsMeasured logs, which are those begun.
	LogsMeasured           int64
	Segments, SegmentsDone int64
	Bytes, BytesDone       int64
	Left                   time.Duration // estimated; negative: unknown
}

// loadMeter counts while one directory is loaded.
type loadMeter struct {
	clean      atomic.Bool
	logs, done atomic.Int64
	recovery   commitlog.RecoveryMeter
	ended      atomic.Bool
}

// progress is the state behind Progress.
type progress struct {
	sync.Mutex
	started, ended time.Time
}

func (p *progress) begin(now time.Time) {
	p.Lock()
	defer p.Unlock()
	p.started = now
}

func (p *progress) end(now time.Time) {
	p.Lock()
	defer p.Unlock()
	p.ended = now
}

// times returns when Load began and how long it has taken.
func (p *progress) times(now time.Time) (started time.Time, elapsed time.Duration, done bool) {
	p.Lock()
	defer p.Unlock()
	switch {
	case p.started.IsZero():
		return p.started, 0, false
	case p.ended.IsZero():
		return p.started, now.Sub(p.started), false
	}
	return p.started, p.ended.Sub(p.started), true
}

// Progress tells how far Load is. It may be called at any time.
func (m *Manager) Progress() Progress {
	var p Progress
	p.Started, p.Elapsed, p.Done = m.progress.times(m.cfg.Now())
	for _, d := range m.dirs {
		if !d.holdsLogs {
			continue
		}
		dp := d.progress(p.Elapsed)
		switch {
		case p.Left == unknownTime || dp.Left == unknownTime:
			p.Left = unknownTime
		default:
			p.Left = max(p.Left, dp.Left)
		}
		p.Dirs = append(p.Dirs, dp)
	}
	return p
}

// progress reads the meter of a directory that has been loading for a time. Counters of what is
// done are read first, so that they never exceed the others.
func (d *dir) progress(elapsed time.Duration) DirProgress {
	l := &d.meter
	p := DirProgress{Path: d.path, Clean: l.clean.Load()}
	p.LogsDone, p.SegmentsDone, p.BytesDone = l.done.Load(), l.recovery.SegmentsDone.Load(), l.recovery.BytesDone.Load()
	p.LogsMeasured, p.Segments, p.Bytes = l.recovery.Logs.Load(), l.recovery.Segments.Load(), l.recovery.Bytes.Load()
	p.Logs = l.logs.Load()
	if !l.ended.Load() && d.failure() == nil {
		p.Left = timeLeft(&p, elapsed)
	}
	return p
}

// timeLeft estimates how long a directory will take. If bytes must be checked, they are what
// takes the time, and a log not begun is taken to have as many as the others have on
// average; else it is the logs.
func timeLeft(p *DirProgress, elapsed time.Duration) time.Duration {
	done, all := float64(p.LogsDone), float64(p.Logs)
	if p.Bytes > 0 && p.LogsMeasured > 0 {
		done, all = float64(p.BytesDone), float64(p.Bytes)*float64(p.Logs)/float64(p.LogsMeasured)
	}
	if done == 0 {
		return unknownTime
	}
	return time.Duration(float64(elapsed) * max(0, all-done) / done)
}

// report tells the log how loading goes until ctx ends.
func (m *Manager) report(ctx context.Context) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.logProgress(m.Progress())
		}
	}
}

func (m *Manager) logProgress(p Progress) {
	for _, d := range p.Dirs {
		if d.Left == 0 {
			continue // loaded, or offline
		}
		args := []any{"dir", d.Path, "loaded", d.LogsDone, "logs", d.Logs}
		if d.Bytes > 0 {
			args = append(args, "bytesChecked", d.BytesDone, "bytesFound", d.Bytes)
		}
		if d.Left != unknownTime {
			args = append(args, "left", d.Left.Round(time.Second))
		}
		m.logger.Info("loading logs", args...)
	}
}
