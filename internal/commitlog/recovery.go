package commitlog

import (
	"errors"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
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
	closed *CleanState      // what the log was when it was closed, if that is known
	absent []absentFile     // .log files that were there
	// unindexed has the bases of .log files that have no .index file.
	unindexed []int64
	losses    losses
	front     int64 // base of a segment that has to be made in front of the others, or -1
	begins    bool  // a segment has to be made at the end
	tail      bool  // the last segment ends with bad bytes, which stay
	bad       bool  // the last segment that was checked ends with bad bytes
	longer    bool  // indexes lead beyond its last batch
	turned    int64 // all offsets are below it: that of a batch which isTurned
	// unbegun has the offsets at which open transactions of a producer snapshot should begin and do not.
	unbegun map[int64]bool

	recovered int64                // base of the first segment that was checked, or -1
	made      []segment.AbortedTxn // by the markers of the segment that is being checked
	stored    []segment.AbortedTxn // by its index, before
	short     []*segment.Segment   // those whose end is lost, see segment.LostEnd

	producers *ProducerState
	end       int64 // the log end

	meter *RecoveryMeter // may be nil
}

func (r *recovery) run() error {
	r.watch()
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
	r.last().Guard(r.end)
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
	contradiction := func(state *ProducerState) (string, error) {
		return r.contradiction(r.segments, state, func(offset int64) bool {
			return state.end < r.end || r.losses.touch(offset, offset+1)
		})
	}
	if err := r.dropContradicted(logStart, r.end, contradiction); err != nil {
		return err
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

func (r *recovery) last() *segment.Segment { return r.segments[len(r.segments)-1] }

// watch makes the log hear of damage.
func (r *recovery) watch() {
	found := r.log.noteDamage
	for _, s := range r.segments {
		s.OnDamage(found)
	}
}

// guardAll turns quarantine on. What recovery has not read is proven when it is read.
func (r *recovery) guardAll() {
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
// lost: then the indexes are one. If they disagree, or the file does not end with a batch, its end may be
// damaged, and all of it is looked at. It is certain unless there are bad bytes at the end.
//
// After an unclean stop the indexes prove nothing of the end: their pages may have reached the disk, in a
// power cut, where those of the .log file did not, and nobody was promised these records.
func (r *recovery) cleanEnd() (end int64, certain bool, err error) {
	last := r.last()
	end, position, err := last.End()
	witness, ok := r.claims[bySnapshot], true
	if witness < last.BaseOffset() {
		witness, ok = r.point, r.point > last.BaseOffset()
	}
	whole := err == nil && position == last.Size()
	if whole && ok && end == witness {
		return end, last.Size() > 0, nil
	}
	if err != nil && !errors.Is(err, record.ErrCorrupt) {
		return 0, false, err
	}
	if r.claims[byIndex], err = last.IndexedEnd(max(end, last.BaseOffset()), math.MaxInt64); err != nil {
		return 0, false, err
	}
	if whole && !ok && r.claims[byIndex] == 0 {
		return end, last.Size() > 0, nil
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
	end, _, err = last.ProveEnd(max(witness, r.claims[byIndex], last.BaseOffset()+1))
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
