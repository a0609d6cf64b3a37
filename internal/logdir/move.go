package logdir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A move takes a partition from one directory to another while it is written. A copy, the
// future log, follows the live one in a directory whose name ends in -future (mover.go).
// What is in quarantine comes along as it is. When both end at the same offset the copy takes the
// place of the live log, in steps that leave every crash state one that the next start understands:
//
//	                                   source        target
//	everything is on disk              t-0           t-0.X-future
//	the copy is marked as one          t-0           t-0.X-future with gregor-copy
//	the copy gets the plain name       t-0           t-0 with gregor-copy
//	the old one is put aside           t-0.Y-delete  t-0 with gregor-copy
//	the mark goes                      t-0.Y-delete  t-0
//
// Of two directories the one with the mark is the copy, and the move goes on; alone it is
// the partition. Kafka, started in the middle, finds two directories of one partition and
// stops; nothing is lost.
const copyName = "gregor-copy"

// Future returns the log of a move under way, or nil.
func (m *Manager) Future(p topic.Partition) *commitlog.Log {
	e, _ := m.future(p)
	return e.log
}

func (m *Manager) future(p topic.Partition) (entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.mu.futures[p]
	return e, ok
}

// futures returns a copy of the map, of the directory or, with nil, of all.
func (m *Manager) futures(d *dir) []entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []entry
	for _, e := range m.mu.futures {
		if d == nil || e.dir == d {
			list = append(list, e)
		}
	}
	return list
}

// putFuture adds the copy of a move. Cleaning is paused while there is one: it follows the
// live log by its end.
func (m *Manager) putFuture(p topic.Partition, e entry) error {
	m.cfg.Cleaner.Pause(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := e.dir.failure(); err != nil {
		m.cfg.Cleaner.Resume(p)
		return err
	}
	m.mu.futures[p] = e
	e.dir.logCount++
	return nil
}

func (m *Manager) takeFuture(p topic.Partition) (entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.mu.futures[p]
	if ok {
		delete(m.mu.futures, p)
		e.dir.logCount--
		m.cfg.Cleaner.Resume(p)
	}
	return e, ok
}

// Move begins to move a partition to a directory, in place of any other move of it. The
// directory it is in ends a move under way. The wish for a partition that is not here is
// noted for its creation, and answered with ErrUnknownPartition. ErrNoDirectory: the target
// is unknown or offline. ErrCordoned: it takes no new logs. ErrMayExist: the partition may be in a
// directory that is offline.
func (m *Manager) Move(p topic.Partition, path string) error {
	defer m.changes.take(p)()
	target := m.onlineAt(path)
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
	live, ok := m.entry(p)
	if target.cordoned.Load() && live.dir != target {
		return fmt.Errorf("%w: %s", ErrCordoned, path)
	}
	if !ok {
		if err := m.mayCreate(p, false); err != nil {
			return err
		}
		m.mu.Lock()
		m.mu.preferred[p] = target
		m.mu.Unlock()
		return fmt.Errorf("%v: %w", p, ErrUnknownPartition)
	}
	future, moving := m.future(p)
	if moving && future.dir == target {
		return nil
	}
	if moving {
		if err := m.cancelMove(p); err != nil {
			return err
		}
	}
	if live.dir == target {
		return nil
	}
	return m.beginMove(p, live, target)
}

func (m *Manager) onlineAt(path string) *dir {
	for _, d := range m.online() {
		if d.path == filepath.Clean(path) {
			return d
		}
	}
	return nil
}

// cancelMove deletes the future log of a partition. The caller has claimed it, and entered its directory.
func (m *Manager) cancelMove(p topic.Partition) error {
	e, ok := m.takeFuture(p)
	if !ok {
		return nil
	}
	m.logger.Info("move is cancelled", "partition", p, "to", e.dir.path)
	return m.discard(e)
}

// discard puts a log aside and queues its removal.
func (m *Manager) discard(e entry) error {
	path := e.dir.file(asideName(e.log.Partition(), deleteSuffix))
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

func (m *Manager) beginMove(p topic.Partition, live entry, target *dir) error {
	name, err := futureName(p)
	if err != nil {
		return err
	}
	o := m.logOptions(target, p, live.log.TopicID(), live.log.Config())
	o.Dir = target.file(name)
	l, err := m.openLog(o)
	if err != nil {
		m.failSoon(target, err)
		return err
	}
	m.logger.Info("move begins", "partition", p, "from", live.dir.path, "to", target.path)
	if err := m.putFuture(p, entry{l, target, -1}); err != nil {
		l.Abandon()
		return err
	}
	m.mover.wake()
	return nil
}

// promote makes the future log of a partition the live one, if it has everything that the
// live one has. Nothing may be appended meanwhile. A nil log says that it is too early, or
// that there is no move any more.
func (m *Manager) promote(p topic.Partition) (*commitlog.Log, error) {
	defer m.changes.take(p)()
	leave, err := m.enter(m.dirsOf([]topic.Partition{p})...)
	if err != nil {
		return nil, nil
	}
	defer leave()
	future, moving := m.future(p)
	live, ok := m.entry(p)
	if !moving || !ok || future.log.Offsets().End != live.log.Offsets().End {
		return nil, nil
	}
	if err := m.nameCopy(p, live, future); err != nil {
		m.failSoon(future.dir, err)
		return nil, err
	}
	if err := m.discard(live); err != nil {
		return nil, err
	}
	m.mu.Lock()
	delete(m.mu.futures, p)
	m.mu.logs[p] = entry{future.log, future.dir, -1}
	live.dir.logCount--
	m.mu.Unlock()
	m.cfg.Cleaner.Resume(p)
	if err := m.unmark(future.dir.file(p.String())); err != nil {
		m.failSoon(future.dir, err)
	}
	err = m.writeCheckpoints(live.dir, recoveryPoints, logStarts, highWatermarks)
	if err == nil {
		err = m.cfg.Cleaner.Forget(live.dir.path, p)
	}
	if err != nil {
		m.failSoon(live.dir, err)
	}
	m.logger.Info("moved", "partition", p, "from", live.dir.path, "to", future.dir.path)
	return future.log, nil
}

// nameCopy brings a copy that is complete to disk and gives it the plain name, marked.
func (m *Manager) nameCopy(p topic.Partition, live, future entry) error {
	o := live.log.Offsets()
	future.log.SetHighWatermark(o.HighWatermark)
	if err := future.log.IncrementLogStart(o.LogStart); err != nil {
		return err
	}
	if err := future.log.TakeOver(live.log); err != nil {
		return err
	}
	if err := future.log.Flush(); err != nil {
		return err
	}
	if err := m.writeCheckpoints(future.dir, recoveryPoints, logStarts, highWatermarks); err != nil {
		return err
	}
	if err := m.cfg.Cleaner.Carry(p, live.dir.path, future.dir.path); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(m.cfg.FS, filepath.Join(future.log.Dir(), copyName), nil); err != nil {
		return err
	}
	if err := future.log.RenameDir(future.dir.file(p.String())); err != nil {
		return err
	}
	return m.cfg.FS.SyncDir(future.dir.path)
}

func (m *Manager) unmark(dir string) error {
	if err := m.cfg.FS.Remove(filepath.Join(dir, copyName)); err != nil {
		return err
	}
	return m.cfg.FS.SyncDir(dir)
}

// settleCopies looks at directories with a plain name and a mark, which a stop in the middle
// of an exchange leaves; one that was closed as a live log has no mark. While the partition has
// another directory they are copies still; while it may have one, in a directory that is offline,
// nobody knows.
func (m *Manager) settleCopies(dirs []*dir, found []listing) {
	count := make(map[topic.Partition]int)
	for _, l := range found {
		for _, at := range l.live {
			count[at.Partition]++
		}
	}
	for i, d := range dirs {
		found[i].live = slices.DeleteFunc(found[i].live, func(at FoundPartition) bool {
			if d.failure() != nil || found[i].states[at.Partition] != nil || !m.isMarked(at.Path) {
				return false
			}
			var err error
			gone := true
			switch {
			case count[at.Partition] > 1:
				at.Path, err = m.renameBack(d, at)
				found[i].future = append(found[i].future, at)
			case m.someOffline():
				m.logger.Error("partition is left out: it was moving, and may be in a directory that is offline", "dir", at.Path)
				d.park(at.Partition, at.Path, ErrMayExist)
			default:
				m.logger.Info("move is completed", "partition", at.Partition, "dir", at.Path)
				gone, err = false, m.unmark(at.Path)
			}
			if err != nil {
				m.failed(d, err)
			}
			return gone
		})
	}
}

func (m *Manager) isMarked(dir string) bool {
	_, err := m.cfg.FS.Stat(filepath.Join(dir, copyName))
	return err == nil
}

func (m *Manager) someOffline() bool {
	return slices.ContainsFunc(m.dirs, func(d *dir) bool { return d.holdsLogs && d.failure() != nil })
}

// renameBack gives a copy the name of one.
func (m *Manager) renameBack(d *dir, at FoundPartition) (string, error) {
	name, err := futureName(at.Partition)
	if err != nil {
		return at.Path, err
	}
	path := d.file(name)
	if err := m.cfg.FS.Rename(at.Path, path); err != nil {
		return at.Path, err
	}
	return path, m.cfg.FS.SyncDir(d.path)
}

// loadFutures opens the copies once all live logs are there.
func (l *loading) loadFutures(ctx context.Context, dirs []*dir, found []listing) {
	for i, d := range dirs {
		for _, at := range found[i].future {
			if ctx.Err() != nil || d.failure() != nil {
				break
			}
			if err := l.loadFuture(d, at); err != nil {
				l.m.failed(d, err)
			}
		}
	}
}

// trimCopy cuts a copy where the live log ends: what is beyond is from before a crash, and not of the
// live log any more. After a crash damage may be the copy's own, and is copied again: nobody was told
// that the copy has anything.
func trimCopy(copied, live *commitlog.Log, clean bool) error {
	end := live.Offsets().End
	if damages := copied.Quarantine(); !clean && len(damages) > 0 {
		end = min(end, damages[0].First)
	}
	if copied.Offsets().End <= end {
		return nil
	}
	return copied.TruncateTo(end)
}

// loadFuture opens the future log of a move that the last stop interrupted.
func (l *loading) loadFuture(d *dir, at FoundPartition) error {
	m, p := l.m, at.Partition
	live, ok := m.entry(p)
	if !ok {
		d.park(p, at.Path, errFuture)
		m.logger.Warn("copy of a partition that is not there, left alone", "dir", at.Path)
		return nil
	}
	o := m.logOptions(d, p, live.log.TopicID(), live.log.Config())
	o.Dir, o.Clean = at.Path, d.startedClean
	d.prove(&o, p)
	log, err := m.openLog(o)
	if err == nil {
		err = trimCopy(log, live.log, d.startedClean)
	}
	if errors.Is(err, commitlog.ErrStopped) {
		return nil
	}
	if isDamage(err) {
		m.logger.Warn("damaged copy is removed, the move begins again", "partition", p, "dir", at.Path, "err", err)
		m.deleteLater(0, func() { m.removeAll(at.Path) })
		d.unpark(p)
		return m.beginMove(p, live, d)
	}
	if err != nil {
		return err
	}
	d.loaded(log)
	m.logger.Info("move goes on", "partition", p, "from", live.dir.path, "to", d.path, "offset", log.Offsets().End)
	return m.putFuture(p, entry{log, d, -1})
}

// moved tells the owner that a partition lies in another directory.
func (m *Manager) moved(p topic.Partition, l *commitlog.Log) {
	if e, ok := m.entry(p); ok && m.cfg.OnMoved != nil {
		m.cfg.OnMoved(p, l.TopicID(), e.dir.id)
	}
}
