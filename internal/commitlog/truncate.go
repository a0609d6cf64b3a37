package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// PrepareTruncation lowers what says that there are records from offset on: recovery point and high
// watermark. Write both to their checkpoints before TruncateTo that offset, or with 0 before
// TruncateFullyAndStartAt, so that after a crash in the middle nothing proves that what is gone was
// lost.
func (l *Log) PrepareTruncation(offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.voidSyncsLocked(offset)
	if offset < l.offsets.Load().HighWatermark {
		l.offsets.moveHighWatermark(offset, l.mu.producers)
	}
}

// TruncateTo makes offset the log end, if it is below it. A batch that holds offset goes as
// a whole, so that offsets may be missing below the new end. What is gone is gone for good
// when TruncateTo returns; write the recovery point to its checkpoint then.
func (l *Log) TruncateTo(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("%v: %w: truncate to %d", l.partition, ErrOffsetOutOfRange, offset)
	}
	if err := l.prepare(); err != nil {
		return err
	}
	l.files.Lock()
	defer l.files.Unlock()
	// Damage in front of the new end has to be known: bytes that tell of it may go.
	if r, err := l.Read(offset-1, 1, ReadLogEnd, segment.WholeFirst); err == nil {
		r.Slice.Release()
	}
	l.mu.Lock()
	err := l.truncateLocked(offset)
	l.unlockRolled()
	if err != nil {
		return l.fail("truncate", err)
	}
	return l.syncEpochs()
}

func (l *Log) truncateLocked(offset int64) error {
	if err := l.usableLocked(); err != nil {
		return err
	}
	o := l.offsets.Load()
	if offset >= o.End {
		l.epochs.truncateFromEnd(o.End) // KAFKA-10706: epochs that wrote nothing
		return nil
	}
	if offset < o.segments[0].BaseOffset() {
		return l.restartLocked(offset, offset)
	}
	l.logger.Info("log truncated", "partition", l.partition, "from", o.End, "to", offset)
	kept := floorSegment(o.segments, offset) + 1
	active := o.segments[kept-1]
	end, err := placeOf(active, offset)
	if err != nil {
		return err
	}
	ongoing, err := l.noteCutLocked(o.segments, kept, offset)
	if err != nil {
		return err
	}
	next := l.shrinkLocked(o.segments[:kept], end) // before the files: readers must not miss what they were promised
	if err := l.forgetLocked(next.segments, offset); err != nil {
		return err
	}
	if err := l.cutFilesLocked(active, o.segments[kept:], offset); err != nil {
		return err
	}
	l.voidSyncsLocked(l.offsets.data)
	l.startSegmentLocked(active.BaseOffset(), l.config.Load())
	l.cutFactsLocked(next.segments, offset)
	if err := l.resetProducersLocked(next, ongoing); err != nil {
		return err
	}
	if err := l.cutLostLocked(offset, l.mu.producers); err != nil {
		return err
	}
	return l.rollBehindLossLocked(active, offset)
}

// shrinkLocked publishes an earlier end of the log, in the last of the segments that are kept.
func (l *Log) shrinkLocked(kept []*segment.Segment, end position) *Offsets {
	active := kept[len(kept)-1]
	l.voidSyncsLocked(end.offset)
	l.mu.unsynced = slices.DeleteFunc(l.mu.unsynced, func(s *segment.Segment) bool {
		return s == active || !slices.Contains(kept, s)
	})
	next := l.offsets.next()
	next.segments = slices.Clone(kept)
	next.end = end
	next.LogStart = min(next.LogStart, end.offset)
	l.mu.producers.ended = nil // of the old end; made anew with the producers
	l.offsets.publish(next, l.mu.producers)
	return next
}

// cutFilesLocked removes what lies behind offset: segments, last one first, and the end of the one that
// is active from now on.
func (l *Log) cutFilesLocked(active *segment.Segment, behind []*segment.Segment, offset int64) error {
	gone := slices.Clone(behind)
	slices.Reverse(gone) // a crash in between must leave no hole
	if err := l.retire(l.dirLocked(), gone); err != nil {
		return err
	}
	if err := l.soundTxnsLocked(active); err != nil {
		return err
	}
	if _, err := active.TruncateTo(offset); err != nil {
		return err
	}
	if err := active.Flush(); err != nil {
		return err
	}
	var err error
	l.offsets.data, err = active.NextOffset()
	return err
}

// rollBehindLossLocked begins a new segment if the offsets in front of offset are lost. Only between two
// of them a loss is known as one. A recovery point may be in there already, and then nobody looks at
// the old one again.
func (l *Log) rollBehindLossLocked(active *segment.Segment, offset int64) error {
	if !l.losesEndLocked(active, offset) {
		return nil
	}
	if err := errors.Join(active.Seal(), active.Flush()); err != nil {
		return err
	}
	if err := l.rollLocked(offset, "loss", l.config.Load()); err != nil {
		return err
	}
	l.offsets.data = offset
	return nil
}

// losesEndLocked reports whether the offsets in front of offset, where a segment was cut, are lost.
func (l *Log) losesEndLocked(s *segment.Segment, offset int64) bool {
	known := l.mu.losses.latest()
	if known.End != offset || offset <= s.BaseOffset() {
		return false
	}
	if !slices.ContainsFunc(s.Damages(), func(d segment.Damage) bool { return d.Size == 0 }) {
		s.AddLoss(known.First, offset, errLost)
	}
	return true
}

// forgetLocked removes what proves that there was something behind offset, before that goes: else a
// crash in between would leave a loss. Of snapshots, the last start may have removed some as well.
func (l *Log) forgetLocked(segments []*segment.Segment, offset int64) error {
	l.epochs.truncateFromEnd(offset)
	if err := l.syncEpochsSoon(); err != nil {
		return err
	}
	if err := l.mu.snapshots.removeIf(func(o int64) bool { return o > offset }); err != nil {
		return err
	}
	if err := l.storeLossesLocked(lossesBelow(segments, offset)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dirLocked())
}

// lossesBelow returns what stays lost when all from offset on goes. Damaged bytes that go leave
// nothing but the offsets that they had.
func lossesBelow(segments []*segment.Segment, offset int64) (list []checkpoint.Loss) {
	for _, s := range segments {
		for _, d := range s.Damages() {
			if d.First < offset && (d.Size == 0 || offset < d.End) {
				list = append(list, checkpoint.Loss{First: d.First, End: min(d.End, offset)})
			}
		}
	}
	return list
}

// placeOf returns the place that offset has, or would have, in s.
func placeOf(s *segment.Segment, offset int64) (position, error) {
	p, ok, err := s.Translate(offset, 0)
	if err != nil {
		return noPosition, err
	}
	if !ok {
		return position{offset, s, s.Size()}, nil
	}
	return position{offset, s, p.Position}, nil
}

// voidSyncsLocked takes back what is known to be on disk from offset on, and makes syncs
// under way count for nothing.
func (l *Log) voidSyncsLocked(offset int64) {
	l.mu.truncations++
	l.offsets.truncated(offset)
}

// TruncateFullyAndStartAt removes all data and makes the log empty at offset, as a follower
// does whose leader has nothing older.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("%v: %w: start at %d", l.partition, ErrOffsetOutOfRange, offset)
	}
	if err := l.prepare(); err != nil {
		return err
	}
	l.files.Lock()
	defer l.files.Unlock()
	l.mu.Lock()
	err := l.usableLocked()
	if err == nil {
		err = l.restartLocked(offset, offset)
	}
	l.mu.Unlock()
	if err != nil {
		return l.fail("truncate", err)
	}
	return l.syncEpochs()
}

// restartLocked replaces all segments by an empty one at base.
func (l *Log) restartLocked(base, logStart int64) error {
	o := l.offsets.Load()
	l.logger.Info("log truncated fully", "partition", l.partition, "from", o.End, "to", base)
	gone := slices.Clone(o.segments)
	slices.Reverse(gone)
	if err := l.retire(l.dirLocked(), gone); err != nil {
		return err
	}
	if err := l.mu.snapshots.removeIf(func(int64) bool { return true }); err != nil {
		return err
	}
	if err := l.storeLossesLocked(nil); err != nil {
		return err
	}
	s, err := l.createCompleteLocked(base, l.config.Load())
	if err != nil {
		return err
	}
	l.voidSyncsLocked(base)
	l.facts.Store(nil)
	if l.lost.Load() != nil { // otherwise a reader of the file finds that it is of other records
		if err := l.cutLostLocked(0, nil); err != nil {
			return err
		}
	}
	l.mu.unsynced = nil
	l.epochs.clear()
	l.mu.producers, l.offsets.data = newProducerState(base), base
	next := l.offsets.next()
	next.segments = []*segment.Segment{s}
	next.end = position{base, s, 0}
	next.LogStart = logStart
	next.highWatermark = next.end
	l.offsets.publish(next, l.mu.producers)
	return nil
}

// retire takes files of segments that are not in the log any more out of the way: renamed
// and durable one by one, in the order given, and deleted after file.delete.delay.ms.
// Readers that still have them go on reading.
func (l *Log) retire(dir string, segments []*segment.Segment) error {
	for _, s := range segments {
		if err := s.ChangeSuffix("", segment.DeletedSuffix); err != nil {
			return err
		}
		if err := l.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	l.removeLater(segments)
	return nil
}

// removeLater deletes files that are renamed to .deleted, after file.delete.delay.ms and when
// no view needs them.
func (l *Log) removeLater(segments []*segment.Segment) {
	if len(segments) == 0 {
		return
	}
	delay := time.Duration(l.config.Load().FileDeleteDelayMs) * time.Millisecond
	remove := func() {
		l.flush.await() // one that runs may still have the segments
		for _, s := range segments {
			if err := s.Remove(); err != nil {
				l.logger.Warn("file not deleted", "partition", l.partition, "err", err)
			}
		}
	}
	l.deleteLater(delay, func() { l.pins.whenFree(remove) })
}
