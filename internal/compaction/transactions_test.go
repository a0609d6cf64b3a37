package compaction

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// txnBatch is a batch of a transaction at an offset.
func txnBatch(t *testing.T, producer, offset int64) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{Transactional: true, Producer: &record.Producer{ID: producer}})
	must(t, b.Append(record.Record{Key: []byte("k")}))
	batch := record.Batch(b.Build())
	batch.SetBaseOffset(offset)
	return batch
}

// A batch is of an undecided transaction from its first offset on until the damage with the marker is over.
func TestIsUndecided(t *testing.T) {
	txns := newTransactions()
	txns.undecided = []commitlog.UndecidedTxn{{ProducerID: 1, FirstOffset: 10, EndOffset: 20}}
	f := func(producer, offset int64, want bool) {
		t.Helper()
		if got := txns.isUndecided(txnBatch(t, producer, offset)); got != want {
			t.Errorf("producer %d at %d: got %v, want %v", producer, offset, got, want)
		}
	}
	f(1, 9, false)
	f(1, 10, true)
	f(1, 19, true)
	f(1, 20, false)
	f(2, 10, false)
	plain := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 1}})
	must(t, plain.Append(record.Record{Offset: 10, Key: []byte("k")}))
	if txns.isUndecided(plain.Build()) {
		t.Error("a batch that is of no transaction is of an undecided one")
	}
}

// An aborted transaction has the offsets up to its marker, and no more.
func TestAbortedUpToTheMarker(t *testing.T) {
	f := func(producer, offset int64, want bool) {
		t.Helper()
		txns := newTransactions()
		txns.add([]segment.AbortedTxn{{ProducerID: 1, FirstOffset: 10, LastOffset: 20}})
		if got := txns.data(txnBatch(t, producer, offset)); got != want {
			t.Errorf("producer %d at %d: got %v, want %v", producer, offset, got, want)
		}
	}
	f(1, 9, false)
	f(1, 10, true)
	f(1, 20, true)
	f(1, 21, false)
	f(2, 10, false)
}

// A control record that ends no transaction stays, and says nothing of one.
func TestOtherControlRecordsStay(t *testing.T) {
	txns := newTransactions()
	txns.data(txnBatch(t, 1, 0))
	o := record.BuilderOptions{BaseOffset: 1, Producer: &record.Producer{ID: 1}}
	for _, kind := range []record.ControlType{record.ControlLeaderChange, 99} {
		if empty, aborted := txns.marker(record.ControlBatch(o, 0, kind, nil)); empty || aborted != nil {
			t.Errorf("%v: empty %v, aborted %v", kind, empty, aborted)
		}
	}
	commit := record.EndTxnMarker(record.EndTxn{Type: record.ControlCommit, ProducerID: 1})
	if empty, _ := txns.marker(commit); empty {
		t.Error("the transaction is taken for empty behind another control record")
	}
}
