package logdir

import (
	"context"
	"errors"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// loadFutures opens the copies once all live logs are there.
func (l *loader) loadFutures(ctx context.Context, dirs []*dir, found []listing) {
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

// loadFuture opens the future log of a move that the last stop interrupted.
func (l *loader) loadFuture(d *dir, at FoundPartition) error {
	m, p := l.m, at.Partition
	live, ok := m.places.entry(p)
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
		return m.mover.begin(p, live, d)
	}
	if err != nil {
		return err
	}
	d.loaded(log)
	m.logger.Info("move goes on", "partition", p, "from", live.dir.path, "to", d.path, "offset", log.Offsets().End)
	return m.mover.putFuture(p, entry{log, d, -1})
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
