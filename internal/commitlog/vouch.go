package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
)

// dropContradicted removes producer snapshots at or below end that the batches contradict: they are of
// another log, or of another time. What is left, and the log behind it, tells the same.
func (l *Log) dropContradicted(segments []*segment.Segment, logStart, end int64) error {
	for {
		offset := l.mu.snapshots.newest(logStart, end)
		if offset < 0 {
			return nil
		}
		state, err := l.mu.snapshots.read(offset)
		if err != nil || state == nil {
			return err // load deals with damage
		}
		why, err := l.contradiction(segments, state)
		if err != nil || why == "" {
			return err
		}
		l.logger.Error("producer snapshot is not of this log, and is made anew", "partition", l.partition, "file", l.mu.snapshots.path(offset), "err", why)
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
// damage has taken contradict nothing, but compaction takes none of an open transaction.
func (l *Log) contradiction(segments []*segment.Segment, state *ProducerState) (string, error) {
	for _, p := range state.producers {
		if p.txn.offset < 0 || floorSegment(segments, p.txn.offset) < 0 {
			continue // none is open, or its beginning has been deleted
		}
		ok, err := mayBegin(segments, p.id, p.txn.offset)
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf("no transaction of producer %d begins at %d", p.id, p.txn.offset), nil
		}
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
	expired := l.now().Add(-time.Duration(l.expiration.Load())).UnixMilli()
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

// contradictedBy says what is wrong with the state of a producer whose last batch has the header b.
// Producers that wrote before expired may be missing, unless their transaction is open.
func (s *ProducerState) contradictedBy(id int64, b record.Batch, expired int64) string {
	p := s.producers[id]
	switch {
	case b.IsTransactional() && !b.IsControl() && (p == nil || p.txn.offset < 0):
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
// damage does not hide it.
func mayBegin(segments []*segment.Segment, id, offset int64) (bool, error) {
	for looked := false; ; looked = true {
		b, damaged, err := batchAt(segments, offset)
		if err != nil || damaged || b != nil && b.ProducerID() == id && b.IsTransactional() {
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
	case err != nil || !ok:
		return nil, len(s.Damages()) > 0, err
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
