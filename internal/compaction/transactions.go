package compaction

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// transactions follow what happens to transactional records while batches are read in the order
// of their offsets (Kafka's CleanedTransactionMetadata). They know beforehand which
// transactions are aborted, from the transaction indexes.
type transactions struct {
	coming []segment.AbortedTxn // not begun yet, by first offset
	known  map[txnID]bool       // all that were ever coming
	// aborted are the aborted transactions that are under way, by producer.
	aborted map[int64]*abortedTxn
	// committed are producers with records of a transaction that will be committed.
	committed map[int64]bool
	// undecided are transactions of which nobody knows what became of them: their records stay as they
	// are, and supersede none.
	undecided []commitlog.UndecidedTxn
	// lost says that there may be records that nobody has seen: then every marker stays.
	lost bool
}

type txnID struct{ producer, first int64 }

type abortedTxn struct {
	segment.AbortedTxn
	seen bool // a batch of it, if only its header
}

func newTransactions() *transactions {
	return &transactions{known: map[txnID]bool{}, aborted: map[int64]*abortedTxn{}, committed: map[int64]bool{}}
}

// clone returns a copy to go back to.
func (t *transactions) clone() *transactions {
	c := &transactions{slices.Clone(t.coming), maps.Clone(t.known), make(map[int64]*abortedTxn), maps.Clone(t.committed), t.undecided, t.lost}
	for id, a := range t.aborted {
		copied := *a
		c.aborted[id] = &copied
	}
	return c
}

// add announces aborted transactions. Those that are known already are left out.
func (t *transactions) add(list []segment.AbortedTxn) {
	for _, a := range list {
		if id := (txnID{a.ProducerID, a.FirstOffset}); !t.known[id] {
			t.known[id] = true
			t.coming = append(t.coming, a)
		}
	}
	slices.SortFunc(t.coming, func(a, b segment.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
}

// begin makes those under way that begin up to an offset.
func (t *transactions) begin(upTo int64) {
	for len(t.coming) > 0 && t.coming[0].FirstOffset <= upTo {
		a := t.coming[0]
		t.coming = t.coming[1:]
		if t.ongoing(a.ProducerID, a.FirstOffset) == nil {
			t.aborted[a.ProducerID] = &abortedTxn{AbortedTxn: a}
		}
	}
}

// ongoing returns the aborted transaction of a producer that an offset belongs to. One whose
// marker nobody has seen, because it is damaged, is over all the same.
func (t *transactions) ongoing(producer, offset int64) *abortedTxn {
	a := t.aborted[producer]
	if a != nil && offset > a.LastOffset {
		delete(t.aborted, producer)
		return nil
	}
	return a
}

// isUndecided reports whether a batch of records is of an undecided transaction.
func (t *transactions) isUndecided(b record.Batch) bool {
	return b.IsTransactional() && slices.ContainsFunc(t.undecided, func(u commitlog.UndecidedTxn) bool {
		return u.ProducerID == b.ProducerID() && u.FirstOffset <= b.BaseOffset() && b.BaseOffset() < u.EndOffset
	})
}

// data takes notice of a batch of records, and reports whether its transaction is aborted.
func (t *transactions) data(b record.Batch) bool {
	if !b.IsTransactional() {
		return false
	}
	t.begin(b.LastOffset())
	if a := t.ongoing(b.ProducerID(), b.BaseOffset()); a != nil {
		a.seen = true
		return true
	}
	t.committed[b.ProducerID()] = true
	return false
}

// marker takes notice of a control batch, and reports whether nothing is left of its
// transaction, so that it may go. aborted is the entry that the transaction index needs
// because of it.
func (t *transactions) marker(b record.Batch) (empty bool, aborted *segment.AbortedTxn) {
	t.begin(b.LastOffset())
	if b.Count() == 0 {
		return true, nil
	}
	kind, ok := b.ControlType()
	switch {
	case ok && kind == record.ControlAbort:
		a := t.ongoing(b.ProducerID(), b.BaseOffset())
		delete(t.aborted, b.ProducerID())
		if a != nil && (a.seen || t.lost) {
			return false, &a.AbortedTxn
		}
		return !t.lost, nil
	case ok && kind == record.ControlCommit:
		seen := t.committed[b.ProducerID()]
		delete(t.committed, b.ProducerID())
		return !seen && !t.lost, nil
	}
	return false, nil
}
