package logdir

import (
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
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

// cancel deletes the future log of a partition. The caller has claimed it, and entered its directory.
func (v *mover) cancel(p topic.Partition) error {
	e, ok := v.takeFuture(p)
	if !ok {
		return nil
	}
	v.logger.Info("move is cancelled", "partition", p, "to", e.dir.path)
	return v.keeper.discard(e)
}

func (v *mover) begin(p topic.Partition, live entry, target *dir) error {
	name, err := futureName(v.random, p)
	if err != nil {
		return err
	}
	l, err := v.keeper.openCopy(target, name, live.log)
	if err != nil {
		v.keeper.failSoon(target, err)
		return err
	}
	v.logger.Info("move begins", "partition", p, "from", live.dir.path, "to", target.path)
	if err := v.putFuture(p, entry{l, target, -1}); err != nil {
		l.Abandon()
		return err
	}
	v.wake()
	return nil
}

// promote makes the future log of a partition the live one, if it has everything that the
// live one has. Nothing may be appended meanwhile. A nil log says that it is too early, or
// that there is no move any more.
func (v *mover) promote(p topic.Partition) (*commitlog.Log, error) {
	leave, err := v.keeper.change(p)
	if err != nil {
		return nil, nil
	}
	defer leave()
	future, moving := v.places.future(p)
	live, ok := v.places.entry(p)
	if !moving || !ok || future.log.Offsets().End != live.log.Offsets().End {
		return nil, nil
	}
	if err := v.nameCopy(p, live, future); err != nil {
		v.keeper.failSoon(future.dir, err)
		return nil, err
	}
	if err := v.keeper.discard(live); err != nil {
		return nil, err
	}
	v.places.promote(p)
	v.cleaner.Resume(p)
	if err := v.unmark(future.dir.file(p.String())); err != nil {
		v.keeper.failSoon(future.dir, err)
	}
	err = v.keeper.writeCheckpoints(live.dir, recoveryPoints, logStarts, highWatermarks)
	if err == nil {
		err = v.cleaner.Forget(live.dir.path, p)
	}
	if err != nil {
		v.keeper.failSoon(live.dir, err)
	}
	v.logger.Info("move is complete", "partition", p, "from", live.dir.path, "to", future.dir.path)
	return future.log, nil
}

// nameCopy brings a copy that is complete to disk and gives it the plain name, marked.
func (v *mover) nameCopy(p topic.Partition, live, future entry) error {
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
	if err := v.keeper.writeCheckpoints(future.dir, recoveryPoints, logStarts, highWatermarks); err != nil {
		return err
	}
	if err := v.cleaner.Carry(p, live.dir.path, future.dir.path); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(v.fs, filepath.Join(future.log.Dir(), checkpoint.CopyMarker), nil); err != nil {
		return err
	}
	if err := future.log.RenameDir(future.dir.file(p.String())); err != nil {
		return err
	}
	return v.fs.SyncDir(future.dir.path)
}

func (v *mover) unmark(dir string) error {
	if err := v.fs.Remove(filepath.Join(dir, checkpoint.CopyMarker)); err != nil {
		return err
	}
	return v.fs.SyncDir(dir)
}

// resolveCopies looks at directories with a plain name and a mark, which a stop in the middle
// of an exchange leaves; one that was closed as a live log has no mark. While the partition has
// another directory they are copies still; while it may have one, in a directory that is offline,
// nobody knows.
func (v *mover) resolveCopies(dirs []*dir, found []listing) {
	count := make(map[topic.Partition]int)
	for _, l := range found {
		for _, at := range l.live {
			count[at.Partition]++
		}
	}
	for i, d := range dirs {
		found[i].live = slices.DeleteFunc(found[i].live, func(at FoundPartition) bool {
			if d.failure() != nil || found[i].states[at.Partition] != nil || !v.isMarked(at.Path) {
				return false
			}
			var err error
			gone := true
			switch {
			case count[at.Partition] > 1:
				at.Path, err = v.renameBack(d, at)
				found[i].future = append(found[i].future, at)
			case v.dirs.someOffline():
				v.logger.Error("partition is left out: it was moving, and may be in a directory that is offline", "dir", at.Path)
				d.park(at.Partition, at.Path, ErrMayExist)
			default:
				v.logger.Info("interrupted move is complete", "partition", at.Partition, "dir", at.Path)
				gone, err = false, v.unmark(at.Path)
			}
			if err != nil {
				v.keeper.failed(d, err)
			}
			return gone
		})
	}
}

func (v *mover) isMarked(dir string) bool {
	_, err := v.fs.Stat(filepath.Join(dir, checkpoint.CopyMarker))
	return err == nil
}

// renameBack gives a copy the name of one.
func (v *mover) renameBack(d *dir, at FoundPartition) (string, error) {
	name, err := futureName(v.random, at.Partition)
	if err != nil {
		return at.Path, err
	}
	path := d.file(name)
	if err := v.fs.Rename(at.Path, path); err != nil {
		return at.Path, err
	}
	return path, v.fs.SyncDir(d.path)
}

// moved tells the owner that a partition lies in another directory.
func (v *mover) moved(p topic.Partition, l *commitlog.Log) {
	if e, ok := v.places.entry(p); ok && v.onMoved != nil {
		v.onMoved(p, l.TopicID(), e.dir.id)
	}
}
