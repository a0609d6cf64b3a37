package commitlog

import (
	"errors"
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// producerLosses tell the producer state of a recovery of the damages of the segment that is being
// recovered, at their places.
type producerLosses struct {
	r       *recovery
	s       *segment.Segment
	aborted []segment.AbortedTxn // what its .txnindex file says
	next    int64                // position behind the batch before
}

func (r *recovery) beginLosses(s *segment.Segment) (*producerLosses, error) {
	aborted, _, err := s.StoredAborted()
	return &producerLosses{r: r, s: s, aborted: aborted}, err
}

// before is called with each batch, and the end of what is in front of it.
func (l *producerLosses) before(found segment.Located, end int64) error {
	position := l.next
	l.next = found.Position + int64(found.Batch.Size())
	if found.Position == position {
		return nil
	}
	return l.note(segment.Damage{Position: position, Size: found.Position - position, First: end, End: found.Batch.BaseOffset()})
}

// atEnd tells of the damage behind the last batch.
func (l *producerLosses) atEnd() error {
	for _, d := range l.s.Damages() {
		if d.Position >= l.next {
			if err := l.note(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *producerLosses) note(d segment.Damage) error {
	if d.End <= l.r.producers.end {
		return nil // the state covers it
	}
	t, ended, err := l.r.producers.lostIn(l.s, d, l.aborted)
	if ended {
		l.r.producers.complete(t) // decideTransactions sees to the index
	}
	return err
}

// noteLostEnd tells of batches that were there behind the end of a segment, in front of the next one with
// an offset of base, which is part of the log. The index of aborted transactions keeps what it had of them.
func (r *recovery) noteLostEnd(s *segment.Segment, base int64) error {
	for _, a := range r.stored {
		if a.LastOffset < r.end || a.LastOffset >= base {
			continue
		}
		if err := s.AppendAborted(a); err != nil {
			return err
		}
	}
	s.Guard(base)
	d, ok, err := s.LostEnd()
	if list := s.Damages(); len(list) > 0 && errors.Is(list[len(list)-1].Err, segment.ErrEndLost) { // whoever looked for the end has met it
		d, ok = list[len(list)-1], true
	}
	if err != nil || !ok || d.End <= r.producers.end {
		return err
	}
	r.short = append(r.short, s)
	l := producerLosses{r: r, s: s, aborted: r.stored}
	return l.note(d)
}

// decideTransactions finds out what became of transactions whose end may be in what is damaged from
// a segment on. It is done now, because a later start takes the indexes of aborted transactions, which
// are new, for complete.
func (r *recovery) decideTransactions(base int64) error {
	if err := r.log.cutLostLocked(r.end, r.producers); err != nil { // a crash in the middle of a truncation
		return err
	}
	for i := max(0, floorSegment(r.segments, base-1)); i < len(r.segments); i++ { // a loss in front of it counts too
		if len(r.segments[i].Damages()) == 0 && !slices.Contains(r.short, r.segments[i]) {
			continue
		}
		if err := r.log.examine(r.segments, i, r.producers, false); err != nil {
			return err
		}
	}
	r.producers.endLost(r.end)
	// Of damage further in front the producers know what the snapshots say. If these are missing, an
	// index without an entry does not say whether a transaction was committed, or is open.
	return r.log.noteLostLocked(txnNotes{undecided: r.producers.undecided()})
}

// narrow corrects entries that the index of a segment has kept because they begin in front of what the
// markers say, unless they are right.
func (r *recovery) narrow(s *segment.Segment) error {
	list, _, err := s.StoredAborted()
	if err != nil || slices.Equal(list, r.made) {
		return err
	}
	changed := false
	for _, a := range r.made {
		i := slices.IndexFunc(list, func(had segment.AbortedTxn) bool { return had.LastOffset == a.LastOffset })
		if i < 0 || list[i] == a {
			continue
		}
		wider, err := isWider(r.segments, list[i], a)
		if err != nil {
			return err
		}
		if !wider {
			list[i], changed = a, true
		}
	}
	if !changed {
		return nil
	}
	return s.ReplaceAborted(list)
}
