package logdir

import (
	"context"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
)

// Start begins the background tasks, one goroutine each; they end with ctx or Close. Every
// task is a step that can be taken alone, below, repeated at its interval.
func (m *Manager) Start(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	m.tasks.Lock()
	m.tasks.stop = stop
	m.tasks.Unlock()
	m.background(func() { m.deletions.run(ctx, m.cfg.Now) })
	if m.cfg.DiskReserve > 0 {
		m.background(func() { m.space().watch(ctx) })
	}
	if m.cfg.ScrubInterval > 0 && m.cfg.ScrubBytesPerSecond > 0 {
		m.background(func() { m.scrubber.run(ctx) })
	}
	for range m.moverThreads() {
		m.background(func() { m.mover.run(ctx) })
	}
	m.every(ctx, idleInterval, func(time.Time) { m.cfg.Caches.CloseIdle() })
	m.background(func() { m.watchFailedLogs(ctx) })
	m.every(ctx, m.cfg.RetentionInterval, m.retain)
	m.every(ctx, m.cfg.FlushInterval, m.flushOverdue)
	m.every(ctx, m.cfg.ProducerExpiryInterval, m.expireProducers)
	m.every(ctx, producerCountInterval, func(time.Time) { m.countProducers() })
	m.every(ctx, m.cfg.RecoveryPointInterval, func(time.Time) { m.checkpointAll(recoveryPoints) })
	m.every(ctx, m.cfg.LogStartInterval, func(time.Time) { m.checkpointAll(logStarts) })
	m.every(ctx, m.cfg.HighWatermarkInterval, func(time.Time) { m.checkpointAll(highWatermarks) })
}

// idleInterval is how often files and indexes that nobody used are closed and dropped.
const idleInterval = time.Minute

// producerCountInterval is how often producer ids are counted. The reader of the number does not do
// it: a log that waits for its disk would keep them waiting.
const producerCountInterval = time.Minute

// moverThreads is how many goroutines copy. With one directory there is nowhere to move to.
func (m *Manager) moverThreads() int {
	dirs := 0
	for _, d := range m.dirs {
		if d.holdsLogs {
			dirs++
		}
	}
	if dirs < 2 {
		return 0
	}
	if m.cfg.MoverThreads > 0 {
		return m.cfg.MoverThreads
	}
	return dirs
}

// every repeats step after the initial delay, unless the interval is zero or config.Never.
func (m *Manager) every(ctx context.Context, interval time.Duration, step func(now time.Time)) {
	if interval <= 0 || interval == config.Never {
		return
	}
	m.background(func() {
		timer := time.NewTimer(m.cfg.InitialTaskDelay)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			step(m.cfg.Now())
			timer.Reset(interval)
		}
	})
}

// retain is the task kafka-log-retention: it drops old segments of logs that are not
// compacted; of those that are, the cleaner does.
func (m *Manager) retain(now time.Time) {
	for _, e := range append(m.places.entries(), m.places.allFutures(nil)...) {
		if m.halted.Load() {
			return
		}
		if e.log.Config().Compact {
			continue
		}
		m.cfg.Cleaner.Pause(e.log.Partition()) // it may become compacted any moment
		m.retainLog(e.log, now)
		m.cfg.Cleaner.Resume(e.log.Partition())
	}
}

// retainLog drops old segments of a log. One that fails at it takes its directory offline
// itself.
func (m *Manager) retainLog(l *commitlog.Log, now time.Time) {
	n, err := l.DeleteOldSegments(now)
	switch {
	case err != nil && l.Failed() == nil:
		m.logger.Error("retention failed", "partition", l.Partition(), "err", err)
	case n > 0:
		m.logger.Debug("old segments deleted", "partition", l.Partition(), "segments", n)
	}
}

// flushOverdue is the task kafka-log-flusher: it flushes logs whose flush.ms is over.
func (m *Manager) flushOverdue(now time.Time) {
	for p, l := range m.Logs() {
		if m.halted.Load() {
			return
		}
		if !flushIsDue(l.Config(), l.LastFlush(), now) {
			continue
		}
		if err := l.Flush(); err != nil && l.Failed() == nil {
			m.logger.Error("flush failed", "partition", p, "err", err)
		}
	}
}

func flushIsDue(c commitlog.Config, lastFlush, now time.Time) bool {
	return now.UnixMilli()-lastFlush.UnixMilli() >= c.FlushMs
}

func (m *Manager) expireProducers(now time.Time) {
	for _, l := range m.Logs() {
		l.ExpireProducers(now)
	}
}

func (m *Manager) countProducers() {
	count := 0
	for _, l := range m.Logs() {
		count += l.NumProducers()
	}
	m.producerCount.Store(int64(count))
}

// ProducerCount returns how many producer ids all logs knew at the last count, which is one a minute.
func (m *Manager) ProducerCount() int64 { return m.producerCount.Load() }
