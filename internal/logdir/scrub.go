package logdir

import (
	"context"
	"log/slog"
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

// A Scrubber reads all logs now and then, so that damage is found while there are copies elsewhere.
type Scrubber struct {
	places   *places
	interval time.Duration // gregor.scrub.interval.ms
	rate     float64       // gregor.scrub.bytes.per.second
	now      func() time.Time
	logger   *slog.Logger

	running           atomic.Bool
	logs, done, bytes atomic.Int64 // of the pass under way, or the last
	last              atomic.Pointer[ScrubReport]
}

func (s *Scrubber) init(m *Manager) {
	s.places, s.interval, s.rate = &m.places, m.cfg.ScrubInterval, float64(m.cfg.ScrubBytesPerSecond)
	s.now, s.logger = m.cfg.Now, m.logger
}

func (s *Scrubber) begin(logs int) {
	s.logs.Store(int64(logs))
	s.done.Store(0)
	s.bytes.Store(0)
	s.running.Store(true)
}

// Progress tells how far the scrubber is, or how far it came in the last pass.
func (s *Scrubber) Progress() ScrubProgress {
	return ScrubProgress{Running: s.running.Load(), LogsDone: s.done.Load(), Logs: s.logs.Load(), Bytes: s.bytes.Load()}
}

// Last returns the report of the last pass that came to its end, or nil.
func (s *Scrubber) Last() *ScrubReport { return s.last.Load() }

// run reads all logs again and again, gregor.scrub.interval.ms apart, until ctx ends.
func (s *Scrubber) run(ctx context.Context) {
	wait := min(s.interval, firstScrubMax)
	for sleep(ctx, wait) == nil {
		if err := s.scrub(ctx); err != nil {
			return
		}
		wait = s.interval
	}
}

// scrub reads all logs once, at no more than gregor.scrub.bytes.per.second. What is damaged goes
// to quarantine, which the log reports. The error is that of ctx.
func (s *Scrubber) scrub(ctx context.Context) error {
	r := &ScrubReport{Started: s.now()}
	pace := throttle.New(s.rate)
	entries := s.places.entries()
	s.begin(len(entries))
	defer s.running.Store(false)
	for _, e := range entries {
		l, partition := e.log, e.log.Partition()
		err := l.Scrub(func(n int) error {
			s.bytes.Add(int64(n))
			return pace.Use(ctx, n)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if now, _ := s.places.entry(partition); err != nil && l.Failed() == nil && now.log == l {
			s.logger.Error("scrubber cannot read a log", "partition", partition, "err", err)
		}
		r.Logs++
		s.done.Add(1)
		for _, q := range l.Quarantine() {
			r.Damage = append(r.Damage, ScrubDamage{partition, l.Dir(), q})
		}
	}
	r.Bytes, r.Ended = s.bytes.Load(), s.now()
	s.last.Store(r)
	s.logger.Info("scrub has ended", "logs", r.Logs, "bytes", r.Bytes, "took", r.Ended.Sub(r.Started).Round(time.Millisecond), "damaged", len(r.Damage))
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
