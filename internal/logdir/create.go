package logdir

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// Create returns the log of a partition, and creates it if there is none. The directory of
// a new log is durable after its first flush. dirID says where; zero, or an id that stands for no
// directory, chooses the directory with the fewest logs among those that are not cordoned, if there
// are any. isNew says that the partition never had a log on this broker; otherwise it is not created
// while a directory is offline.
func (m *Manager) Create(p topic.Partition, topicID uuid.UUID, c commitlog.Config, dirID uuid.UUID, isNew bool) (*commitlog.Log, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed || m.halted.Load() {
		return nil, ErrClosed
	}
	if l := m.Log(p); l != nil {
		if id := l.TopicID(); id != topicID && !id.IsZero() && !topicID.IsZero() {
			return nil, fmt.Errorf("%v: %w: %v on disk, want %v", p, commitlog.ErrInconsistentTopicID, id, topicID)
		}
		return l, nil
	}
	if err := m.mayCreate(p, isNew); err != nil {
		return nil, err
	}
	dirs, err := m.candidates(dirID)
	if err != nil {
		return nil, err
	}
	if d := m.preferred[p]; d != nil && d.failure() == nil {
		dirs = []*dir{d}
	}
	delete(m.preferred, p)
	for _, d := range dirs {
		var l *commitlog.Log
		if l, err = m.createIn(d, p, topicID, c); err == nil {
			return l, nil
		}
		if fault := vfs.FaultOf(err); fault == vfs.ValueFault || fault == vfs.ProcessFault {
			return nil, fmt.Errorf("%v: %w", p, err) // in another directory as well
		}
		m.failSoon(d, err)
	}
	return nil, fmt.Errorf("%v: %w: %w", p, ErrNoDirectory, err)
}

// mayCreate refuses a log that is there but not open, or may be.
func (m *Manager) mayCreate(p topic.Partition, isNew bool) error {
	for _, d := range m.dirs {
		if l, ok := d.parked(p); ok && !errors.Is(l.err, errFuture) {
			return fmt.Errorf("%v: %s: %w", p, l.path, l.err)
		}
		if err := d.failure(); err != nil && d.holdsLogs && !isNew {
			return fmt.Errorf("%v: %w: %s: %w", p, ErrMayExist, d.path, err)
		}
	}
	return nil
}

// candidates returns the directories that may take a log, the best first.
func (m *Manager) candidates(id uuid.UUID) ([]*dir, error) {
	dirs := m.online()
	if !id.IsReserved() {
		dirs = slices.DeleteFunc(dirs, func(d *dir) bool { return d.id != id })
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w: directory.id=%v", ErrNoDirectory, id)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	slices.SortStableFunc(dirs, func(a, b *dir) int { return cmp.Compare(a.rank(), b.rank()) })
	return dirs, nil
}

// rank orders directories by their logs, cordoned ones behind all others. Manager.mu is held.
func (d *dir) rank() int64 {
	rank := int64(d.logCount)
	if d.cordoned.Load() {
		rank += math.MaxInt32
	}
	return rank
}

func (m *Manager) createIn(d *dir, p topic.Partition, topicID uuid.UUID, c commitlog.Config) (*commitlog.Log, error) {
	if err := m.cfg.Cleaner.Forget(d.path, p); err != nil { // of an earlier one, which was put aside
		return nil, err
	}
	o := m.logOptions(d, p, topicID, c)
	was := m.missingFrom(p)
	if was != nil {
		was.prove(&o, p)
	}
	l, err := m.openLog(o)
	if err != nil {
		return nil, err
	}
	if err := m.put(p, entry{l, d, -1}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if was != nil {
		l.SetHighWatermark(l.Offsets().End)
		return l, m.replaceMissing(l, was, d)
	}
	return l, nil
}

// missingFrom returns the directory in which a partition should be and was not at start, or nil.
func (m *Manager) missingFrom(p topic.Partition) *dir {
	for _, d := range m.online() {
		if d.isMissing(p) {
			return d
		}
	}
	return nil
}

// replaceMissing forgets what was kept for a log that begins anew, once that is on disk.
func (m *Manager) replaceMissing(l *commitlog.Log, was, now *dir) error {
	if err := l.Flush(); err != nil {
		return err
	}
	was.unpark(l.Partition())
	for _, d := range []*dir{now, was} {
		if err := m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks); err != nil {
			m.failSoon(d, err)
			return err
		}
	}
	return nil
}
