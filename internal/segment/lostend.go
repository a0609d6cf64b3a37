package segment

import (
	"errors"
	"slices"
)

// ErrEndLost says that the batches at the end of a segment are missing.
var ErrEndLost = errors.New("batches behind the last one are missing")

// LostEnd returns the damage that a guarded segment ends with if batches are missing there: one of its
// indexes leads behind the last batch (see IndexedEnd). Offsets that are missing in front of the next segment are none
// otherwise, as compaction takes batches. ok is false for none, and where the damage is known.
func (s *Segment) LostEnd() (d Damage, ok bool, err error) {
	g := s.health.guard.Load()
	if list := s.Damages(); g == nil || len(list) > 0 && list[len(list)-1].end() >= s.Size() {
		return Damage{}, false, nil
	}
	next, err := s.NextOffset()
	if err == nil && next < g.bound {
		ok, err = s.ledBehind(next, g.bound)
	}
	if errors.Is(err, ErrCorrupt) {
		return Damage{}, false, nil // readers there are told
	}
	return Damage{Position: s.Size(), First: next, End: g.bound, Err: ErrEndLost}, ok, err
}

// ledBehind reports whether the index of aborted transactions has one that ends in [next, bound), or another
// index leads there.
func (s *Segment) ledBehind(next, bound int64) (bool, error) {
	list, _, err := s.StoredAborted()
	if err != nil || slices.ContainsFunc(list, func(a AbortedTxn) bool { return a.LastOffset >= next && a.LastOffset < bound }) {
		return err == nil, err
	}
	end, err := s.IndexedEnd(next, bound)
	return end > 0, err
}

// noteLostEnd puts in quarantine what the offset and the time index know of behind the last batch, and reports
// whether there is something; the last batch ends at least at from. What is in the index files stays there,
// as the bytes of a damage do: the next Open finds it again.
func (s *Segment) noteLostEnd(from int64) (found bool, err error) {
	g := s.health.guard.Load()
	if g == nil || from >= g.bound {
		return false, nil
	}
	w, err := s.IndexWitness()
	if err != nil || !w.leads(from) {
		return false, err
	}
	next, err := s.NextOffset()
	if errors.Is(err, ErrCorrupt) {
		return false, nil // readers there are told
	}
	if err != nil || next >= g.bound {
		return false, err
	}
	end, err := s.EndBy(w, next, g.bound)
	if end > 0 {
		s.AddLoss(next, g.bound, ErrEndLost)
	}
	return end > 0, err
}

// behindEnd returns the error for an offset behind the last batch.
func (s *Segment) behindEnd(offset int64) error {
	err := s.health.lossAt(&s.files, offset)
	if g := s.health.guard.Load(); err != ErrNotFound || g == nil || offset >= g.bound {
		return err
	}
	idx, err := s.indexes()
	if err != nil {
		return err
	}
	if s.base+int64(idx.lastTime().offset) < offset {
		return ErrNotFound // loadLocked looks at the offset index
	}
	if _, err := s.noteLostEnd(s.base); err != nil {
		return err
	}
	return s.health.lossAt(&s.files, offset)
}
