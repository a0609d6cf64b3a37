package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// dropContradicted removes producer snapshots at or below end that the batches contradict: they are of
// another log, or of another time. What is left, and the log behind it, tells the same.
// A start after a kill reads the end of no segment in front of what it recovers: there why is less strict.
func (r *recovery) dropContradicted(logStart, end int64, why func(*ProducerState) (string, error)) error {
	l := r.log
	for {
		offset := l.mu.snapshots.newest(logStart, end)
		if offset < 0 {
			return nil
		}
		state, err := l.mu.snapshots.read(offset)
		if err != nil || state == nil {
			return err // load deals with damage
		}
		what, err := why(state)
		if err != nil || what == "" {
			return err
		}
		l.logger.Error("producer snapshot is not of this log, and is made anew", "partition", l.partition, "file", l.mu.snapshots.path(offset), "err", what)
		if err := l.mu.snapshots.remove(offset); err != nil {
			return err
		}
	}
}

// newest returns the offset of the newest snapshot that load would take, or -1.
func (s *snapshots) newest(logStart, end int64) int64 {
	for i := len(s.offsets) - 1; i >= 0; i-- {
		if offset := s.offsets[i]; offset >= logStart && offset <= end {
			return offset
		}
	}
	return -1
}

// contradiction says what in a producer state the batches contradict, "" for nothing: an open transaction
// that does not begin there, or what is behind the last index entry. Batches that retention, compaction or
// damage has taken contradict nothing; see contradictedInFront for gone.
func (r *recovery) contradiction(segments []*segment.Segment, state *ProducerState, gone func(int64) bool) (string, error) {
	if why, err := r.contradictedInFront(segments, state, gone); err != nil || why != "" {
		return why, err
	}
	i := floorSegment(segments, state.end-1)
	if i < 0 || i < len(segments)-1 {
		return "", nil // no other is read at a start
	}
	s := segments[i]
	from, _, err := s.Indexed()
	if err != nil {
		return "", err
	}
	found, err := lastBatches(s, max(from, 0), state.end)
	if err != nil {
		return "", err
	}
	if id, at, err := endedTxn(s, state); err != nil || id >= 0 {
		return fmt.Sprintf("the transaction of producer %d ended at %d", id, at), err
	}
	expired := r.log.now().Add(-time.Duration(r.log.expiration.Load())).UnixMilli()
	for id, b := range found {
		if why := state.contradictedBy(id, b, expired); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// endedTxn returns a producer whose transaction is open in a state though a marker of it is in the segment that the
// state ends in, and where that is; -1 for none.
func endedTxn(s *segment.Segment, state *ProducerState) (id, at int64, err error) {
	if len(state.open) == 0 {
		return -1, -1, nil
	}
	from, ok, err := s.Translate(state.open[0].txn.offset, 0)
	if err != nil || !ok {
		return -1, -1, ignoreCorrupt(err)
	}
	id, at = -1, -1
	err = walkProducers(s, from.Position, func(l segment.Located) bool {
		p := state.producers[l.Batch.ProducerID()]
		if p != nil && p.txn.offset >= 0 && l.Batch.BaseOffset() > p.txn.offset && l.Batch.LastOffset() < state.end && parseEndTxn(l.Batch).valid {
			id, at = p.id, l.Batch.LastOffset()
		}
		return id < 0
	}, func(segment.Damage) error { return nil })
	return id, at, err
}

func ignoreCorrupt(err error) error {
	if errors.Is(err, segment.ErrCorrupt) {
		return nil
	}
	return err
}

// lastBatches returns the header of the last batch of each producer below end, of the batches from a position
// on; none if one of them is damaged, or more of them are lost.
func lastBatches(s *segment.Segment, from, end int64) (map[int64]record.Batch, error) {
	found, next := map[int64]record.Batch{}, int64(-1)
	for at, err := range s.Batches(from, s.Size()) {
		if err != nil && !errors.Is(err, segment.ErrCorrupt) {
			return nil, err
		}
		b := at.Batch
		if err != nil || b.Verify() != nil || next >= 0 && b.BaseOffset() != next { // the base offset has no checksum
			return nil, nil
		}
		if next = b.NextOffset(); b.LastOffset() < end && b.ProducerID() >= 0 {
			found[b.ProducerID()] = slices.Clone(b[:record.HeaderSize])
		}
	}
	if next < end {
		return nil, nil // more was there, and is lost
	}
	return found, nil
}

// contradictedInFront says what is found out without a look at the end of the segments. gone reports whether the
// batch of an offset at which a transaction began may be there no more: it is lost, or the state is one of before,
// and the transaction was aborted and compacted since. Compaction takes none of what is open.
func (r *recovery) contradictedInFront(segments []*segment.Segment, state *ProducerState, gone func(int64) bool) (string, error) {
	for _, p := range state.producers {
		if last := max(p.lastOffset(), p.txn.offset); last >= state.end {
			return fmt.Sprintf("producer %d is at %d", p.id, last), nil
		}
	}
	for _, p := range state.producers {
		if p.txn.offset < 0 || floorSegment(segments, p.txn.offset) < 0 {
			continue // none is open, or its beginning has been deleted
		}
		ok, err := mayBegin(segments, p.id, p.txn.offset, gone)
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf("no transaction of producer %d begins at %d", p.id, p.txn.offset), nil
		}
	}
	return r.forgotten(segments, state)
}

// forgotten says which producer of the snapshot in front a producer state does not know, or knows an older
// batch of: one that has not expired, and whose batch is there. A producer that expired while that took
// less time comes back, which does no harm.
func (r *recovery) forgotten(segments []*segment.Segment, state *ProducerState) (string, error) {
	l := r.log
	i, _ := slices.BinarySearch(l.mu.snapshots.offsets, state.end)
	if i == 0 {
		return "", nil
	}
	before, err := l.mu.snapshots.read(l.mu.snapshots.offsets[i-1])
	if err != nil || before == nil {
		return "", err
	}
	now, expiration := l.now(), time.Duration(l.expiration.Load())
	for _, p := range before.producers {
		if p.isExpired(now, expiration) || state.knows(p) || floorSegment(segments, p.lastOffset()) < 0 {
			continue
		}
		b, _, err := batchAt(segments, p.lastOffset())
		if err != nil {
			return "", err
		}
		if b != nil && b.ProducerID() == p.id && b.LastOffset() == p.lastOffset() {
			return fmt.Sprintf("a batch of producer %d is at %d", p.id, p.lastOffset()), nil
		}
	}
	return "", nil
}

// knows reports whether a state has a producer at least as far on as an earlier one says.
func (s *ProducerState) knows(p *producer) bool {
	q := s.producers[p.id]
	return q != nil && (q.epoch != p.epoch || q.lastOffset() >= p.lastOffset())
}

// contradictedBy says what is wrong with the state of a producer whose last batch has the header b.
// Producers that wrote before expired may be missing, unless their transaction is open.
func (s *ProducerState) contradictedBy(id int64, b record.Batch, expired int64) string {
	p := s.producers[id]
	switch {
	case b.IsTransactional() && !b.IsControl() && b.Count() > 0 && (p == nil || p.txn.offset < 0):
		return fmt.Sprintf("producer %d has a transaction open at %d", id, b.LastOffset())
	case p == nil && b.MaxTimestamp() > expired && !b.IsControl(), p != nil && !b.IsControl() && p.lastOffset() != b.LastOffset():
		return fmt.Sprintf("the last batch of producer %d is at %d", id, b.LastOffset())
	case p != nil && b.IsControl() && p.txn.offset >= 0:
		return fmt.Sprintf("the transaction of producer %d ended at %d", id, b.LastOffset())
	}
	return ""
}

// lastOffset is that of the last batch of records, or -1.
func (p *producer) lastOffset() int64 {
	if p.count == 0 {
		return -1
	}
	return p.batches[p.newest].lastOffset
}

// mayBegin reports whether a transaction of a producer begins at an offset of one of the segments, as far as
// damage does not hide it. For gone see contradictedInFront.
func mayBegin(segments []*segment.Segment, id, offset int64, gone func(int64) bool) (bool, error) {
	for looked := false; ; looked = true {
		b, damaged, err := batchAt(segments, offset)
		if err != nil || damaged || b == nil && gone(offset) || b != nil && b.ProducerID() == id && b.IsTransactional() {
			return err == nil, err
		}
		if looked {
			return false, nil
		}
		if _, err := segments[floorSegment(segments, offset)].Scrub(nil); err != nil { // what leads there may be damaged
			return false, err
		}
	}
}

// batchAt returns the good batch that has an offset of one of the segments, nil if there is none, and
// whether damage may have taken it.
func batchAt(segments []*segment.Segment, offset int64) (b record.Batch, damaged bool, err error) {
	s := segments[floorSegment(segments, offset)]
	at, ok, err := s.Translate(offset, 0)
	switch {
	case errors.Is(err, segment.ErrCorrupt):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case !ok:
		_, lost, err := s.LostEnd()
		return nil, lost || len(s.Damages()) > 0, err
	}
	b = make(record.Batch, at.Size)
	if err := s.ReadBytes(b, at.Position); err != nil {
		return nil, false, err
	}
	if b.Verify() != nil {
		return nil, true, nil
	}
	if b.BaseOffset() > offset {
		return nil, len(s.Damages()) > 0, nil
	}
	return b, false, nil
}
