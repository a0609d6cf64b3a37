package logdir

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// Open creates missing directories, locks them all, looks at what lies there, and finds out which cluster
// and broker they belong to: until that is judged it writes nothing. It loads no log. A directory that fails is offline from the start, which
// Dirs tells; an error means that nothing is open: a directory is locked, belongs
// elsewhere, is configured twice, or none is left, the metadata directory included.
func Open(cfg Config) (*Manager, error) {
	cfg.complete()
	m := &Manager{cfg: cfg, logger: cfg.Logger, previousEpoch: unknownEpoch}
	m.brokerEpoch.Store(unknownEpoch)
	m.places.init()
	m.ofLogs = logRequests{m.deleteLater, m.handOff}
	m.mover.init(m)
	m.scrubber.init(m)
	m.failedLogs.init()
	m.deletions.added = make(chan struct{}, 1)
	if err := m.open(); err != nil {
		return nil, errors.Join(err, m.dirs.unlock())
	}
	return m, nil
}

func (m *Manager) open() error {
	if err := m.addDirs(); err != nil {
		return err
	}
	m.Reconfigure(m.cfg)
	for _, d := range m.dirs {
		if err := m.lockDir(d); err != nil {
			return err
		}
	}
	id, err := m.readMeta()
	if err != nil {
		return err
	}
	if err := errors.Join(m.look(), m.dirs.enough(m.cfg.MetadataDir)); err != nil {
		return err
	}
	if err := m.judge(id); err != nil {
		return err
	}
	if err := m.writeMeta(id); err != nil {
		return err
	}
	return m.dirs.enough(m.cfg.MetadataDir)
}

// addDirs makes the list of directories. One that is only the metadata directory is last.
func (m *Manager) addDirs() error {
	seen := make(map[string]bool)
	for _, path := range m.cfg.Dirs {
		path = filepath.Clean(path)
		if seen[path] {
			return fmt.Errorf("%w: log directory %s is configured twice", ErrDuplicate, path)
		}
		seen[path] = true
		m.dirs = append(m.dirs, newDir(path, true))
	}
	if len(m.dirs) == 0 {
		return fmt.Errorf("%w: none is configured", ErrNoDirectory)
	}
	if path := filepath.Clean(m.cfg.MetadataDir); !seen[path] {
		m.dirs = append(m.dirs, newDir(path, false))
	}
	for _, d := range m.dirs {
		d.disk.Caches, d.disk.RollSeed = m.cfg.Caches, random.Uint64(m.cfg.Random)
	}
	return nil
}

func newDir(path string, holdsLogs bool) *dir {
	d := &dir{path: path, holdsLogs: holdsLogs, brokerEpoch: unknownEpoch}
	d.mu.parked = make(map[topic.Partition]parkedLog)
	d.mu.missing = make(map[topic.Partition]bool)
	return d
}

// lockDir creates and locks a directory. Only a lock that somebody holds is an error: who
// takes another broker's place by mistake must not go on with the other directories.
func (m *Manager) lockDir(d *dir) error {
	err := vfs.MkdirAll(m.cfg.FS, d.path, 0o755)
	if err == nil {
		d.lock, err = m.cfg.FS.Lock(d.file(checkpoint.LockFile))
	}
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("log directory %s is in use by another broker, or configured twice: %w", d.path, err)
	}
	if err != nil {
		return m.failedToOpen(d, err)
	}
	return nil
}

// failedToOpen puts a directory offline before it has served. An error is one of the process, which
// cannot start then.
func (m *Manager) failedToOpen(d *dir, err error) error {
	if vfs.FaultOf(err) == vfs.ProcessFault {
		return err
	}
	m.logger.Error("log directory is offline", "dir", d.path, "err", err)
	d.setFailure(err)
	if err := d.unlock(); err != nil {
		m.logger.Warn("cannot remove the lock file", "dir", d.path, "err", err)
	}
	return nil
}
