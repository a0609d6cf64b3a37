package commitlog

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// errTurned asks to begin again: see recovery.turned.
var errTurned = errors.New("a bit of the last base offset has turned round")

// check recovers the segments from the recovery point on.
func (r *recovery) check() error {
	i, err := r.checkedFrom()
	if err != nil {
		return err
	}
	n, wellEnded, err := r.recoverFrom(i)
	if err != nil {
		return err
	}
	foreign := r.segments[n:]
	r.segments = r.segments[:n]
	if err := r.putAside(foreign); err != nil {
		return err
	}
	r.goOn(wellEnded)
	if err := r.findUnbegun(); err != nil {
		return err
	}
	if err := r.restoreProducers(); err != nil {
		return err
	}
	return r.seal()
}

// checkedFrom returns the segment that holds the recovery point, and learns from those before it
// where it goes on and what its producers did.
func (r *recovery) checkedFrom() (int, error) {
	l := r.log
	logStart := max(r.logStart, r.segments[0].BaseOffset())
	i := max(0, floorSegment(r.segments, r.point))
	r.recovered = r.segments[i].BaseOffset()
	r.guard(i)
	// Snapshots above the recovery point may be of records that a truncation or the crash took.
	l.mu.snapshots.doubtFrom(r.recovered + 1)
	before := func(offset int64) bool { return !r.unbegun[offset] }
	contradiction := func(state *ProducerState) (string, error) {
		return r.contradictedInFront(r.segments[:i], state, before)
	}
	err := r.dropContradicted(logStart, r.recovered, contradiction)
	if err != nil {
		return 0, err
	}
	if r.producers, err = l.replayProducers(r.segments[:i], logStart, max(logStart, r.recovered)); err != nil {
		return 0, err
	}
	r.end, err = r.endBefore(i)
	return i, err
}

// recoverFrom recovers the segments from i on, up to a torn one or the first that is not of this
// log, which it returns. wellEnded says that the last one that is was found as a roll or a stop
// leaves it.
func (r *recovery) recoverFrom(i int) (n int, wellEnded bool, err error) {
	count := r.meter.add(r.segments[i:])
	defer count.end()
	for ; i < len(r.segments); i++ {
		if i > 0 && r.segments[i].BaseOffset() > r.end {
			if ok, err := r.rolled(i, r.end, wellEnded); err != nil || !ok {
				return i, wellEnded, err
			}
		}
		if err := r.noteGap(i); err != nil {
			return i, wellEnded, err
		}
		torn := false
		if wellEnded, torn, err = r.recoverNext(i, count); err != nil || torn {
			return i + 1, wellEnded, err
		}
	}
	return i, wellEnded, nil
}

// noteGap notes what is lost in front of segment i.
func (r *recovery) noteGap(i int) error {
	base := r.segments[i].BaseOffset()
	if r.isHole(i) {
		r.losses.add(r.end, base, errLost)
	}
	if i == 0 || base <= r.end {
		return nil
	}
	if err := r.noteLostEnd(r.segments[i-1], base); err != nil {
		return err
	}
	if r.losses.touch(r.end, base) {
		r.producers.damaged(goneStretch(r.end, base), nil)
	}
	return nil
}

// recoverNext recovers segment i, and reports whether it ended as its indexes say, and whether a
// torn tail was cut.
func (r *recovery) recoverNext(i int, count *recoveryCount) (wellEnded, torn bool, err error) {
	l, s, size := r.log, r.segments[i], r.segments[i].Size()
	cut, err := r.recoverSegment(i, count)
	if err != nil {
		return false, false, err
	}
	wellEnded = cut == 0 && !r.bad && s.Size() > 0 && !r.longer
	count.endSegment(size)
	l.mu.unsynced = append(l.mu.unsynced, s)
	if cut == 0 {
		return wellEnded, false, nil
	}
	l.bytesCut.Add(cut)
	l.logger.Warn("torn tail is cut", "partition", l.partition, "segment", s.BaseOffset(), "bytes", cut, "end", r.end)
	return wellEnded, true, s.Flush() // a second crash must not bring back what was cut, behind new records
}

// wasLonger reports whether the index files of segment i, which ends with the batch that was read last,
// lead beyond that. Nobody asks where nothing claims that the log had come further: see provenEnd.
func (r *recovery) wasLonger(i int) (bool, error) {
	s := r.segments[i]
	e := r.evidence(r.end, false)
	if i+1 < len(r.segments) || slices.Max(e.claims[:]) <= r.end {
		return false, nil
	}
	position, offset, err := s.Indexed()
	return position >= s.Size() || offset >= r.end, err
}

// seal seals all segments but the active one, and writes what the producers did.
func (r *recovery) seal() error {
	l := r.log
	if !r.begins {
		l.mu.unsynced = l.mu.unsynced[:max(0, len(l.mu.unsynced)-1)] // the last one is active
	}
	for _, s := range l.mu.unsynced {
		if err := s.Seal(); err != nil {
			return err
		}
	}
	r.point = min(r.point, r.end)
	if err := r.dropStraySnapshots(); err != nil {
		return err
	}
	if err := l.mu.snapshots.write(r.producers); err != nil {
		return err
	}
	return l.mu.snapshots.dropDoubted()
}

// endBefore returns where the segment before i ends, or segment 0 begins.
func (r *recovery) endBefore(i int) (int64, error) {
	if i == 0 {
		return r.segments[0].BaseOffset(), nil
	}
	return r.segments[i-1].NextOffset()
}

// isHole reports whether records between the end so far and segment i were lost in the
// crash with all their bytes: a tail, or a whole segment, that had not reached the disk when
// the ones behind it had. Below the recovery point and in compacted logs, gaps are where records were removed;
// a gap too large for one segment is one that a roll or a split has named.
func (r *recovery) isHole(i int) bool {
	if i == 0 || r.log.config.Load().Compact {
		return false
	}
	base := r.segments[i].BaseOffset()
	return base > r.end && base > r.point && base-r.segments[i-1].BaseOffset() <= math.MaxInt32
}

// recoverSegment checks segment i and moves the end behind what is good of it.
func (r *recovery) recoverSegment(i int, count *recoveryCount) (cut int64, err error) {
	l, s, size := r.log, r.segments[i], r.segments[i].Size()
	r.end, r.tail, r.bad, r.longer = max(r.end, s.BaseOffset()), false, false, false
	if err := r.snapshotAt(s.BaseOffset()); err != nil {
		return 0, err
	}
	at := position{segment: s}
	lost, err := r.beginLosses(s)
	if err != nil {
		return 0, err
	}
	r.made, r.stored = nil, lost.aborted
	indexes, err := r.witness(i)
	if err != nil {
		return 0, err
	}
	cut, err = s.Recover(func(found segment.Located) error {
		b := found.Batch
		last := found.Position+int64(b.Size()) == size
		if last && i+1 == len(r.segments) && r.isTurned(b) {
			r.turned = b.BaseOffset()
			return errTurned
		}
		if err := lost.before(found, r.end); err != nil {
			return err
		}
		r.noteEpoch(b)
		at.offset, at.pos = b.BaseOffset(), found.Position
		if err := r.noteProducer(b, at); err != nil {
			return err
		}
		r.end = b.NextOffset()
		r.producers.end = max(r.producers.end, r.end)
		if last { // its indexes are made anew behind it
			if r.longer, err = r.wasLonger(i); err != nil {
				return err
			}
		}
		return count.read(found.Position)
	}, r.bound(i), func(first int64) (int64, bool, error) { return r.tailEnd(i, first) })
	if errors.Is(err, segment.ErrOffsetOverflow) {
		return 0, &overflowError{s, err}
	}
	if err != nil {
		return 0, fmt.Errorf("%v: recover: %w", l.partition, err)
	}
	for _, d := range s.Damages() {
		r.end = max(r.end, d.End)
	}
	if err := lost.atEnd(); err != nil {
		return 0, err
	}
	if err := r.noteIndexed(i, indexes); err != nil {
		return 0, err
	}
	if err := r.narrow(s); err != nil {
		return 0, err
	}
	r.producers.end = max(r.producers.end, r.end)
	l.setFactsLocked(r.segments, s, &txnFacts{open: r.producers.openTxns()})
	return cut, nil
}

// witness reads what the indexes of segment i say, nil for the last one: of that they say nothing after an
// unclean stop, see cleanEnd.
func (r *recovery) witness(i int) (*segment.IndexWitness, error) {
	if i+1 == len(r.segments) {
		return nil, nil
	}
	return r.segments[i].IndexWitness()
}

// noteIndexed notes that the end of segment i, in front of another one, is lost, if its indexes were longer.
func (r *recovery) noteIndexed(i int, indexes *segment.IndexWitness) error {
	if indexes == nil {
		return nil
	}
	base := r.segments[i+1].BaseOffset()
	end, err := r.segments[i].EndBy(indexes, r.end, base)
	if end > 0 {
		r.losses.add(r.end, base, fmt.Errorf("%w: the indexes know of them up to %d", segment.ErrEndLost, end))
	}
	return err
}

// bound returns what all offsets of segment i are below.
func (r *recovery) bound(i int) int64 {
	if i+1 < len(r.segments) {
		return r.segments[i+1].BaseOffset()
	}
	return r.turned
}

// turnedMin is how far a bit leads a batch away at least that isTurned tells from a gap.
const turnedMin = 1 << 16

// isTurned reports whether one bit of the base offset of the last batch, which has no checksum, leads it
// far away from where everything that is known says that the log ended, and where the batch in front of it
// does. A truncation inside of a batch, and compaction of what a follower gets, leave short gaps.
func (r *recovery) isTurned(b record.Batch) bool {
	if b.Magic() < 2 && b.Codec() != record.None {
		return false // it has its last offset
	}
	away := b.BaseOffset() - r.end
	known := slices.Max(r.claims[:])
	return away >= turnedMin && bits.OnesCount64(uint64(b.BaseOffset()^r.end)) == 1 && known > r.end && known <= b.NextOffset()-away
}

// tailEnd returns up to which offset the bad bytes at the end of segment i were records, of which
// the first would have had the offset first. They are kept if a segment follows, or if they are
// proven to have been something that is not deleted.
func (r *recovery) tailEnd(i int, first int64) (end int64, keep bool, err error) {
	r.bad = true
	if i+1 < len(r.segments) {
		keep, err = r.rolled(i+1, first, false)
		return r.segments[i+1].BaseOffset(), keep, err
	}
	end = provenEnd(r.evidence(first, false)).end
	r.tail = end > max(first, r.logStart)
	return end, r.tail, nil
}

// rolled reports whether a log that ends at end, as far as its segments in front of i tell, went on
// to segment i: there are batches in it or behind it, or it is no more than what a crash may have
// left of a roll. For certain see evidence.
func (r *recovery) rolled(i int, end int64, certain bool) (bool, error) {
	if good, err := r.hasBatchIn(r.segments[i:]); good || err != nil {
		return good, err
	}
	return r.reaches(r.segments[i].BaseOffset(), end, certain), nil
}

func (r *recovery) hasBatchIn(segments []*segment.Segment) (bool, error) {
	for _, s := range segments {
		if ok, err := s.HasBatch(); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
