package logdir

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// failedLogs are the partitions whose logs refuse changes although their disk is well: an operation
// was cut short by a shortage, or the log's own files are not what they were. They are opened
// again, as after a crash, until that succeeds.
type failedLogs struct {
	added chan struct{} // capacity 1

	mu   sync.Mutex
	logs map[topic.Partition]bool
}

func (a *failedLogs) init() {
	a.added = make(chan struct{}, 1)
	a.logs = make(map[topic.Partition]bool)
}

func (a *failedLogs) add(p topic.Partition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logs[p] = true
	select {
	case a.added <- struct{}{}:
	default:
	}
}

// take hands over all of them.
func (a *failedLogs) take() []topic.Partition {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.Collect(maps.Keys(a.logs))
	clear(a.logs)
	return list
}

// How long a log waits that is to be opened again: the first time, and when that failed often.
const (
	reopenPause    = 100 * time.Millisecond
	reopenPauseMax = time.Minute
)

// watchFailedLogs opens logs again until ctx ends.
func (m *Manager) watchFailedLogs(ctx context.Context) {
	pause := reopenPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.failedLogs.added:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if pause = min(2*pause, reopenPauseMax); m.reopenFailedLogs(ctx) {
			pause = reopenPause
		}
	}
}

// reopenFailedLogs opens again what refuses changes, and reports whether all of it could be.
func (m *Manager) reopenFailedLogs(ctx context.Context) bool {
	all := true
	for _, p := range m.failedLogs.take() {
		if ctx.Err() != nil {
			return false
		}
		err := m.cfg.ReplaceLog(p, func() (*commitlog.Log, error) { return m.reopen(p) })
		if err != nil {
			m.logger.Error("log still takes no changes, opening it will be tried again", "partition", p, "err", err)
			m.failedLogs.add(p)
			all = false
		}
	}
	return all
}

// reopen opens a log again that refuses changes, and puts it in the place of the old one. A nil
// log says that there is nothing to do any more.
func (m *Manager) reopen(p topic.Partition) (*commitlog.Log, error) {
	leave, err := m.change(p)
	if err != nil {
		return nil, nil
	}
	defer leave()
	e, ok := m.places.entry(p)
	if !ok || e.log.Failed() == nil || e.dir.failure() != nil {
		return nil, nil
	}
	if _, err := m.cfg.FS.Stat(e.log.Dir()); err != nil {
		return nil, fmt.Errorf("its directory cannot be looked at: %w", err) // an empty one in its place would use offsets again
	}
	m.cfg.Cleaner.Pause(p)
	defer m.cfg.Cleaner.Resume(p)
	before := e.log.Offsets()
	o := m.logOptions(e.dir, p, e.log.TopicID(), e.log.Config())
	o.Clean, o.RecoveryPoint, o.LogStartOffset = false, e.log.RecoveryPoint(), before.LogStart
	l, err := m.openLog(o)
	if err != nil {
		return nil, err
	}
	if end := l.Offsets().End; end < before.End {
		l.Abandon() // offsets that were given away would be given away again
		return nil, fmt.Errorf("it has ended at offset %d, its files end at %d", before.End, end)
	}
	l.SetHighWatermark(before.HighWatermark)
	m.places.replace(p, l, e.dir)
	e.log.Abandon()
	if l.RecoveryPoint() < o.RecoveryPoint { // see commitlog.Open
		if err := m.writeCheckpoint(e.dir, recoveryPoints); err != nil {
			m.failSoon(e.dir, err)
		}
	}
	m.logger.Info("log takes changes again", "partition", p, "end", l.Offsets().End)
	return l, nil
}
