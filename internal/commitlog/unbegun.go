package commitlog

import "errors"

// errUnbegun asks to begin again: see recovery.unbegun.
var errUnbegun = errors.New("a transaction is open that has not begun")

// findUnbegun looks for transactions that are open at the end of the log and do not begin in it: the producer
// snapshot that a recovery began with was not of this log. Of what was there once, compaction takes none
// that is open, and of what has ended since, it may have taken the marker too.
func (r *recovery) findUnbegun() error {
	found := false
	for _, t := range r.producers.openTxns() {
		if floorSegment(r.segments, t.FirstOffset) < 0 {
			continue // its beginning has been deleted
		}
		ok, err := mayBegin(r.segments, t.ProducerID, t.FirstOffset, func(offset int64) bool { return r.losses.touch(offset, offset+1) })
		if err != nil {
			return err
		}
		if ok || r.unbegun[t.FirstOffset] {
			continue
		}
		if r.unbegun == nil {
			r.unbegun = map[int64]bool{}
		}
		r.unbegun[t.FirstOffset], found = true, true
	}
	if found {
		return errUnbegun
	}
	return nil
}
