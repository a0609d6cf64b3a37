package logdir

import (
	"fmt"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Future returns the log of a move under way, or nil.
func (m *Manager) Future(p topic.Partition) *commitlog.Log {
	e, _ := m.places.future(p)
	return e.log
}

// Move begins to move a partition to a directory, in place of any other move of it. The
// directory it is in ends a move under way. The wish for a partition that is not here is
// noted for its creation, and answered with ErrUnknownPartition. ErrNoDirectory: the target
// is unknown or offline. ErrCordoned: it takes no new logs. ErrMayExist: the partition may be in a
// directory that is offline.
func (m *Manager) Move(p topic.Partition, path string) error {
	defer m.changes.take(p)()
	target := m.dirs.onlineAt(path)
	leave, err := m.enter(append(m.dirsOf([]topic.Partition{p}), target)...)
	if err != nil {
		return err
	}
	defer leave()
	if m.halted.Load() {
		return ErrClosed
	}
	if target == nil {
		return fmt.Errorf("%w: %s", ErrNoDirectory, path)
	}
	live, ok := m.places.entry(p)
	if target.cordoned.Load() && live.dir != target {
		return fmt.Errorf("%w: %s", ErrCordoned, path)
	}
	if !ok {
		if err := m.mayCreate(p, false); err != nil {
			return err
		}
		m.places.prefer(p, target)
		return fmt.Errorf("%v: %w", p, ErrUnknownPartition)
	}
	future, moving := m.places.future(p)
	if moving && future.dir == target {
		return nil
	}
	if moving {
		if err := m.mover.cancel(p); err != nil {
			return err
		}
	}
	if live.dir == target {
		return nil
	}
	return m.mover.begin(p, live, target)
}
