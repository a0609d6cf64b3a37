package commitlog

import (
	"iter"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A doubt is a transaction whose marker may be in a damage: records are in front of it, and nothing
// told yet what became of them.
type doubt struct {
	producerID   int64
	epoch        int16
	first        position
	lastSequence int32 // of its last batch, if that is in front of the damage, or -1

	lostFirst, lostEnd int64 // the first damage behind that batch
	lost               int64 // offsets in all of them

	// bridged says that behind the damage there may have been, or are, records of the next
	// transaction, so that a marker may not be the one of this.
	bridged bool

	// gone says that the damage has no bytes, so that an index may be gone with them.
	gone bool

	// noted says that readers were told that it is undecided. Then what follows is another one.
	noted bool

	outcome txnOutcome
	marker  int64 // offset of the marker behind the damage
	abort   bool  // that is what it says
}

func (d doubt) isPending() bool { return d.outcome == txnPending }

func (d doubt) open() segment.OpenTxn {
	return segment.OpenTxn{ProducerID: d.producerID, FirstOffset: d.first.offset}
}

// A txnOutcome is what became of a transaction.
type txnOutcome int8

const (
	txnPending   txnOutcome = iota // nothing of the producer is behind the damage
	txnOngoing                     // it went on behind the damage
	txnCommitted                   // its COMMIT marker is there
	txnAborted                     // its ABORT marker is there
	txnEnded                       // it has ended, nobody knows how
)

// afterData decides by the next batch of records of the producer.
//
//	not transactional, or of a higher epoch   the transaction had to be over
//	of an older epoch                         a late one, which tells nothing
//	the sequence goes on, and all offsets     the damage was records of this producer, and no
//	 that are missing are its own              marker
//	otherwise                                 of this transaction or, as before KIP-890 part 2 the
//	                                           epoch stays the same, of the next
func (d *doubt) afterData(epoch int16, transactional bool, firstSequence int32) txnOutcome {
	switch {
	case !transactional || epoch > d.epoch:
		return txnEnded
	case epoch == d.epoch && !d.noted && d.lastSequence >= 0 && sequencesBetween(d.lastSequence, firstSequence) == d.lost:
		return txnOngoing
	}
	return txnPending
}

// afterMarker decides by the next marker of the producer. One that nothing can have come in front of
// is the transaction's own. If a transaction may have ended and another begun before, only a COMMIT
// says something of both, if its epoch is the one behind that of the records: then every
// transaction has an epoch of its own (KIP-890 part 2), and this is the only marker.
func (d *doubt) afterMarker(epoch int16, abort bool) txnOutcome {
	switch {
	case d.bridged && (abort || epoch != d.epoch+1):
		return txnEnded
	case abort:
		return txnAborted
	}
	return txnCommitted
}

// sequencesBetween is how many sequence numbers lie between two, which wrap around.
func sequencesBetween(last, first int32) int64 {
	n := int64(first) - int64(last) - 1
	if n < 0 {
		n += math.MaxInt32 + 1
	}
	return n
}

// A lostStretch is a damage, as far as it counts for transactions.
type lostStretch struct {
	first, end int64
	gone       bool // without its bytes
	segment.Remains
}

// goneStretch is one whose bytes are gone too.
func goneStretch(first, end int64) lostStretch {
	return lostStretch{first, end, true, segment.Remains{Marker: true, Room: end-first > 1}}
}

// damaged takes in a damage in front of the batch that comes next. proven are entries of the index
// of aborted transactions whose markers were in it. Open transactions that may have ended in it are
// in doubt, and do not count as open any more.
func (s *ProducerState) damaged(d lostStretch, proven []segment.AbortedTxn) {
	s.end = max(s.end, d.end)
	for _, a := range proven {
		s.abortedIn(a, d)
	}
	if !d.Marker || len(proven) > 0 && !d.Room {
		return
	}
	for i := range s.doubts {
		if t := &s.doubts[i]; t.outcome == txnPending {
			t.lost += d.end - d.first
			t.bridged = true
		}
	}
	for len(s.open) > 0 {
		s.addDoubt(s.open[0], d, txnPending)
	}
}

// addDoubt takes the open transaction of a producer for one that is in doubt.
func (s *ProducerState) addDoubt(p *producer, d lostStretch, o txnOutcome) {
	t := doubt{
		producerID: p.id, epoch: p.epoch, first: p.txn, lastSequence: p.lastSequence(), outcome: o,
		lostFirst: d.first, lostEnd: d.end, lost: d.end - d.first, bridged: d.Room, gone: d.gone,
	}
	if s.lost != nil {
		_, t.noted = s.lost.findIn(t.undecided(), t.lostFirst)
	}
	s.doubts = append(s.doubts, t)
	s.endTxn(p, false, d.end-1)
}

// endLost ends the transactions up to an offset that are known to have lost their end. What the producer
// wrote behind is of the next one.
func (s *ProducerState) endLost(offset int64) {
	if s.lost == nil {
		return
	}
	for _, n := range s.lost.list {
		p := s.producers[n.ProducerID]
		if p != nil && p.txn.offset == n.FirstOffset && n.EndOffset <= offset {
			s.endTxn(p, true, n.EndOffset-1)
			if p.count > 0 && p.batches[p.newest].lastOffset >= n.EndOffset {
				p.txn = position{offset: n.EndOffset}
				s.insertOpen(p)
			}
		}
	}
}

// abortedIn takes in that the index knows of a transaction whose marker is in a damage. One that began
// before it has ended as well, nobody knows how.
func (s *ProducerState) abortedIn(a segment.AbortedTxn, d lostStretch) {
	for t := range s.pending(a.ProducerID) {
		t.outcome, t.marker = txnAborted, a.LastOffset
		if a.FirstOffset > t.first.offset {
			t.outcome = txnEnded
		}
	}
	p := s.producers[a.ProducerID]
	switch {
	case p == nil || p.txn.offset < 0:
	case a.FirstOffset > p.txn.offset:
		s.addDoubt(p, d, txnEnded)
	default:
		s.endTxn(p, true, a.LastOffset)
	}
}

// pending yields the transactions of a producer that are in doubt, oldest first. All but the last have
// records of later ones behind them, or other damage.
func (s *ProducerState) pending(producerID int64) iter.Seq[*doubt] {
	return func(yield func(*doubt) bool) {
		for i := range s.doubts {
			if d := &s.doubts[i]; d.producerID == producerID && d.isPending() && !yield(d) {
				return
			}
		}
	}
}

// goOn tells the transactions in doubt of the next batch of records of their producer.
func (s *ProducerState) goOn(p *producer, b record.Batch) {
	for d := range s.pending(p.id) {
		switch d.outcome = d.afterData(b.ProducerEpoch(), b.IsTransactional(), b.BaseSequence()); d.outcome {
		case txnOngoing:
			s.resume(p, d)
		case txnPending:
			d.bridged, d.lastSequence = true, -1 // what comes next goes on behind this batch
		}
	}
}

// endTxns is endTxn with a marker, which tells the transactions in doubt something, too.
func (s *ProducerState) endTxns(p *producer, abort bool, b record.Batch) (t CompletedTxn, ended bool) {
	t, ended = s.endTxn(p, abort, b.LastOffset())
	for d := range s.pending(p.id) {
		d.outcome, d.marker, d.abort = d.afterMarker(b.ProducerEpoch(), abort), b.LastOffset(), abort
		if !ended && d.outcome != txnEnded {
			t, ended = CompletedTxn{p.id, d.first.offset, b.LastOffset(), abort, d.first}, true
		}
	}
	return t, ended
}

// goesOn opens the transactions in doubt again that are open behind the damage, as somebody says who
// knew more.
func (s *ProducerState) goesOn(isOpen func(producerID, first int64) bool) {
	for i := range s.doubts {
		if d := &s.doubts[i]; d.isPending() && !d.noted && isOpen(d.producerID, d.first.offset) {
			s.resume(s.producers[d.producerID], d)
		}
	}
}

// beginsOpen reports whether a producer has a transaction open that begins at an offset.
func (s *ProducerState) beginsOpen(producerID, first int64) bool {
	p := s.producers[producerID]
	return p != nil && p.txn.offset == first
}

// undecided lists the transactions in doubt of which nobody has been told.
func (s *ProducerState) undecided() (list []UndecidedTxn) {
	for _, d := range s.doubts {
		if d.isPending() && !d.noted {
			list = append(list, d.undecided())
		}
	}
	return list
}

// resume opens a transaction again that has turned out to go on.
func (s *ProducerState) resume(p *producer, d *doubt) {
	if d.outcome = txnOngoing; p.txn.offset >= 0 {
		i := slices.Index(s.open, p)
		s.open = slices.Delete(s.open, i, i+1)
	}
	p.txn = d.first
	s.insertOpen(p)
}
