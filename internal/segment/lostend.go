package segment

import (
	"errors"
	"slices"
)

// ErrEndLost says that the batches at the end of a segment are missing.
var ErrEndLost = errors.New("the indexes know of batches behind the last one")

// LostEnd returns the damage that a guarded segment ends with if batches are missing there: one of its
// indexes leads behind the last batch. Offsets that are missing in front of the next segment are none
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

// ledBehind reports whether the index of aborted transactions has one that ends in [next, bound), or the
// offset index in the file leads there, with offset and position: one of the two alone may be damage.
func (s *Segment) ledBehind(next, bound int64) (bool, error) {
	list, _, err := s.StoredAborted()
	if err != nil || slices.ContainsFunc(list, func(a AbortedTxn) bool { return a.LastOffset >= next && a.LastOffset < bound }) {
		return err == nil, err
	}
	offsets, _, _, err := offsetLayout.load(s, func(offsetEntry) bool { return true })
	if err != nil || len(offsets) == 0 {
		return false, err
	}
	last := offsets[len(offsets)-1]
	offset := s.base + int64(last.offset)
	return int64(last.position) >= s.Size() && offset >= next && offset < bound, nil
}
