package commitlog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
)

// A recovery finds out where a log ends and what its producers did. After a crash it checks
// the segment that holds the recovery point and all behind it, cuts what is torn above every
// proof (see provenEnd), and makes their indexes anew.
type recovery struct {
	log      *Log
	segments []*segment.Segment // in: what the directory has; out: what is left
	clean    bool
	point    int64 // recovery point: in: the checkpoint's; out: the log's
	logStart int64 // log start checkpoint

	claims [witnesses]int64 // of the log end
	absent []absentFile     // .log files that were there
	// unindexed has the bases of .log files that have no .index file.
	unindexed map[int64]bool
	losses    losses
	front     int64 // base of a segment that has to be made in front of the others, or -1
	begins    bool  // a segment has to be made at the end
	tail      bool  // the last segment ends with bad bytes, which stay
	bad       bool  // the last segment that was checked ends with bad bytes

	recovered int64                // base of the first segment that was checked, or -1
	made      []segment.AbortedTxn // by the markers of the segment that is being checked

	producers *ProducerState
	end       int64 // the log end

	meter *RecoveryMeter // may be nil
}

func (r *recovery) run() error {
	for _, s := range r.segments {
		s.OnDamage(r.log.noteDamage)
	}
	r.front, r.begins, r.recovered = -1, false, -1
	if err := r.dropCopies(); err != nil {
		return err
	}
	r.claims[bySnapshot] = r.log.mu.snapshots.latest()
	if err := r.noteAbsent(); err != nil {
		return err
	}
	var err error
	switch {
	case len(r.segments) == 0:
		err = r.anew()
	case r.clean:
		err = r.trust()
	default:
		err = r.check()
	}
	if err != nil {
		return err
	}
	if err := r.quarantine(); err != nil || r.recovered < 0 {
		return err
	}
	return r.decideTransactions(r.recovered)
}

// anew begins a log that has no segment where its end is proven to be.
func (r *recovery) anew() (err error) {
	r.end = -1
	proof := r.goOn(false)
	if r.front < 0 {
		r.front = r.firstOffset()
	}
	if r.front >= r.end {
		r.front = -1
	}
	if r.begins = r.front >= 0; !r.begins && r.end > 0 {
		r.log.logger.Error("records are lost, the log begins behind them", "partition", r.log.partition, "start", r.end, "proof", proof)
	}
	r.point = r.end
	doubted := r.end + 1
	if r.claims[byRecoveryPoint] < r.end {
		doubted = 0 // see restoreProducers
	}
	r.log.mu.snapshots.doubtFrom(doubted)
	if r.producers, err = r.log.replayProducers(nil, max(r.front, r.logStart), r.end); err != nil {
		return err
	}
	if err := r.log.cutLostLocked(r.end, r.producers); err != nil { // of records that come next nothing is known
		return err
	}
	return r.log.mu.snapshots.dropDoubted()
}

// firstOffset returns where a log without segments began, or -1.
func (r *recovery) firstOffset() int64 {
	if r.logStart > 0 {
		return r.logStart
	}
	if list := r.log.epochs.list(); len(list) > 0 {
		return list[0].StartOffset
	}
	return -1
}

// trust takes a directory that was stopped cleanly as it is.
func (r *recovery) trust() error {
	if err := r.dropForeign(); err != nil {
		return err
	}
	r.guard(len(r.segments) - 1)
	end, certain, err := r.cleanEnd()
	if err != nil {
		return err
	}
	l := r.log
	r.end = end
	r.goOn(certain)
	if err := r.leaveBadTail(); err != nil {
		return err
	}
	r.point = r.end
	logStart := max(r.logStart, r.segments[0].BaseOffset())
	hadSnapshots := len(l.mu.snapshots.offsets) > 0
	if err := r.dropStraySnapshots(); err != nil {
		return err
	}
	if !hadSnapshots {
		// A broker that knew no producers left no snapshot. Say so, so that nobody reads
		// the whole log to find out.
		r.producers = newProducerState(r.last().BaseOffset())
		if r.producers.end > logStart {
			if err := l.mu.snapshots.write(r.producers); err != nil {
				return err
			}
		}
		r.producers.end = r.end
		return nil
	}
	r.producers, err = l.replayProducers(r.segments, logStart, r.end)
	return err
}

// leaveBadTail puts a last segment aside that has nothing but bad bytes, if the log goes on at its base:
// what would be appended behind them could not be found again.
func (r *recovery) leaveBadTail() error {
	last := len(r.segments) - 1
	if !r.tail || r.begins || r.end != r.segments[last].BaseOffset() {
		return nil
	}
	bad := r.segments[last:]
	r.segments = r.segments[:last]
	if err := r.putAside(bad); err != nil {
		return err
	}
	s, err := r.log.createCompleteLocked(r.end, r.log.config.Load())
	if err != nil {
		return err
	}
	r.segments, r.tail = append(r.segments, s), false
	return s.Flush()
}

// check recovers the segments from the recovery point on.
func (r *recovery) check() error {
	l := r.log
	logStart := max(r.logStart, r.segments[0].BaseOffset())
	i := max(0, floorSegment(r.segments, r.point))
	r.recovered = r.segments[i].BaseOffset()
	r.guard(i)
	// Snapshots above the recovery point may be of records that a truncation or the crash took.
	l.mu.snapshots.doubtFrom(r.segments[i].BaseOffset() + 1)
	var err error
	if r.producers, err = l.replayProducers(r.segments[:i], logStart, max(logStart, r.segments[i].BaseOffset())); err != nil {
		return err
	}
	if r.end, err = r.endBefore(i); err != nil {
		return err
	}
	count := r.meter.add(r.segments[i:])
	defer count.end()
	var cut int64
	wellEnded := false // by the segment before
	for ; i < len(r.segments); i++ {
		s, size := r.segments[i], r.segments[i].Size()
		if i > 0 && s.BaseOffset() > r.end {
			if ok, err := r.rolled(i, r.end, wellEnded); err != nil {
				return err
			} else if !ok {
				break
			}
		}
		if r.isHole(i) {
			r.losses.add(r.end, s.BaseOffset(), errLost)
		}
		if base := s.BaseOffset(); i > 0 && base > r.end && r.losses.touch(r.end, base) {
			r.producers.damaged(goneStretch(r.end, base), nil)
		}
		position, offset := int64(-1), int64(-1)
		if i == len(r.segments)-1 {
			if position, offset, err = s.Indexed(); err != nil {
				return err
			}
		}
		if cut, err = r.recoverSegment(i, count); err != nil {
			return err
		}
		wellEnded = cut == 0 && !r.bad && s.Size() > 0 && position < s.Size() && offset < r.end
		count.endSegment(size)
		l.mu.unsynced = append(l.mu.unsynced, s)
		if cut > 0 {
			l.bytesCut.Add(cut)
			l.logger.Warn("torn tail is cut", "partition", l.partition, "segment", s.BaseOffset(), "bytes", cut, "end", r.end)
			// A second crash must not bring back what was cut, behind new records.
			if err := s.Flush(); err != nil {
				return err
			}
			i++
			break
		}
	}
	foreign := r.segments[i:]
	r.segments = r.segments[:i]
	if err := r.putAside(foreign); err != nil {
		return err
	}
	r.goOn(wellEnded)
	if err := r.restoreProducers(); err != nil {
		return err
	}
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

func (r *recovery) last() *segment.Segment { return r.segments[len(r.segments)-1] }

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
	l, s, bound := r.log, r.segments[i], int64(math.MaxInt64)
	if i+1 < len(r.segments) {
		bound = r.segments[i+1].BaseOffset()
	}
	r.end, r.tail, r.bad = max(r.end, s.BaseOffset()), false, false
	if err := r.snapshotAt(s.BaseOffset()); err != nil {
		return 0, err
	}
	at := position{segment: s}
	lost, err := r.beginLosses(s)
	if err != nil {
		return 0, err
	}
	r.made = nil
	cut, err = s.Recover(func(found segment.Located) error {
		b := found.Batch
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
		return count.read(found.Position)
	}, bound, func(first int64) (int64, bool, error) { return r.tailEnd(i, first) })
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
	if err := r.narrow(s); err != nil {
		return 0, err
	}
	r.producers.end = max(r.producers.end, r.end)
	l.setFactsLocked(r.segments, s, &txnFacts{open: r.producers.openTxns()})
	return cut, nil
}

// tailEnd returns up to which offset the bad bytes at the end of segment i were records, of which
// the first would have had the offset first. They are kept if a segment follows, or if they are
// proven to have been something.
func (r *recovery) tailEnd(i int, first int64) (end int64, keep bool, err error) {
	r.bad = true
	if i+1 < len(r.segments) {
		keep, err = r.rolled(i+1, first, false)
		return r.segments[i+1].BaseOffset(), keep, err
	}
	end = provenEnd(r.evidence(first, false)).end
	r.tail = end > first
	return end, r.tail, nil
}

// rolled reports whether a log that ends at end, as far as its segments in front of i tell, went on
// to segment i: there are batches in it or behind it, or it is no more than what a crash may have
// left of a roll. For certain see evidence.
func (r *recovery) rolled(i int, end int64, certain bool) (bool, error) {
	if good, err := r.hasBatchIn(r.segments[i:]); good || err != nil {
		return good, err
	}
	base := r.segments[i].BaseOffset()
	e := r.evidence(end, certain)
	e.claims[bySegment] = max(e.claims[bySegment], base)
	return provenEnd(e).end >= base, nil
}

func (r *recovery) hasBatchIn(segments []*segment.Segment) (bool, error) {
	for _, s := range segments {
		if ok, err := s.HasBatch(); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// watch turns quarantine on. What recovery has not read is proven when it is read.
func (r *recovery) watch() {
	for _, s := range r.segments {
		s.OnDamage(r.log.noteDamage)
	}
	r.guard(len(r.segments) - 1)
	if r.clean {
		r.last().Guard(r.end)
	}
}

// guard turns quarantine on for the first n segments, which have one behind them.
func (r *recovery) guard(n int) {
	for i, s := range r.segments[:max(0, min(n, len(r.segments)-1))] {
		s.Guard(r.segments[i+1].BaseOffset())
	}
}

// cleanEnd returns where the last segment ends after a clean stop. Another witness is the newest
// producer snapshot, whose name is the log end, or else the recovery point, unless its checkpoint is
// lost. If the two disagree, the end of the file may be damaged, and all of it is looked at. It is
// certain unless there are bad bytes at the end.
func (r *recovery) cleanEnd() (end int64, certain bool, err error) {
	last := r.last()
	end, err = last.NextOffset()
	witness, ok := r.claims[bySnapshot], true
	if witness < last.BaseOffset() {
		witness, ok = r.point, r.point > last.BaseOffset()
	}
	if err == nil && (end == witness || !ok) {
		return end, last.Size() > 0, nil
	}
	if err != nil && !errors.Is(err, record.ErrCorrupt) {
		return 0, false, err
	}
	end, certain, err = last.ProveEnd(math.MaxInt64)
	r.tail = !certain && err == nil
	if certain && err == nil {
		position, offset, err := last.Indexed()
		return end, last.Size() > 0 && position < last.Size() && offset < end, err
	}
	if err != nil || !ok {
		return end, false, err
	}
	end, _, err = last.ProveEnd(max(witness, last.BaseOffset()+1))
	return end, false, err
}

// noteEpoch enters epochs that the file had not learned of. It may know the last one by a
// later offset, from before a truncation.
func (r *recovery) noteEpoch(b record.Batch) {
	e, ok := r.log.epochs.latest()
	if b.Magic() >= 2 && (!ok || b.LeaderEpoch() > e.Epoch || b.LeaderEpoch() == e.Epoch && b.BaseOffset() < e.StartOffset) {
		r.log.epochs.assign(b.LeaderEpoch(), b.BaseOffset())
	}
}

// noteProducer takes in a batch of a segment whose indexes were reset.
func (r *recovery) noteProducer(b record.Batch, at position) error {
	if b.ProducerID() < 0 || b.LastOffset() < r.producers.end {
		return nil
	}
	t, ended := r.producers.apply(b, parseEndTxn(b), at)
	return r.noteEnd(at.segment, t, ended)
}

func (r *recovery) noteEnd(s *segment.Segment, t CompletedTxn, ended bool) error {
	if !ended {
		return nil
	}
	if t.Aborted {
		a := r.producers.aborted(t)
		r.made = append(r.made, a)
		if err := s.AppendAborted(a); err != nil {
			return err
		}
	}
	r.producers.complete(t)
	return nil
}

// snapshotAt makes sure that the snapshot at a segment's base is there and is right. One
// from before the crash that says something else is of records that are lost.
func (r *recovery) snapshotAt(base int64) error {
	l := r.log
	l.mu.snapshots.doubtFrom(base)
	if r.producers.end < base {
		r.producers.end = base
	}
	if err := l.mu.snapshots.witness(base, r.producers); err != nil {
		return err
	}
	if base == 0 || r.producers.end > base {
		return nil
	}
	return l.mu.snapshots.write(r.producers)
}

// dropStraySnapshots removes snapshots that belong to no segment. The newest may be at the
// log end.
func (r *recovery) dropStraySnapshots() error {
	newest := r.log.mu.snapshots.latest()
	return r.log.mu.snapshots.removeIf(func(offset int64) bool {
		if offset > r.end {
			return true
		}
		_, found := slices.BinarySearchFunc(r.segments, offset, func(s *segment.Segment, offset int64) int {
			switch base := s.BaseOffset(); {
			case base < offset:
				return -1
			case base > offset:
				return 1
			}
			return 0
		})
		return !found && (offset != newest || offset < r.last().BaseOffset())
	})
}

// replayProducers returns the producer state at end: the newest snapshot, and what the
// batches behind it say.
func (l *Log) replayProducers(segments []*segment.Segment, logStart, end int64) (*ProducerState, error) {
	state, err := l.mu.snapshots.load(logStart, end, l.now(), time.Duration(l.expiration.Load()))
	if err != nil {
		return nil, err
	}
	if state.lost, err = l.lostTransactionsLocked(); err != nil {
		return nil, err
	}
	for i := max(0, floorSegment(segments, state.end)); i < len(segments) && state.end < end; i++ {
		if err := replaySegment(state, segments[i], end); err != nil {
			return nil, fmt.Errorf("%v: %w", l.partition, err)
		}
	}
	state.end = end
	state.endLost(end)
	return state, nil
}

// replaySegment applies the batches of s in [state.end, end).
func replaySegment(state *ProducerState, s *segment.Segment, end int64) error {
	from, ok, err := s.Translate(state.end, 0)
	if errors.Is(err, record.ErrCorrupt) {
		return nil
	}
	if err != nil || !ok {
		return err
	}
	aborted, _, err := s.StoredAborted()
	if err != nil {
		return err
	}
	return walkProducers(s, from.Position, func(located segment.Located) bool {
		b := located.Batch
		if b.BaseOffset() >= end {
			return false
		}
		if b.ProducerID() >= 0 && b.LastOffset() >= state.end {
			if t, ended := state.apply(b, parseEndTxn(b), position{b.BaseOffset(), s, located.Position}); ended {
				state.complete(t)
			}
		}
		state.end = max(state.end, b.NextOffset())
		return true
	}, func(d segment.Damage) error {
		if d.End <= state.end || d.First >= end {
			return nil
		}
		t, ended, err := state.lostIn(s, d, aborted)
		if ended {
			state.complete(t)
		}
		return err
	})
}

// resetProducersLocked makes the producer state that of the log end, after a truncation
// to next. Ongoing are transactions that were open behind damage.
func (l *Log) resetProducersLocked(next *Offsets, ongoing []segment.OpenTxn) error {
	empty := len(l.mu.producers.producers) == 0
	if err := l.mu.snapshots.removeIf(func(offset int64) bool { return offset > next.End }); err != nil {
		return err
	}
	if empty {
		l.mu.producers = newProducerState(next.End)
		return nil
	}
	state, err := l.replayProducers(next.segments, next.LogStart, next.End)
	if err != nil {
		return err
	}
	state.goesOn(func(producerID, first int64) bool {
		return l.mu.producers.beginsOpen(producerID, first) || slices.Contains(ongoing, segment.OpenTxn{ProducerID: producerID, FirstOffset: first})
	})
	state.doubts, state.lost = nil, nil
	l.mu.producers = state
	again := l.nextLocked()
	l.settleLocked(again)
	return nil
}
