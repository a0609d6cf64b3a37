package logdir

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// firstScrubMax is the longest that a broker runs before its first scrub.
const firstScrubMax = time.Hour

// A ScrubReport says what a pass over all logs has read and what damage is known after it.
type ScrubReport struct {
	Started, Ended time.Time
	Logs           int
	Bytes          int64
	Damage         []ScrubDamage
}

// A ScrubDamage is a stretch in quarantine and the log that it belongs to.
type ScrubDamage struct {
	Partition topic.Partition
	Dir       string
	commitlog.Quarantined
}

// ScrubProgress says how far the pass over all logs that is under way has come.
type ScrubProgress struct {
	Running        bool
	Logs, LogsDone int64
	Bytes          int64 // read
}

// scrubMeter counts during a pass.
type scrubMeter struct {
	running           atomic.Bool
	logs, done, bytes atomic.Int64
}

func (s *scrubMeter) begin(logs int) {
	s.logs.Store(int64(logs))
	s.done.Store(0)
	s.bytes.Store(0)
	s.running.Store(true)
}

// ScrubProgress tells how far the scrubber is, or how far it came in the last pass.
func (m *Manager) ScrubProgress() ScrubProgress {
	s := &m.scrubbing
	return ScrubProgress{Running: s.running.Load(), LogsDone: s.done.Load(), Logs: s.logs.Load(), Bytes: s.bytes.Load()}
}

// LastScrub returns the report of the last pass that came to its end, or nil.
func (m *Manager) LastScrub() *ScrubReport { return m.lastScrub.Load() }

// scrubAll reads all logs again and again, gregor.scrub.interval.ms apart, until ctx ends.
func (m *Manager) scrubAll(ctx context.Context) {
	wait := min(m.cfg.ScrubInterval, firstScrubMax)
	for sleep(ctx, wait) == nil {
		if err := m.scrub(ctx); err != nil {
			return
		}
		wait = m.cfg.ScrubInterval
	}
}

// scrub reads all logs once, at no more than gregor.scrub.bytes.per.second. What is damaged goes
// to quarantine, which the log reports. The error is that of ctx.
func (m *Manager) scrub(ctx context.Context) error {
	r := &ScrubReport{Started: m.cfg.Now()}
	pace := throttle.New(float64(m.cfg.ScrubBytesPerSecond))
	entries := m.entries()
	m.scrubbing.begin(len(entries))
	defer m.scrubbing.running.Store(false)
	for _, e := range entries {
		l, partition := e.log, e.log.Partition()
		err := l.Scrub(func(n int) error {
			m.scrubbing.bytes.Add(int64(n))
			return pace.Use(ctx, n)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && l.Failed() == nil && m.Log(partition) == l {
			m.logger.Error("scrub", "partition", partition, "err", err)
		}
		r.Logs++
		m.scrubbing.done.Add(1)
		for _, q := range l.Quarantine() {
			r.Damage = append(r.Damage, ScrubDamage{partition, l.Dir(), q})
		}
	}
	r.Bytes, r.Ended = m.scrubbing.bytes.Load(), m.cfg.Now()
	m.lastScrub.Store(r)
	m.logger.Info("scrub has ended", "logs", r.Logs, "bytes", r.Bytes, "took", r.Ended.Sub(r.Started).Round(time.Millisecond), "damaged", len(r.Damage))
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
