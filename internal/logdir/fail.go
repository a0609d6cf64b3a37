package logdir

import (
	"fmt"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// Fail takes a directory offline: its logs are closed and forgotten, its lock released.
// It stays so until the broker starts again. Fail returns when OnDirFailure has.
func (m *Manager) Fail(path string, cause error) error {
	for _, d := range m.dirs {
		if d.path == filepath.Clean(path) {
			m.failed(d, cause)
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not a log directory", ErrNoDirectory, path)
}

// failed takes a directory offline, the first time it is called for it.
func (m *Manager) failed(d *dir, cause error) {
	if d.setFailure(cause) {
		m.takeOffline(d, cause)
	}
}

// failSoon is failed for callers that hold locks: of the manager or of a log. A directory that
// serves stays online when its disk is full: deleting is what helps.
func (m *Manager) failSoon(d *dir, cause error) {
	if vfs.IsFull(cause) {
		m.logger.Error("log directory has no room", "dir", d.path, "err", cause)
		return
	}
	if d.setFailure(cause) {
		m.background(func() { m.takeOffline(d, cause) })
	}
}

// background runs a task that Close waits for; after Close it does nothing.
func (m *Manager) background(task func()) {
	m.tasks.Lock()
	defer m.tasks.Unlock()
	if !m.tasks.closing {
		m.tasks.Go(task)
	}
}

func (m *Manager) isClosing() bool {
	m.tasks.Lock()
	defer m.tasks.Unlock()
	return m.tasks.closing
}

func (m *Manager) takeOffline(d *dir, cause error) {
	m.logger.Error("log directory goes offline", "dir", d.path, "err", cause)
	m.changing.Lock()
	swept := m.sweep(d)
	m.cfg.Cleaner.DirFailed(d.path, partitionsOf(swept)...)
	for _, e := range swept {
		e.log.Abandon()
	}
	if err := d.unlock(); err != nil {
		m.logger.Warn("cannot remove the lock file", "dir", d.path, "err", err)
	}
	m.changing.Unlock()
	m.cfg.OnDirFailure(d.path, d.id, cause)
}

func partitionsOf(entries []entry) []topic.Partition {
	list := make([]topic.Partition, len(entries))
	for i, e := range entries {
		list[i] = e.log.Partition()
	}
	return list
}

// sweep takes the logs of a directory out of the map.
func (m *Manager) sweep(d *dir) []entry {
	var swept []entry
	for _, e := range m.entriesOf(d) {
		if e, ok := m.take(e.log.Partition()); ok {
			swept = append(swept, e)
		}
	}
	for _, e := range m.futures(nil) {
		if _, ok := m.entry(e.log.Partition()); e.dir == d || !ok {
			m.takeFuture(e.log.Partition())
			swept = append(swept, e)
		}
	}
	return swept
}
