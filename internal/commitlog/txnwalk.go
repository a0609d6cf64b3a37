package commitlog

import (
	"errors"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// walkProducers calls batch for the good batches of s from a position on, in order, until it returns
// false, and lost for the damages between them and at the end (segment.LostEnd). Of what has no producer only the frame is checked.
// Bytes that are neither end the walk: readers of the range will be told.
func walkProducers(s *segment.Segment, from int64, batch func(segment.Located) bool, lost func(segment.Damage) error) error {
	w := producerWalk{s: s, at: from, batch: batch, lost: lost}
	for {
		again, err := w.run()
		if err != nil || !again {
			return err
		}
	}
}

type producerWalk struct {
	s     *segment.Segment
	at    int64 // of what comes next
	batch func(segment.Located) bool
	lost  func(segment.Damage) error
}

// run walks to the end. again says that there is damage that was not known.
func (w *producerWalk) run() (again bool, err error) {
	for located, err := range w.s.Batches(w.at, w.s.Size()) {
		if errors.Is(err, record.ErrCorrupt) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		b := located.Batch
		bad := (b.ProducerID() >= 0 || b.IsControl()) && b.Verify() != nil
		if bad {
			if news, err := w.s.Scrub(nil); err != nil || news {
				return news, err
			}
		}
		if err := w.pass(located.Position); err != nil {
			return false, err
		}
		if bad {
			if err := w.lost(damageOf(located)); err != nil {
				return false, err
			}
		} else if !w.batch(located) {
			return false, nil
		}
		w.at = located.Position + int64(located.Batch.Size())
	}
	if err := w.pass(w.s.Size() + 1); err != nil {
		return false, err
	}
	d, ok, err := w.s.LostEnd()
	if err == nil && ok {
		err = w.lost(d)
	}
	return false, err
}

// pass tells of the damages up to a position.
func (w *producerWalk) pass(to int64) error {
	for _, d := range w.s.Damages() {
		if d.Position >= w.at && d.Position < to {
			if err := w.lost(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// damageOf is the damage that a batch with a wrong checksum is, where nobody keeps a quarantine.
func damageOf(l segment.Located) segment.Damage {
	return segment.Damage{
		Position: l.Position, Size: int64(l.Batch.Size()), First: l.Batch.BaseOffset(), End: l.Batch.NextOffset(), Err: record.ErrCorrupt,
	}
}

// lostIn tells a producer state of a damage of a segment: by what is left of it, or by the entries of
// the index of aborted transactions whose markers were in it.
func (s *ProducerState) lostIn(in *segment.Segment, d segment.Damage, entries []segment.AbortedTxn) (t CompletedTxn, ended bool, err error) {
	remains, err := in.Remains(d)
	if err != nil {
		return t, false, err
	}
	if b := remains.Batch; b != nil {
		if b.ProducerID() >= 0 {
			t, ended = s.apply(b, parseEndTxn(b), position{b.BaseOffset(), in, d.Position})
		}
		s.end = max(s.end, d.End)
		return t, ended, nil
	}
	var proven []segment.AbortedTxn
	for _, a := range entries {
		if a.LastOffset >= d.First && a.LastOffset < d.End {
			proven = append(proven, a)
		}
	}
	gone := d.Size == 0 && !errors.Is(d.Err, segment.ErrEndLost)
	s.damaged(lostStretch{d.First, d.End, gone, remains}, proven)
	return t, false, nil
}
