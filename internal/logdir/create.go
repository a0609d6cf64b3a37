package logdir

import (
	"cmp"
	"errors"
	"fmt"
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
	defer m.changes.take(p)()
	if m.closed.Load() || m.halted.Load() {
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
	tried := make(map[*dir]bool)
	var failed error
	for {
		dirs := slices.DeleteFunc(m.dirs.online(), func(d *dir) bool { return tried[d] || !dirID.IsReserved() && d.id != dirID })
		d, err := m.places.reserve(p, dirID, dirs)
		if err != nil {
			return nil, cmp.Or(failed, err)
		}
		l, err := m.createIn(d, p, topicID, c)
		if err == nil || errors.Is(err, ErrClosed) {
			return l, err
		}
		if fault := vfs.FaultOf(err); d.failure() == nil && (fault == vfs.ValueFault || fault == vfs.ProcessFault) {
			return nil, fmt.Errorf("%v: %w", p, err) // in another directory as well
		}
		m.failSoon(d, err)
		tried[d], failed = true, fmt.Errorf("%v: %w: %w", p, ErrNoDirectory, err)
	}
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

func (m *Manager) createIn(d *dir, p topic.Partition, topicID uuid.UUID, c commitlog.Config) (*commitlog.Log, error) {
	defer m.places.unreserve(d)
	was := m.dirs.missingFrom(p)
	leave, err := m.enter(d, was)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := d.failure(); err != nil {
		return nil, err
	}
	if err := m.cfg.Cleaner.Forget(d.path, p); err != nil { // of an earlier one, which was put aside
		return nil, err
	}
	o := m.logOptions(d, p, topicID, c)
	if was != nil {
		was.prove(&o, p)
	}
	l, err := m.openLog(o)
	if err != nil {
		return nil, err
	}
	if err := m.places.put(p, entry{l, d, -1}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if was != nil {
		l.SetHighWatermark(l.Offsets().End)
		return l, m.replaceMissing(l, was, d)
	}
	return l, nil
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
