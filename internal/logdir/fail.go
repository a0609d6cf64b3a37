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
			m.failNow(d, cause)
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not a log directory", ErrNoDirectory, path)
}

// A DirError says that a log directory is offline, and why.
type DirError struct {
	Path string
	Err  error
}

func (e *DirError) Error() string { return "log directory " + e.Path + ": " + e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// endsDir reports whether an operation on the files of a directory itself, not on those of a log,
// that failed in such a way ends it: the disk has failed, or somebody took files away.
func endsDir(fault vfs.Fault) bool { return fault == vfs.FileFault || fault == vfs.DiskFault }

// failed takes a directory offline whose logs cannot be loaded. A shortage of the process is
// none of its business: it ends the start, for logs that are not looked at must not be taken for
// gone.
func (m *Manager) failed(d *dir, cause error) {
	if vfs.FaultOf(cause) == vfs.ProcessFault {
		m.logger.Error("logs cannot be loaded", "dir", d.path, "err", cause)
		m.shortage.CompareAndSwap(nil, &cause)
		return
	}
	m.failNow(d, cause)
}

// failNow takes a directory offline, the first time it is called for it.
func (m *Manager) failNow(d *dir, cause error) {
	if d.setFailure(cause) {
		m.takeOffline(d, cause)
	}
}

// failSoon is failed for callers that hold locks: of the manager or of a log. A directory stays
// online when its disk is not to blame: when it is full, deleting is what helps, and what failed
// for want of descriptors or memory will be tried again.
func (m *Manager) failSoon(d *dir, cause error) {
	switch fault := vfs.FaultOf(cause); {
	case fault == vfs.SpaceFault:
		m.logger.Error("log directory is full", "dir", d.path, "err", cause)
	case !endsDir(fault):
		m.logger.Error("a step failed, the log directory stays online", "dir", d.path, "fault", fault, "err", cause)
	case d.setFailure(cause):
		m.background(func() { m.takeOffline(d, cause) })
	}
}

// logFailed is told of a log that refuses changes. Its directory goes offline when the disk has
// failed; otherwise the log is opened again.
func (m *Manager) logFailed(d *dir, p topic.Partition, cause error) {
	if vfs.FaultOf(cause) == vfs.DiskFault {
		m.failSoon(d, cause)
		return
	}
	m.failedLogs.add(p)
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
	d.changing.Lock()
	swept := m.sweep(d)
	m.cfg.Cleaner.DirFailed(d.path, partitionsOf(swept)...)
	for _, e := range swept {
		e.log.Abandon()
	}
	if err := d.unlock(); err != nil {
		m.logger.Warn("cannot remove the lock file", "dir", d.path, "err", err)
	}
	d.changing.Unlock()
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
	for _, e := range m.places.entriesOf(d) {
		if e, ok := m.places.take(e.log.Partition()); ok {
			swept = append(swept, e)
		}
	}
	for _, e := range m.places.allFutures(nil) {
		if _, ok := m.places.entry(e.log.Partition()); e.dir == d || !ok {
			m.mover.takeFuture(e.log.Partition())
			swept = append(swept, e)
		}
	}
	return swept
}
