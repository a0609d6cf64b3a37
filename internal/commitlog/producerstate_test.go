package commitlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A stateTest feeds batches to a ProducerState as a leader does.
type stateTest struct {
	t *testing.T
	s *ProducerState
}

func newStateTest(t *testing.T) *stateTest { return &stateTest{t, newProducerState(0)} }

func (st *stateTest) feed(set []byte, o AppendOptions) error {
	b := record.Batch(set)
	if err := st.s.check(b, parseEndTxn(b), o); err != nil {
		return err
	}
	b.SetBaseOffset(st.s.end)
	if txn, ended := st.s.apply(b, parseEndTxn(b), position{offset: st.s.end}); ended {
		st.s.complete(txn)
	}
	st.s.end = b.NextOffset()
	return nil
}

func (st *stateTest) data(id int64, epoch int16, sequence int32, records int) error {
	set := spec{records: records, producer: &record.Producer{ID: id, Epoch: epoch, BaseSequence: sequence}}.build(st.t)
	if b, ok := st.s.duplicate(record.Batch(set)); ok {
		return duplicateError(b.firstOffset())
	}
	return st.feed(set, AppendOptions{})
}

func (st *stateTest) txn(id int64, epoch int16, sequence int32) error {
	set := spec{producer: &record.Producer{ID: id, Epoch: epoch, BaseSequence: sequence}, txn: true}.build(st.t)
	return st.feed(set, AppendOptions{})
}

func (st *stateTest) end(id int64, epoch int16, coordinatorEpoch int32, version int16) error {
	return st.feed(marker(id, epoch, false, coordinatorEpoch), AppendOptions{Origin: record.Coordinator, TransactionVersion: version})
}

func (st *stateTest) want(got, want error) {
	st.t.Helper()
	if !errors.Is(got, want) {
		st.t.Errorf("got %v, want %v", got, want)
	}
}

// duplicateError carries the offset that a duplicate got first.
type duplicateError int64

func (duplicateError) Error() string { return "duplicate" }

func TestSequences(t *testing.T) {
	st := newStateTest(t)
	st.want(st.data(7, 0, 42, 1), nil) // unknown producer: any start
	st.want(st.data(7, 0, 43, 2), nil)
	st.want(st.data(7, 0, 46, 1), ErrOutOfOrderSequence)
	st.want(st.data(7, 0, 44, 1), ErrOutOfOrderSequence) // overlaps: no duplicate, a gap backwards
	st.want(st.data(7, 0, 43, 2), duplicateError(1))
	st.want(st.data(7, 0, 45, 1), nil)
	st.want(st.data(7, -1, 46, 1), ErrInvalidProducerEpoch)
	st.want(st.data(7, 1, 46, 1), ErrOutOfOrderSequence) // a new epoch begins with 0
	st.want(st.data(7, 1, 0, 1), nil)
	st.want(st.data(7, 0, 46, 1), ErrInvalidProducerEpoch) // fenced
	st.want(st.data(7, 0, 45, 1), ErrInvalidProducerEpoch) // also a duplicate of the old epoch
	st.want(st.data(8, 3, 0, 1), nil)                      // others do not care
}

func TestFiveBatchesAreRemembered(t *testing.T) {
	st := newStateTest(t)
	for i := range int32(7) {
		st.want(st.data(7, 0, 10*i, 10), nil)
	}
	for i := range int32(7) {
		want := error(duplicateError(10 * i))
		if i < 2 {
			want = ErrOutOfOrderSequence
		}
		st.want(st.data(7, 0, 10*i, 10), want)
	}
}

func TestSequenceWrap(t *testing.T) {
	st := newStateTest(t)
	st.want(st.data(7, 0, math.MaxInt32-1, 4), nil) // MaxInt32-1, MaxInt32, 0, 1
	if got := st.s.producers[7].lastSequence(); got != 1 {
		t.Fatalf("last sequence %d, want 1", got)
	}
	st.want(st.data(7, 0, math.MaxInt32-1, 4), duplicateError(0))
	st.want(st.data(7, 0, 3, 1), ErrOutOfOrderSequence)
	st.want(st.data(7, 0, 2, 1), nil)

	st = newStateTest(t)
	st.want(st.data(7, 0, math.MaxInt32, 1), nil)
	st.want(st.data(7, 0, 0, 1), nil)
	st.want(st.data(7, 0, 1, 1), nil)
}

func TestTransactions(t *testing.T) {
	st := newStateTest(t)
	unstable := func(want int64) {
		t.Helper()
		if p, ok := st.s.firstUnstable(); p.offset != want || ok != (want >= 0) {
			t.Errorf("first unstable %d, want %d", p.offset, want)
		}
	}
	st.want(st.txn(1, 0, 0), nil) // offset 0
	st.want(st.txn(2, 0, 0), nil) // offset 1
	st.want(st.txn(1, 0, 1), nil) // offset 2
	unstable(0)
	st.want(st.data(1, 0, 2, 1), ErrInvalidTxnState) // outside of its open transaction
	st.want(st.end(1, 0, 5, 0), nil)                 // offset 3
	unstable(0)                                      // until the high watermark passes the marker
	st.s.release(3)
	unstable(0)
	st.s.release(4)
	unstable(1)
	st.want(st.end(1, 0, 4, 0), ErrTransactionCoordinatorFenced)
	st.want(st.end(1, 0, 5, 2), ErrInvalidProducerEpoch) // version 2: the marker bumps
	st.want(st.end(1, -1, 6, 0), ErrInvalidProducerEpoch)
	st.want(st.end(2, 1, 6, 2), nil) // offset 4, new epoch
	if p := st.s.producers[2]; p.epoch != 1 || p.count != 0 || p.coordinatorEpoch != 6 {
		t.Errorf("after the marker: %+v", p)
	}
	st.want(st.txn(2, 0, 1), ErrInvalidProducerEpoch)
	st.s.release(5)
	unstable(-1)
	st.want(st.end(1, 0, 7, 0), nil) // nothing open: no transaction to complete
	unstable(-1)
}

func TestAbortedEntryLooksAtOtherTransactions(t *testing.T) {
	s := newProducerState(0)
	begin := func(id, offset int64) {
		b := record.Batch(spec{producer: &record.Producer{ID: id}, txn: true}.build(t))
		b.SetBaseOffset(offset)
		s.apply(b, endTxn{}, position{offset: offset})
	}
	abort := func(id, offset int64) (stable int64) {
		b := record.Batch(marker(id, 0, true, 0))
		b.SetBaseOffset(offset)
		txn, ended := s.apply(b, parseEndTxn(b), position{offset: offset})
		if !ended || !txn.Aborted {
			t.Fatalf("marker of %d ended nothing", id)
		}
		return s.aborted(txn).LastStableOffset
	}
	begin(1, 10)
	begin(2, 20)
	if got := abort(1, 30); got != 20 {
		t.Errorf("got %d, want 20", got)
	}
	if got := abort(2, 40); got != 41 {
		t.Errorf("got %d, want 41", got)
	}
}

func TestProducersExpire(t *testing.T) {
	st := newStateTest(t)
	st.want(st.data(1, 0, 0, 1), nil)
	st.want(st.txn(2, 0, 0), nil)
	if n := st.s.expire(testTime.Add(time.Hour-1), time.Hour); n != 0 {
		t.Errorf("%d expired too early", n)
	}
	if n := st.s.expire(testTime.Add(time.Hour), time.Hour); n != 1 || st.s.producers[2] == nil {
		t.Errorf("%d expired; an open transaction keeps its producer", n)
	}
}

func TestSnapshotVectors(t *testing.T) {
	f := func(s *ProducerState, want string) {
		t.Helper()
		if got := hex.EncodeToString(s.encode()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	f(newProducerState(0), "000148674bc700000000")

	s := newProducerState(105)
	p := &producer{id: 4000, epoch: 3, coordinatorEpoch: 2, lastTimestamp: 1_700_000_000_000, txn: position{offset: 100}}
	p.add(producerBatch{lastSequence: 19, offsetDelta: 2, lastOffset: 104, timestamp: p.lastTimestamp})
	s.put(p)
	s.insertOpen(p)
	f(s, "00010ab1918e000000010000000000000fa00003000000130000000000000068000000020000018bcfe56800000000020000000000000064")

	again, err := decodeSnapshot(s.encode(), 105)
	must(t, err)
	if diff := cmp.Diff(s.infos(), again.infos()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first, _ := again.firstUnstable(); first.offset != 100 {
		t.Errorf("first unstable %d, want 100", first.offset)
	}
	if b, ok := again.producers[4000].find(17, 19); !ok || b.firstOffset() != 102 {
		t.Errorf("the last batch is not found again: %+v", b)
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	s := newProducerState(9)
	f.Add(s.encode())
	p := &producer{id: 1, txn: position{offset: 3}}
	p.add(producerBatch{1, 1, 8, 5})
	s.put(p)
	f.Add(s.encode())
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSnapshot(b, 9)
		if err != nil {
			return
		}
		again, err := decodeSnapshot(s.encode(), 9)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.infos(), again.infos()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The same state is the same file, so that recovery keeps one that is right.
func TestSnapshotIsReproducible(t *testing.T) {
	s := newProducerState(0)
	for id := range int64(50) {
		s.put(&producer{id: id})
	}
	first := s.encode()
	for range 10 {
		if !bytes.Equal(s.encode(), first) {
			t.Fatal("encoded in another order")
		}
	}
}

// What compaction leaves of the last batch of a producer opens no transaction: the marker behind it may have gone.
func TestEmptiedBatchOpensNothing(t *testing.T) {
	whole := record.Batch(spec{records: 3, txn: true, producer: &record.Producer{ID: 7, BaseSequence: 4}}.build(t))
	for _, c := range []struct {
		b    record.Batch
		open int
	}{{whole, 1}, {record.EmptyBatch(whole), 0}} {
		s := newProducerState(0)
		s.apply(c.b, endTxn{}, position{})
		if p := s.producers[7]; len(s.open) != c.open || p == nil || p.lastSequence() != 6 {
			t.Errorf("%d records: %d transactions are open, the producer is %+v", c.b.Count(), len(s.open), p)
		}
	}
}
