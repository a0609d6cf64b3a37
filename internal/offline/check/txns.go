package check

import (
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A txnWalk follows the transactions of a log.
type txnWalk struct {
	open map[int64]int64 // producer id -> first offset of its open transaction
	last map[int64]int64 // producer id -> offset of its last marker
	lost bool            // a bad batch may have begun or ended one
}

func (w *txnWalk) batch(s *segmentCheck, b record.Batch, in insight) {
	if !b.IsTransactional() {
		return
	}
	if w.open == nil {
		w.open, w.last = map[int64]int64{}, map[int64]int64{}
	}
	id := b.ProducerID()
	if !b.IsControl() {
		if _, ok := w.open[id]; !ok {
			w.open[id] = in.first
		}
		return
	}
	if in.control == record.ControlAbort || in.control == record.ControlCommit {
		s.losses.marker(id, in.last)
	}
	first, known := w.open[id]
	delete(w.open, id)
	if in.control == record.ControlAbort {
		w.abort(s, segment.AbortedTxn{ProducerID: id, FirstOffset: first, LastOffset: in.last, LastStableOffset: w.stable(in.last)}, known)
	}
	w.last[id] = in.last
}

// stable is the last stable offset when the marker at an offset ends its transaction.
func (w *txnWalk) stable(marker int64) int64 {
	stable := marker + 1
	for _, first := range w.open {
		stable = min(stable, first)
	}
	return stable
}

// abort holds a marker against the .txnindex file. If nothing of the transaction was seen,
// because compaction or retention took it away, its entry may or may not be there.
func (w *txnWalk) abort(s *segmentCheck, want segment.AbortedTxn, known bool) {
	list := &s.indexes.txns
	for len(*list) > 0 && (*list)[0].LastOffset < want.LastOffset {
		w.stranger(s, (*list)[0])
		*list = (*list)[1:]
	}
	if len(*list) == 0 || (*list)[0].LastOffset != want.LastOffset {
		if known && !w.lost {
			w.absent(s, want)
		}
		return
	}
	got := (*list)[0]
	*list = (*list)[1:]
	marker, ended := w.last[want.ProducerID]
	if ended && got.FirstOffset <= marker || w.wrong(got, want, known, s.partition.wholeFrom()) {
		s.damage(s.partition.path(s.base, segment.TxnIndexFile), -1, got.LastOffset, "entry %+v, the log says %+v", got, want)
	}
}

// wrong reports whether an entry cannot be, where the log says want and has all batches from an
// offset on. What begins below that may be gone.
func (w *txnWalk) wrong(got, want segment.AbortedTxn, known bool, whole int64) bool {
	switch {
	case got.ProducerID != want.ProducerID, got.FirstOffset < 0, got.FirstOffset > got.LastOffset,
		got.LastStableOffset < 0, got.LastStableOffset > got.LastOffset+1:
		return true
	case w.lost:
		return known && got.FirstOffset > want.FirstOffset
	case !known:
		return got.FirstOffset >= whole
	}
	return got.FirstOffset > want.FirstOffset || got.FirstOffset < want.FirstOffset && got.FirstOffset >= whole ||
		got.LastStableOffset > want.LastStableOffset || got.LastStableOffset < want.LastStableOffset && got.LastStableOffset >= whole
}

// wholeFrom is the offset from which on no batch is missing, as far as the walk has come: what
// compaction has not been at, and retention has left. The first dirty offset does not say that: a
// stop may end a cleaning that has replaced some segments already. The active one is never cleaned.
func (p *partition) wholeFrom() int64 {
	switch {
	case p.cleaned != unknown:
		return p.logs[len(p.logs)-1]
	case p.holed || len(p.offsets.gaps) > 0:
		return unlimited
	}
	return p.logs[0]
}

func (w *txnWalk) absent(s *segmentCheck, want segment.AbortedTxn) {
	path := s.partition.path(s.base, segment.TxnIndexFile)
	if !s.indexes.missing[segment.TxnIndexFile] {
		s.damage(path, -1, want.LastOffset, "the aborted transaction of producer %d, offsets %d-%d, is missing",
			want.ProducerID, want.FirstOffset, want.LastOffset)
	} else if !s.indexes.txnsReported {
		s.indexes.txnsReported = true
		s.damage(path, -1, want.LastOffset, "missing, but transactions were aborted")
	}
}

func (w *txnWalk) stranger(s *segmentCheck, a segment.AbortedTxn) {
	if !w.lost {
		s.damage(s.partition.path(s.base, segment.TxnIndexFile), -1, a.LastOffset, "entry %+v: no ABORT marker has its last offset", a)
	}
}

// finish ends a segment.
func (w *txnWalk) finish(s *segmentCheck) {
	for _, a := range s.indexes.txns {
		w.stranger(s, a)
	}
}
