package cleaner

import (
	"context"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// runRetention deletes old segments of compacted logs until ctx ends: those below the log start
// (KAFKA-7400) and, with cleanup.policy=compact,delete, those that retention gives up.
// (Kafka's cleaner threads do it between two cleanings.)
func (m *Manager) runRetention(ctx context.Context, interval time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		m.retainAll(ctx, m.now())
		timer.Reset(interval)
	}
}

func (m *Manager) retainAll(ctx context.Context, now time.Time) {
	for l, dir := range m.logs.Placed() {
		if ctx.Err() != nil {
			return
		}
		if c := l.Config(); c.Compact && mayExpire(l, &c) {
			m.retain(l, dir, now)
		}
	}
}

// mayExpire reports whether it is worth looking at the segments of a log.
func mayExpire(l *commitlog.Log, c *commitlog.Config) bool {
	if c.Delete {
		return l.Size() > 0
	}
	o := l.Offsets()
	return o.CleanSegments()[0].Next <= o.LogStart
}

// retain deletes old segments of a log that has no state.
func (m *Manager) retain(l *commitlog.Log, dir string, now time.Time) {
	p := l.Partition()
	t := &task{kind: retentionTask, cancel: func() {}}
	if !m.states.begin(p, t) {
		return
	}
	var n int
	var err error
	if placed, _ := m.logs.Place(p); placed == l {
		n, err = l.DeleteOldSegments(now)
	}
	m.states.end(p, t)
	switch {
	case err != nil:
		m.failed(p, l, dir, err)
	case n > 0:
		m.logger.Info("old segments of a compacted log deleted", "partition", p, "segments", n)
	}
}
