package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

// errNotFollowing ends what a fetcher does to a partition that follows in another epoch, or leads, or is gone.
var errNotFollowing = errors.New("not a follower in this leader epoch any more")

// following runs f on the log while the partition is a follower in a leader epoch: until f returns it stays one.
func (p *Partition) following(epoch int32, f func(log *commitlog.Log, v *View) error) error {
	p.follows.Lock()
	defer p.follows.Unlock()
	log, s, err := p.hosted()
	switch {
	case s.Removed || s.Leading || s.LeaderEpoch != epoch:
		return errNotFollowing
	case err != nil:
		return err
	}
	v := p.wideView(log, log.Offsets())
	return f(log, &v)
}

// follow finds out where the partition begins to follow in a leader epoch.
func (p *Partition) follow(f *followed) error {
	return p.following(f.LeaderEpoch, func(log *commitlog.Log, v *View) error {
		if err := p.cutDamage(log, v); err != nil {
			return err
		}
		w := p.wideView(log, log.Offsets())
		*f = beginFollowing(f.LeaderEpoch, log.LatestEpoch(), &w)
		return nil
	})
}

// cutDamage truncates a log to where its first damage begins, which the leader then fills again: as a loss of power leaves
// it, for one. Nothing is cut while others may count on this replica.
func (p *Partition) cutDamage(log *commitlog.Log, v *View) error {
	damage := log.Quarantine()
	if len(damage) == 0 || slices.Contains(p.State().ISR, p.topic.manager.o.NodeID) {
		return nil
	}
	to := max(damage[0].First, v.LogStart)
	p.topic.manager.o.Logger.Warn("damage is cut off, the leader fills it again", "partition", p.ID(), "from", to, "log end", v.End)
	return p.cut(log, to, v)
}

// truncateToHighWatermark cuts a log of which no more is known to be the leader's.
func (p *Partition) truncateToHighWatermark(f *followed) error {
	return p.following(f.LeaderEpoch, func(log *commitlog.Log, v *View) error {
		if err := p.cut(log, v.HW, v); err != nil {
			return err
		}
		f.phase = phaseFetching
		f.goOn(v.HW, log.LatestEpoch())
		return nil
	})
}

// truncateDiverging cuts what the leader, whose epoch ends where leader says, does not have.
func (p *Partition) truncateDiverging(f *followed, leader EpochEnd) error {
	return p.following(f.LeaderEpoch, func(log *commitlog.Log, v *View) error {
		var ours EpochEnd
		ours.Epoch, ours.End = log.EpochEndOffset(leader.Epoch)
		t := TruncationFor(leader, ours, v)
		t.Offset = max(t.Offset, v.LogStart)
		if t.Offset < v.HW {
			p.topic.manager.o.Logger.Warn("truncation below the high watermark", "partition", p.ID(), "to", t.Offset, "high watermark", v.HW, "leader epoch", f.LeaderEpoch)
		}
		if err := p.cut(log, t.Offset, v); err != nil {
			return err
		}
		f.goOn(log.Offsets().End, log.LatestEpoch())
		return nil
	})
}

// restart goes on in a leader's log that begins and ends elsewhere than ours.
func (p *Partition) restart(f *followed, start, end int64) error {
	return p.following(f.LeaderEpoch, func(log *commitlog.Log, v *View) error {
		r := RestartFor(start, end, v)
		var err error
		switch {
		case r.Wipe:
			err = p.wipe(r.Offset)
		case r.Truncate:
			p.topic.manager.o.Logger.Warn("the leader's log is shorter", "partition", p.ID(), "its end", end, "our end", v.End)
			err = p.cut(log, r.Offset, v)
		}
		if err == nil {
			f.goOn(log.Offsets().End, log.LatestEpoch())
		}
		return err
	})
}

// cut truncates the log, or drops leader epochs in which nothing was written.
func (p *Partition) cut(log *commitlog.Log, offset int64, v *View) error {
	if offset >= v.End {
		return log.TruncateTo(offset)
	}
	if err := p.topic.manager.o.Logs.TruncateTo(p.ID(), offset); err != nil {
		return err
	}
	p.fetches.WakeAll() // consumers of followers, whose offset may be gone
	return nil
}

func (p *Partition) wipe(offset int64) error {
	defer p.fetches.WakeAll()
	return p.topic.manager.o.Logs.TruncateFullyAndStartAt(p.ID(), offset)
}

// take appends what the leader answered, and takes over its watermarks.
func (p *Partition) take(f *followed, a *AnsweredPartition) error {
	return p.following(f.LeaderEpoch, func(log *commitlog.Log, v *View) error {
		if f.Offset != v.End {
			return fmt.Errorf("%w: fetched from %d, the log ends at %d", errNotFollowing, f.Offset, v.End)
		}
		err := p.takeRecords(log, a.Records, f)
		o := log.Offsets()
		w := p.wideView(log, o)
		moved := log.IncrementHighWatermark(FollowerHighWatermark(a.HighWatermark, &w))
		w.HW = log.Offsets().HighWatermark
		if start := FollowerLogStart(a.LogStart, &w); err == nil && start > w.LogStart {
			err = log.IncrementLogStart(start)
			moved = true
		}
		f.goOn(o.End, log.LatestEpoch())
		if moved {
			p.fetches.WakeAll()
		}
		return err
	})
}

// takeRecords appends records as they came, no more at once than a segment holds. Batches of a later epoch than that
// of the fetch are left out with all behind them (KAFKA-18723), and so is half a batch.
func (p *Partition) takeRecords(log *commitlog.Log, records []byte, f *followed) error {
	most := log.Config().SegmentBytes
	for {
		n, err := wholeBatches(records, most, f.LeaderEpoch)
		if err != nil || n == 0 {
			return err
		}
		if err := p.takeSet(log, records[:n], f); err != nil {
			return err
		}
		records = records[n:]
	}
}

// wholeBatches returns the size of the first batches of a set up to an epoch, which is most together, unless one is
// larger.
func wholeBatches(set []byte, most int, maxEpoch int32) (size int, err error) {
	for size < len(set) {
		b, err := record.First(set[size:])
		switch {
		case errors.Is(err, record.ErrShort):
			return size, nil
		case err != nil && size == 0:
			return 0, err
		case err != nil || b.LeaderEpoch() > maxEpoch || size > 0 && size+b.Size() > most:
			return size, nil
		}
		size += b.Size()
	}
	return size, nil
}

// takeSet appends one set. An empty log may begin within it: the leader's begins in the middle of a batch.
func (p *Partition) takeSet(log *commitlog.Log, set []byte, f *followed) error {
	err := p.appendSent(set, f.LeaderEpoch)
	var unexpected *commitlog.UnexpectedOffsetError
	if !errors.As(err, &unexpected) {
		return err
	}
	o := log.Offsets()
	if o.LogStart != o.End || unexpected.FirstOffset >= o.End || unexpected.LastOffset < o.End {
		return err
	}
	if err := p.wipe(unexpected.FirstOffset); err != nil {
		return err
	}
	return p.appendSent(set, f.LeaderEpoch)
}

// appendSent appends to the log that the partition has now: a move between directories replaces it.
func (p *Partition) appendSent(set []byte, epoch int32) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, _, err := p.hosted()
	if err != nil {
		return err
	}
	_, err = log.AppendAsFollower(set, epoch)
	return err
}
