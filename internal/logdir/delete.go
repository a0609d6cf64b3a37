package logdir

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Delete removes partitions. On return they are gone for good, under a name that ends in
// -delete, and their names are free; the files go after Config.FileDeleteDelay, so that
// a reader of one may finish. Deleting many at once costs little more than deleting one.
func (m *Manager) Delete(partitions ...topic.Partition) error {
	leave, err := m.change(partitions...)
	if err != nil {
		return err
	}
	defer leave()
	touched := make(map[*dir][]topic.Partition)
	var errs []error
	for _, p := range partitions {
		d, err := m.setAside(p)
		if d != nil {
			touched[d] = append(touched[d], p)
		}
		errs = append(errs, err)
	}
	for d, deleted := range touched {
		if err := m.recordDeleted(d, deleted); err != nil {
			m.failSoon(d, err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dirsOf lists the directories that have to do with some partitions.
func (m *Manager) dirsOf(partitions []topic.Partition) []*dir {
	var dirs []*dir
	for _, p := range partitions {
		live, _ := m.places.entry(p)
		future, _ := m.places.future(p)
		for _, d := range []*dir{live.dir, future.dir, m.dirs.parkedIn(p), m.dirs.missingFrom(p)} {
			if d != nil && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

// setAside renames the directory of a partition and queues its removal.
func (m *Manager) setAside(p topic.Partition) (*dir, error) {
	if err := m.mover.cancel(p); err != nil {
		return nil, err
	}
	m.cfg.Cleaner.Pause(p)
	defer m.cfg.Cleaner.Resume(p)
	if e, ok := m.places.take(p); ok {
		path := e.dir.file(asideName(m.cfg.Random, p, checkpoint.DeleteDirSuffix))
		err := e.log.RenameDir(path)
		if err != nil {
			m.failSoon(e.dir, err)
			return nil, err
		}
		m.deleteLater(m.fileDeleteDelay(), func() {
			if err := e.log.Delete(); err != nil {
				m.logger.Warn("cannot remove a deleted partition, the next start will try again", "dir", path, "err", err)
			}
		})
		m.logger.Info("partition deleted", "partition", p, "dir", path)
		return e.dir, nil
	}
	return m.setAsideParked(p)
}

func (m *Manager) setAsideParked(p topic.Partition) (*dir, error) {
	if d := m.dirs.parkedIn(p); d != nil {
		l, _ := d.parked(p)
		path := d.file(asideName(m.cfg.Random, p, checkpoint.DeleteDirSuffix))
		if err := m.cfg.FS.Rename(l.path, path); err != nil {
			m.failSoon(d, err)
			return nil, err
		}
		d.unpark(p)
		m.deleteLater(m.fileDeleteDelay(), func() { m.removeAll(path) })
		return d, nil
	}
	if d := m.dirs.missingFrom(p); d != nil {
		d.unpark(p)
		return d, nil
	}
	return nil, fmt.Errorf("%v: %w", p, ErrUnknownPartition)
}

// recordDeleted makes renames durable and takes the partitions out of the checkpoints: one
// created under the same name must not inherit their offsets.
func (m *Manager) recordDeleted(d *dir, partitions []topic.Partition) error {
	if err := m.cfg.FS.SyncDir(d.path); err != nil {
		return err
	}
	if err := m.cfg.Cleaner.Forget(d.path, partitions...); err != nil {
		return err
	}
	return m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks)
}

func (m *Manager) deleteLater(delay time.Duration, remove func()) {
	m.deletions.add(m.cfg.Now().Add(delay), remove)
}

// TruncateTo truncates a log to an offset, and notes its recovery point: a crash after
// more appends must not find one above what was truncated.
func (m *Manager) TruncateTo(p topic.Partition, offset int64) error {
	return m.truncate(p, offset, offset, func(e entry) error { return e.log.TruncateTo(offset) })
}

// TruncateFullyAndStartAt empties a log, to go on at an offset.
func (m *Manager) TruncateFullyAndStartAt(p topic.Partition, offset int64) error {
	return m.truncate(p, offset, 0, func(e entry) error { return e.log.TruncateFullyAndStartAt(offset) })
}

// truncate lowers what the checkpoints say to where records stay, before any goes.
func (m *Manager) truncate(p topic.Partition, offset, stays int64, truncate func(entry) error) error {
	m.cfg.Cleaner.Pause(p)
	defer m.cfg.Cleaner.Resume(p)
	m.mover.step.Lock() // the copy of a move loses the same
	defer m.mover.step.Unlock()
	e, ok := m.places.entry(p)
	if !ok {
		return fmt.Errorf("%v: %w", p, ErrUnknownPartition)
	}
	e.log.PrepareTruncation(stays)
	if err := m.writeCheckpoints(e.dir, recoveryPoints, highWatermarks); err != nil {
		m.failSoon(e.dir, err)
		return err
	}
	if err := truncate(e); err != nil {
		return err
	}
	if future, ok := m.places.future(p); ok {
		if err := truncate(future); err != nil {
			m.logger.Warn("copy of a move is not truncated", "partition", p, "err", err) // it has failed
		}
	}
	err := m.cfg.Cleaner.Truncated(e.dir.path, p, offset)
	if err == nil {
		err = m.writeCheckpoints(e.dir, recoveryPoints, logStarts, highWatermarks)
	}
	if err != nil {
		m.failSoon(e.dir, err)
	}
	return err
}

// discard puts a log aside and queues its removal.
func (m *Manager) discard(e entry) error {
	path := e.dir.file(asideName(m.cfg.Random, e.log.Partition(), checkpoint.DeleteDirSuffix))
	if err := e.log.RenameDir(path); err != nil {
		m.failSoon(e.dir, err)
		return err
	}
	m.deleteLater(m.fileDeleteDelay(), func() {
		if err := e.log.Delete(); err != nil {
			m.logger.Warn("cannot remove a directory, the next start will try again", "dir", path, "err", err)
		}
	})
	return m.cfg.FS.SyncDir(e.dir.path)
}
