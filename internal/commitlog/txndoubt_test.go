package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// What the next batch of records says: epoch 5, last sequence 9 in front of a damage of two offsets.
func TestDoubtAfterData(t *testing.T) {
	f := func(epoch int16, transactional bool, sequence int32, noted bool, want txnOutcome) {
		t.Helper()
		d := doubt{epoch: 5, lastSequence: 9, lost: 2, noted: noted}
		if got := d.afterData(epoch, transactional, sequence); got != want {
			t.Errorf("epoch %d, transactional %v, sequence %d: got %d, want %d", epoch, transactional, sequence, got, want)
		}
	}
	f(5, false, 10, false, txnEnded)
	f(6, true, 0, false, txnEnded)
	f(4, true, 10, false, txnPending)
	f(5, true, 10, false, txnPending) // nothing is missing of the producer: one of the two may be a marker
	f(5, true, 11, false, txnPending)
	f(5, true, 12, false, txnOngoing) // both were its own
	f(5, true, 12, true, txnPending)  // readers were told otherwise
}

// What the next marker says, of a transaction with epoch 5.
func TestDoubtAfterMarker(t *testing.T) {
	f := func(bridged bool, epoch int16, abort bool, want txnOutcome) {
		t.Helper()
		d := doubt{epoch: 5, bridged: bridged}
		if got := d.afterMarker(epoch, abort); got != want {
			t.Errorf("bridged %v, epoch %d, abort %v: got %d, want %d", bridged, epoch, abort, got, want)
		}
	}
	f(false, 5, true, txnAborted)
	f(false, 5, false, txnCommitted)
	f(false, 6, true, txnAborted)
	f(true, 5, true, txnEnded)
	f(true, 5, false, txnEnded)
	f(true, 6, false, txnCommitted) // KIP-890: the epoch was that of this transaction alone
	f(true, 6, true, txnEnded)      // or that, or a fenced producer's
	f(true, 7, false, txnEnded)
}

// What all witnesses say together.
func TestTxnVerdict(t *testing.T) {
	const undecided, commit, abort = checkpoint.Undecided, checkpoint.Commit, checkpoint.Abort
	f := func(w txnWitnesses, want txnVerdict) {
		t.Helper()
		if got := w.verdict(); got != want {
			t.Errorf("%+v: got %d, want %d", w, got, want)
		}
	}
	f(txnWitnesses{outcome: txnOngoing}, verdictOpen)
	f(txnWitnesses{outcome: txnOngoing, noted: true, note: undecided}, verdictUndecided)
	f(txnWitnesses{outcome: txnPending, open: true, complete: true}, verdictOpen)
	f(txnWitnesses{outcome: txnEnded, open: true}, verdictUndecided) // what is open is the next one
	f(txnWitnesses{outcome: txnAborted, noted: true, note: commit}, verdictAborted)
	f(txnWitnesses{outcome: txnCommitted, noted: true, note: abort}, verdictCommitted)
	f(txnWitnesses{indexed: true, noted: true, note: undecided}, verdictAborted)
	f(txnWitnesses{complete: true}, verdictCommitted)
	f(txnWitnesses{complete: true, noted: true, note: undecided}, verdictUndecided) // the index is new
	f(txnWitnesses{complete: true, noted: true, note: abort}, verdictAborted)
	f(txnWitnesses{noted: true, note: commit}, verdictCommitted)
	f(txnWitnesses{outcome: txnEnded}, verdictUndecided)
	f(txnWitnesses{}, verdictUndecided)
}

// committedReader reads as a consumer of committed records does that skips what is corrupt.
func committedReader(t *testing.T, l *Log) (values []string, corrupt []int64) {
	t.Helper()
	return committedFrom(t, l, l.Offsets().LogStart)
}

// committedFrom is one that begins at an offset.
func committedFrom(t *testing.T, l *Log, at int64) (values []string, corrupt []int64) {
	t.Helper()
	for {
		r, err := l.Read(at, 1<<20, ReadCommitted, segment.WholeFirst)
		if c, ok := errors.AsType[*segment.CorruptError](err); ok && c.End > at {
			for ; at < c.End; at++ {
				corrupt = append(corrupt, at)
			}
			continue
		}
		must(t, err)
		b := contents(t, r)
		if len(b) == 0 {
			return values, corrupt
		}
		for batch := range record.Batches(b) {
			at = batch.NextOffset()
			aborted := func(a segment.AbortedTxn) bool {
				return a.ProducerID == batch.ProducerID() && a.FirstOffset <= batch.BaseOffset() && batch.BaseOffset() < a.LastOffset
			}
			if batch.IsControl() || batch.IsTransactional() && slices.ContainsFunc(r.Aborted, aborted) {
				continue
			}
			for rec, err := range batch.Records() {
				must(t, err)
				values = append(values, fmt.Sprintf("%d:%s", rec.Offset, rec.Value))
			}
		}
	}
}

// wipe overwrites the batch at an offset with zeros.
func wipe(t *testing.T, mem *vfs.Mem, offset int64) {
	t.Helper()
	for _, base := range []int64{0, 6} {
		path := dir + segment.Name(base, segment.LogFile, "")
		b := contentsOf(t, mem, segment.Name(base, segment.LogFile, ""))
		for batch := range record.Batches(b) {
			if batch.BaseOffset() == offset {
				clear(batch)
				must(t, writeFile(mem, path, b))
				return
			}
		}
	}
	t.Fatalf("no batch at %d", offset)
}

// A marker of which nothing is left. After a clean stop the index of aborted transactions tells, and
// after an unclean one it is believed where it has an entry. What nobody knows is kept from readers of
// committed records until somebody decides, which holds after every restart. The rest is read.
func TestUndecidedTransaction(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for marker, o := range map[int64]struct {
			first, end int64 // of the records of its producer
			abort      bool
		}{2: {0, 1, true}, 5: {4, 5, true}, 6: {3, 4, false}, 8: {1, 8, true}, 10: {9, 10, true}, 12: {11, 12, false}} {
			t.Run(fmt.Sprintf("clean %v/marker %d", clean, marker), func(t *testing.T) {
				mem := vfs.NewMem()
				options := transactions(t, mem)
				wipe(t, mem, marker)
				if options.Clean = clean; !clean {
					options.RecoveryPoint = 0
				}
				l := openLog(t, options)
				l.SetHighWatermark(l.Offsets().End)
				got, corrupt := committedReader(t, l)
				if stable := l.Offsets().LastStable; stable != 13 {
					t.Errorf("last stable offset is %d", stable)
				}
				lost := !clean && !o.abort
				want := []string{"3:kept0", "11:kept0"}
				if lost {
					want = slices.DeleteFunc(want, func(s string) bool { return s == fmt.Sprintf("%d:kept0", o.first) })
				}
				if !slices.Equal(got, want) || !slices.Contains(corrupt, marker) || slices.Contains(corrupt, o.first) != lost {
					t.Fatalf("read %v, corrupt %v, want %v", got, corrupt, want)
				}
				list, err := l.UndecidedTxns()
				must(t, err)
				if (len(list) > 0) != lost {
					t.Fatalf("undecided: %v", list)
				}
				must(t, l.Close())
				options.Clean, options.RecoveryPoint = true, 13
				for range 2 { // the index looks whole again
					l = openLog(t, options)
					l.SetHighWatermark(l.Offsets().End)
					again, _ := committedReader(t, l)
					if !slices.Equal(again, got) {
						t.Fatalf("after a restart: read %v, before %v", again, got)
					}
					if lost {
						checkDecision(t, mem, options, list[0], o.first)
					}
					must(t, l.Close())
				}
			})
		}
	}
}

// checkDecision ends a transaction in two copies of a log, in either way.
func checkDecision(t *testing.T, mem *vfs.Mem, options Options, u UndecidedTxn, first int64) {
	t.Helper()
	for _, commit := range []bool{true, false} {
		options.FS = mem.CrashClone(nil)
		options.Clean = false
		options.RecoveryPoint = 0
		l := openLog(t, options)
		if err := l.DecideTxn(u.ProducerID, u.FirstOffset+1, commit); !errors.Is(err, ErrNotUndecided) {
			t.Errorf("decided about nothing: %v", err)
		}
		must(t, l.DecideTxn(u.ProducerID, u.FirstOffset, commit))
		for _, o := range []Options{options, options} {
			l.SetHighWatermark(l.Offsets().End)
			got, corrupt := committedReader(t, l)
			served := slices.Contains(got, fmt.Sprintf("%d:kept0", first))
			if served != commit || slices.Contains(corrupt, first) {
				t.Errorf("commit %v: read %v, corrupt %v", commit, got, corrupt)
			}
			o.FS = options.FS.(*vfs.Mem).CrashClone(nil)
			l = openLog(t, o)
		}
	}
}

// With any bit of any marker turned round, after any stop, readers of committed records lose nothing
// and see nothing that they did not before.
func TestMarkerFlip(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, base := range []int64{0, 6} {
			name := segment.Name(base, segment.LogFile, "")
			mem := vfs.NewMem()
			transactions(t, mem)
			good := contentsOf(t, mem, name)
			position := 0
			for batch := range record.Batches(good) {
				start := position
				position += batch.Size()
				if !batch.IsControl() {
					continue
				}
				for bit := 8 * start; bit < 8*position; bit += 7 {
					mem := vfs.NewMem()
					o := transactions(t, mem)
					bad := slices.Clone(good)
					bad[bit/8] ^= 1 << (bit % 8)
					must(t, writeFile(mem, dir+name, bad))
					if o.Clean = clean; !clean {
						o.RecoveryPoint = 0
					}
					l := openLog(t, o)
					l.SetHighWatermark(l.Offsets().End)
					got, corrupt := committedReader(t, l)
					if want := []string{"3:kept0", "11:kept0"}; !slices.Equal(got, want) {
						t.Errorf("clean %v, segment %d, bit %d (byte %d of the marker at %d): read %v, corrupt %v", clean, base, bit, bit/8-start, batch.BaseOffset(), got, corrupt)
					}
				}
			}
		}
	}
}

// With its file gone or empty, in either segment, after any stop.
func TestTxnIndexMissing(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, empty := range []bool{true, false} {
			for _, base := range []int64{0, 6} {
				mem := vfs.NewMem()
				want := abortedOf(t, openLog(t, transactions(t, mem)))
				mem = vfs.NewMem()
				o := transactions(t, mem)
				must(t, mem.Remove(dir+txnName(base)))
				if empty {
					must(t, writeFile(mem, dir+txnName(base), nil))
				}
				o.Clean = clean
				l := openLog(t, o)
				if got := abortedOf(t, l); !slices.Equal(got, want) {
					t.Errorf("clean %v, empty %v, segment %d: got %v, want %v", clean, empty, base, got, want)
				}
				must(t, l.Close())
				if len(contentsOf(t, mem, txnName(base))) == 0 {
					t.Error("the file was not made anew")
				}
			}
		}
	}
}

// Transactions of version 2 (KIP-890): a marker has the epoch behind that of the records, and the next
// transaction begins with it. After an unclean stop a wiped marker costs its own transaction at most,
// and wiped records cost themselves.
func TestTransactionsOfVersion2(t *testing.T) {
	for wiped, want := range map[int64][]string{
		1: {"0:a0", "3:b0", "4:b0", "5:b0"}, // no record: ABORT of another producer, which had none
		2: {"3:b0", "4:b0", "5:b0"},         // COMMIT of a, nothing tells
		4: {"0:a0", "3:b0", "5:b0"},         // a record
		6: {"0:a0"},                         // COMMIT of b, and what follows has a higher epoch
		8: {"0:a0", "3:b0", "4:b0", "5:b0"}, // ABORT of c: the index has it
	} {
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		data := func(epoch int16, sequence int32, tag string) {
			mustAppend(t, l, spec{producer: &record.Producer{ID: 1, Epoch: epoch, BaseSequence: sequence}, txn: true, tag: tag}.build(t))
		}
		data(0, 0, "a")                        // 0
		mustMark(t, l, marker(2, 1, true, 0))  // 1
		mustMark(t, l, marker(1, 1, false, 0)) // 2
		data(1, 0, "b")                        // 3
		data(1, 1, "b")                        // 4
		data(1, 2, "b")                        // 5
		mustMark(t, l, marker(1, 2, false, 0)) // 6
		data(2, 0, "c")                        // 7
		mustMark(t, l, marker(1, 3, true, 0))  // 8
		must(t, l.Close())
		wipe(t, mem, wiped)
		l = openLog(t, o)
		l.SetHighWatermark(l.Offsets().End)
		got, corrupt := committedReader(t, l)
		if !slices.Equal(got, want) || l.Offsets().LastStable != 9 {
			t.Errorf("wiped %d: read %v, corrupt %v, last stable offset %d, want %v", wiped, got, corrupt, l.Offsets().LastStable, want)
		}
	}
}

// txnInFrontOfDamage writes a record of producer 1 at 0, two markers of another one, and plain records
// from 3 on, which rolls may part. The markers are wiped, and the log was stopped.
func txnInFrontOfDamage(t *testing.T, mem *vfs.Mem, rolls ...int64) Options {
	t.Helper()
	o := testOptions(mem)
	l := openLog(t, o)
	mustAppend(t, l, spec{producer: &record.Producer{ID: 1}, txn: true, tag: "a"}.build(t)) // 0
	mustMark(t, l, marker(2, 0, true, 0))                                                   // 1
	mustMark(t, l, marker(2, 0, true, 0))                                                   // 2
	for i, tag := range []string{"b", "c", "d"} {
		if slices.Contains(rolls, int64(i+3)) {
			must(t, l.Roll())
		}
		mustAppend(t, l, spec{tag: tag}.build(t))
	}
	must(t, l.Close())
	wipe(t, mem, 2)
	wipe(t, mem, 1)
	o.Clean, o.RecoveryPoint = true, 6
	return o
}

// A transaction that is open in the producer snapshot behind damage goes on, and so is not undecided when
// its marker comes and the log is read anew.
func TestSnapshotProvesOpenTxn(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, abort := range []bool{true, false} {
			mem := vfs.NewMem()
			o := txnInFrontOfDamage(t, mem, 4)
			l := openLog(t, o)
			mustMark(t, l, marker(1, 0, abort, 0)) // 6
			must(t, l.Close())
			if o.Clean, o.RecoveryPoint = clean, 7; !clean {
				o.RecoveryPoint = 0
			}
			for range 2 {
				l = openLog(t, o)
				l.SetHighWatermark(l.Offsets().End)
				got, corrupt := committedReader(t, l)
				want := []string{"0:a0", "3:b0", "4:c0", "5:d0"}
				if abort {
					want = want[1:]
				}
				if !slices.Equal(got, want) || !slices.Equal(corrupt, []int64{1, 2}) {
					t.Errorf("clean %v, abort %v: read %v, corrupt %v", clean, abort, got, corrupt)
				}
				must(t, l.Close())
				o.Clean, o.RecoveryPoint = true, 7
			}
		}
	}
}

// A transaction stays open behind damage when the log is truncated behind that, and the next record of
// the producer belongs to it.
func TestTruncationKeepsOpenTxn(t *testing.T) {
	for _, rolls := range [][]int64{nil, {4}, {5}} {
		mem := vfs.NewMem()
		l := openLog(t, txnInFrontOfDamage(t, mem, rolls...))
		must(t, l.TruncateTo(5))
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: 1}, txn: true, tag: "e"}.build(t)) // 5
		l.SetHighWatermark(6)
		if stable := l.Offsets().LastStable; stable != 0 {
			t.Errorf("rolls %v: last stable offset %d", rolls, stable)
		}
		mustMark(t, l, marker(1, 0, true, 0)) // 6
		l.SetHighWatermark(7)
		if got, corrupt := committedReader(t, l); !slices.Equal(got, []string{"3:b0", "4:c0"}) {
			t.Errorf("rolls %v: read %v, corrupt %v", rolls, got, corrupt)
		}
	}
}

// A marker that a truncation cuts off proves nothing any more: the transaction may have ended in the
// damage in front, unless a snapshot has it open there.
func TestTruncationOfMarkerBehindDamage(t *testing.T) {
	for _, snapshot := range []bool{true, false} {
		mem := vfs.NewMem()
		o := txnInFrontOfDamage(t, mem, 4)
		l := openLog(t, o)
		mustMark(t, l, marker(1, 0, true, 0)) // 6
		if !snapshot {
			must(t, mem.Remove(dir+snapshotName(4)))
			must(t, mem.Remove(dir+snapshotName(6)))
		}
		must(t, l.TruncateTo(3))
		l.SetHighWatermark(3)
		got, corrupt := committedReader(t, l)
		list, err := l.UndecidedTxns()
		must(t, err)
		stable := l.Offsets().LastStable
		if snapshot && (stable != 0 || len(list) > 0) || !snapshot && (stable != 3 || len(list) != 1 || !slices.Contains(corrupt, 0)) || len(got) > 0 {
			t.Errorf("snapshot %v: read %v, corrupt %v, stable %d, undecided %v", snapshot, got, corrupt, stable, list)
		}
	}
}

// A snapshot proves it for the segments in front of it, too: theirs, which an unclean start makes anew,
// have the transaction open.
func TestLaterSnapshotProvesOpenTxn(t *testing.T) {
	mem := vfs.NewMem()
	o := txnInFrontOfDamage(t, mem, 4, 5)
	must(t, mem.Remove(dir+snapshotName(4)))
	o.Clean, o.RecoveryPoint = false, 0
	l := openLog(t, o)
	mustMark(t, l, marker(1, 0, true, 0)) // 6
	must(t, l.TruncateTo(5))
	l.SetHighWatermark(5)
	if got, corrupt := committedReader(t, l); l.Offsets().LastStable != 0 || len(got) > 0 {
		t.Errorf("read %v, corrupt %v, last stable offset %d", got, corrupt, l.Offsets().LastStable)
	}
}

// Without the snapshots behind damage an unclean start does not know whether a transaction is open, and
// does not take it for committed.
func TestDamageWithoutSnapshots(t *testing.T) {
	mem := vfs.NewMem()
	o := txnInFrontOfDamage(t, mem, 4, 5)
	for _, offset := range []int64{4, 5, 6} {
		must(t, mem.Remove(dir+snapshotName(offset)))
	}
	o.Clean, o.RecoveryPoint = false, 5
	l := openLog(t, o)
	l.SetHighWatermark(6)
	got, corrupt := committedReader(t, l)
	if !slices.Equal(got, []string{"3:b0", "4:c0", "5:d0"}) || !slices.Contains(corrupt, 0) {
		t.Errorf("read %v, corrupt %v", got, corrupt)
	}
}

// applyData tells a producer state of a transactional batch of one record.
func applyData(t *testing.T, s *ProducerState, offset int64, sequence int32) {
	b := record.Batch(spec{producer: &record.Producer{ID: 1, BaseSequence: sequence}, txn: true}.build(t))
	b.SetBaseOffset(offset)
	s.apply(b, endTxn{}, position{offset: offset})
}

// Of two transactions of a producer in doubt, a marker ends the later one.
func TestMarkerOfTheLaterDoubt(t *testing.T) {
	s := newProducerState(0)
	data := func(offset int64, sequence int32) { applyData(t, s, offset, sequence) }
	data(0, 0)
	s.damaged(goneStretch(1, 5), nil)
	data(5, 3)
	s.damaged(goneStretch(6, 7), nil)
	m := record.Batch(marker(1, 0, true, 0))
	m.SetBaseOffset(7)
	got, ended := s.apply(m, parseEndTxn(m), position{offset: 7})
	if !ended || got.FirstOffset != 5 || s.doubts[0].outcome != txnEnded || s.doubts[1].outcome != txnAborted {
		t.Errorf("ended %v %+v, doubts %+v", ended, got, s.doubts)
	}
}

// Sequence numbers tell of the batch behind the damage only.
func TestSequencesBehindTheFirst(t *testing.T) {
	s := newProducerState(0)
	data := func(offset int64, sequence int32) { applyData(t, s, offset, sequence) }
	data(0, 0)
	s.damaged(goneStretch(1, 3), nil)
	data(3, 2) // one of the two offsets was a record, the other one may have been a marker
	data(4, 3)
	if s.doubts[0].outcome != txnPending {
		t.Errorf("outcome %v", s.doubts[0].outcome)
	}
}

// A transaction that its sequence numbers prove to go on behind damage, and that ends in the segment,
// is looked for in no other one.
func TestTxnEndsBehindDamage(t *testing.T) {
	for _, clean := range []bool{true, false} {
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		for i := range int32(3) {
			mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: i}, txn: true, tag: "as-large-as-marker"}.build(t))
		}
		mustMark(t, l, marker(1, 0, false, 0)) // 3
		must(t, l.Roll())
		mustAppend(t, l, spec{tag: "b"}.build(t)) // 4
		must(t, l.Close())
		wipe(t, mem, 1)
		if o.Clean = clean; clean {
			o.RecoveryPoint = 5
		}
		for range 2 {
			l = openLog(t, o)
			l.SetHighWatermark(5)
			got, corrupt := committedReader(t, l)
			if !slices.Equal(got, []string{"0:as-large-as-marker0", "2:as-large-as-marker0", "4:b0"}) || !slices.Equal(corrupt, []int64{1}) {
				t.Errorf("clean %v: read %v, corrupt %v", clean, got, corrupt)
			}
			must(t, l.Close())
			o.Clean, o.RecoveryPoint = true, 5
		}
	}
}

// What may have ended in the second of two damages does not go on behind the segment because it did
// behind the first.
func TestTxnInFrontOfTwoDamages(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	data := func(sequence int32) {
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: sequence}, txn: true, tag: "as-large-as-marker"}.build(t))
	}
	data(0)                                // 0
	data(1)                                // 1
	data(2)                                // 2
	mustMark(t, l, marker(2, 0, true, 0))  // 3
	mustMark(t, l, marker(2, 0, true, 0))  // 4
	mustMark(t, l, marker(1, 0, false, 0)) // 5
	must(t, l.Roll())
	mustAppend(t, l, spec{tag: "b"}.build(t)) // 6
	must(t, l.Close())
	for _, offset := range []int64{4, 3, 1} {
		wipe(t, mem, offset)
	}
	for range 3 {
		l = openLog(t, o)
		l.SetHighWatermark(7)
		got, corrupt := committedReader(t, l)
		list, err := l.UndecidedTxns()
		must(t, err)
		beyond := slices.ContainsFunc(list, func(u UndecidedTxn) bool { return u.EndOffset > 5 })
		if !slices.Equal(got, []string{"6:b0"}) || len(list) == 0 || beyond {
			t.Errorf("read %v, corrupt %v, undecided %v", got, corrupt, list)
		}
		l.Abandon()
	}
}

// A transaction that began in the damage, as a snapshot behind it says, is not the one that ended in it.
func TestLostIsNotTheNext(t *testing.T) {
	f := func(first int64, wantOpen bool) {
		t.Helper()
		s := newProducerState(157)
		p := &producer{id: 1, txn: position{offset: first}}
		s.put(p)
		s.insertOpen(p)
		s.lost = &lostTxns{list: []checkpoint.LostTransaction{{ProducerID: 1, FirstOffset: 129, EndOffset: 153}}}
		if s.endLost(157); s.isOpen(1, first) != wantOpen {
			t.Errorf("transaction that begins at %d: open %v, want %v", first, !wantOpen, wantOpen)
		}
	}
	f(129, false)
	f(144, true)
	f(153, true)
}

// An ABORT marker behind a damage may be of the transaction that began in front of it, or of another. The
// index of the marker's segment tells; where that is missing or has another producer, nobody knows.
func TestMarkerWithoutItsIndex(t *testing.T) {
	f := func(spoil func(mem *vfs.Mem, name string)) {
		t.Helper()
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		data := func(sequence int32, tag string) {
			mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: sequence}, txn: true, tag: tag}.build(t))
		}
		data(0, "a")
		mustAppend(t, l, spec{records: 4, size: 100}.build(t)) // 1 to 4
		data(1, "b")                                           // 5
		must(t, l.Roll())
		mustMark(t, l, marker(1, 0, true, 0)) // 6, the end of a and b
		must(t, l.Close())
		b := contentsOf(t, mem, segment.Name(0, segment.LogFile, ""))
		for batch := range record.Batches(b) {
			if batch.BaseOffset() == 1 {
				clear(batch)
			}
		}
		must(t, writeFile(mem, dir+segment.Name(0, segment.LogFile, ""), b))
		spoil(mem, txnName(6))
		// As from before there were snapshots at rolls: nothing else tells.
		must(t, mem.Remove(dir+snapshotName(6)))
		o.Clean = true
		l = openLog(t, o)
		l.SetHighWatermark(l.Offsets().End)
		if got, corrupt := committedReader(t, l); len(got) > 0 {
			t.Errorf("aborted records are read: %v, corrupt %v", got, corrupt)
		}
		must(t, l.Close())
	}
	f(func(*vfs.Mem, string) {})
	f(func(mem *vfs.Mem, name string) { must(t, mem.Remove(dir+name)) })
	f(func(mem *vfs.Mem, name string) {
		b := contentsOf(t, mem, name)
		b[3] ^= 1
		must(t, writeFile(mem, dir+name, b))
	})
}

// A transaction that began below the log start, and is open, is not endless.
func TestOpenTxnBelowLogStart(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	data := func(sequence int32) {
		t.Helper()
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: sequence}, txn: true, tag: "a"}.build(t))
	}
	data(0)                                   // 0
	mustAppend(t, l, spec{tag: "b"}.build(t)) // 1
	mustAppend(t, l, spec{tag: "b"}.build(t)) // 2
	data(1)                                   // 3
	must(t, l.Roll())
	mustAppend(t, l, spec{tag: "c"}.build(t)) // 4
	must(t, l.Flush())
	l.Abandon()
	wipe(t, mem, 1) // so that the segment is examined from its beginning
	o.LogStartOffset, o.RecoveryPoint = 1, 0
	l = openLog(t, o)
	l.SetHighWatermark(5)
	committedReader(t, l)
	if list, err := l.UndecidedTxns(); err != nil || len(list) > 0 {
		t.Fatalf("undecided %v, %v", list, err)
	}
	data(2)                               // 5
	mustMark(t, l, marker(1, 0, true, 0)) // 6
	l.SetHighWatermark(7)
	if got, corrupt := committedReader(t, l); !slices.Equal(got, []string{"2:b0", "4:c0"}) || !slices.Equal(corrupt, []int64{1}) {
		t.Errorf("read %v, corrupt %v", got, corrupt)
	}
}

// A transaction that has lost its end leaves open what its producer wrote behind.
func TestEndLost(t *testing.T) {
	for last, want := range map[int64]int64{4: -1, 5: 5, 9: 5} {
		s := newProducerState(10)
		p := &producer{id: 1, txn: position{offset: 2}}
		p.add(producerBatch{lastOffset: last})
		s.put(p)
		s.insertOpen(p)
		s.lost = (&lostTxns{}).with(UndecidedTxn{1, 2, 5}, checkpoint.Undecided)
		s.endLost(10)
		if p.txn.offset != want || (len(s.open) > 0) != (want >= 0) {
			t.Errorf("last record at %d: open at %d, want %d", last, p.txn.offset, want)
		}
	}
}

// Where all files of a log are gone, as a crash in a truncation leaves it, no note is about the records
// that come next.
func TestNotesOfALogThatIsGone(t *testing.T) {
	mem := vfs.NewMem()
	o := transactions(t, mem)
	wipe(t, mem, 12)
	o.Clean, o.RecoveryPoint = false, 0
	l := openLog(t, o)
	l.SetHighWatermark(13)
	if list, err := l.UndecidedTxns(); err != nil || len(list) != 1 {
		t.Fatalf("undecided %v, %v", list, err)
	}
	l.Abandon()
	names, err := listNames(mem, dir)
	must(t, err)
	for _, name := range names {
		if _, _, _, ok := segment.ParseName(name); ok || strings.HasSuffix(name, ".snapshot") || name == checkpoint.Losses {
			must(t, mem.Remove(dir+name))
		}
	}
	l = openLog(t, o)
	if l.Offsets().End > 0 {
		t.Fatalf("log [%d,%d)", l.Offsets().LogStart, l.Offsets().End)
	}
	for l.Offsets().End < 11 {
		mustAppend(t, l, spec{}.build(t))
	}
	mustAppend(t, l, spec{producer: &record.Producer{ID: 4}, txn: true}.build(t)) // 11
	mustAppend(t, l, spec{tag: "b"}.build(t))                                     // 12
	mustMark(t, l, marker(4, 0, true, 0))                                         // 13
	must(t, l.Flush())
	l.Abandon()
	l = openLog(t, o)
	l.SetHighWatermark(14)
	got, corrupt := committedReader(t, l)
	if len(corrupt) > 0 || slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "11:") }) {
		t.Errorf("log [%d,%d): read %v, corrupt %v", l.Offsets().LogStart, l.Offsets().End, got, corrupt)
	}
}

// What a start after a clean stop has told readers, because an index says nothing of a transaction, a start
// after a kill tells them too, though then the silence of an index proves nothing.
func TestSilenceIsRemembered(t *testing.T) {
	mem := vfs.NewMem()
	o := transactions(t, mem)
	wipe(t, mem, 12)
	l := openLog(t, o)
	l.SetHighWatermark(13)
	want, _ := committedReader(t, l)
	if !slices.Equal(want, []string{"3:kept0", "11:kept0"}) {
		t.Fatalf("read %v", want)
	}
	for _, point := range []int64{13, 0} {
		l.Abandon()
		o.Clean, o.RecoveryPoint = false, point
		l = openLog(t, o)
		l.SetHighWatermark(13)
		if got, corrupt := committedReader(t, l); !slices.Equal(got, want) {
			t.Errorf("recovery point %d: read %v, corrupt %v", point, got, corrupt)
		}
		if list, err := l.UndecidedTxns(); err != nil || len(list) > 0 {
			t.Errorf("undecided %v, %v", list, err)
		}
	}
}

// A sealed segment that was cut between two batches. Where the index knows of aborts whose markers are gone
// they stay aborted, and what is behind is read as ever; nobody sees what was aborted. Compacted
// logs have gaps there in any case.
func TestEndOfSegmentLost(t *testing.T) {
	for _, compact := range []bool{false, true} {
		for _, point := range []int64{-1, 13, 0} { // -1: after a clean stop
			for keep := range 6 {
				mem := vfs.NewMem()
				o := transactions(t, mem)
				name, size := segment.Name(0, segment.LogFile, ""), 0
				b := contentsOf(t, mem, name)
				for batch := range record.Batches(b) {
					if batch.BaseOffset() < int64(keep) {
						size += batch.Size()
					}
				}
				must(t, writeFile(mem, dir+name, b[:size]))
				o.Config.Compact = compact
				if o.Clean = point < 0; !o.Clean {
					o.RecoveryPoint = point
				}
				for range 3 {
					l := openLog(t, o)
					l.SetHighWatermark(13)
					got, corrupt := committedReader(t, l)
					got = slices.DeleteFunc(got, func(s string) bool { return s == "3:kept0" && keep > 3 })
					if !slices.Equal(got, []string{"11:kept0"}) || l.Offsets().LastStable != 13 {
						t.Errorf("compact %v, recovery point %d, up to %d: read %v, corrupt %v, last stable offset %d", compact, point, keep, got, corrupt, l.Offsets().LastStable)
					}
					must(t, l.Close())
					o.Clean, o.RecoveryPoint = true, 13
				}
			}
		}
	}
}

// A truncation inside of a batch behind damage makes that longer. What was undecided stays so.
func TestUndecidedInLongerDamage(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	mustAppend(t, l, spec{producer: &record.Producer{ID: 1}, txn: true, tag: "a"}.build(t)) // 0
	mustMark(t, l, marker(1, 0, false, 0))                                                  // 1
	mustMark(t, l, marker(2, 0, true, 0))                                                   // 2, so that there is an index
	mustAppend(t, l, spec{producer: &record.Producer{ID: 2}, txn: true, tag: "b"}.build(t)) // 3
	mustMark(t, l, marker(2, 0, true, 0))                                                   // 4
	must(t, l.Roll())
	mustAppend(t, l, spec{producer: &record.Producer{ID: 3}, txn: true, tag: "c"}.build(t))                  // 5
	mustMark(t, l, marker(3, 0, true, 0))                                                                    // 6
	mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: 1}, txn: true, tag: "d"}.build(t)) // 7
	mustMark(t, l, marker(1, 0, false, 0))                                                                   // 8
	mustAppend(t, l, spec{records: 3, tag: "e"}.build(t))                                                    // 9 to 11
	must(t, l.Close())
	b := contentsOf(t, mem, segment.Name(5, segment.LogFile, ""))
	for batch := range record.Batches(b) {
		if batch.BaseOffset() == 8 {
			clear(batch)
		}
	}
	must(t, vfs.WriteFileAtomic(mem, dir+segment.Name(5, segment.LogFile, ""), b))
	l = openLog(t, o)
	must(t, l.TruncateTo(10))
	for i := range 3 {
		l.SetHighWatermark(10)
		got, corrupt := committedReader(t, l)
		if !slices.Equal(got, []string{"0:a0"}) || !slices.Equal(corrupt[:2], []int64{7, 8}) {
			t.Errorf("start %d: read %v, corrupt %v", i, got, corrupt)
		}
		must(t, l.Close())
		o.Clean, o.RecoveryPoint = true, 10
		l = openLog(t, o)
	}
	must(t, l.Close())
}

// Behind a transaction that is listed its producer has begun another one in the same segment, which ends in a
// later one: the list says nothing of that.
func TestTxnBehindListedOne(t *testing.T) {
	for _, outcome := range []checkpoint.TransactionOutcome{checkpoint.Commit, checkpoint.Abort, checkpoint.Undecided} {
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1}, txn: true, tag: "a"}.build(t)) // 0
		mustAppend(t, l, spec{tag: "b"}.build(t))                                               // 1, once a marker
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: 1}, txn: true, tag: "c"}.build(t))
		must(t, l.Roll())
		mustMark(t, l, marker(1, 0, true, 0)) // 3
		must(t, l.Close())
		index := contentsOf(t, mem, txnName(3))
		index[17] = 2 // the first offset
		must(t, vfs.WriteFileAtomic(mem, dir+txnName(3), index))
		must(t, checkpoint.WriteTransactions(mem, dir+checkpoint.TransactionsFile, []checkpoint.LostTransaction{{ProducerID: 1, FirstOffset: 0, EndOffset: 2, Outcome: outcome}}))
		o.Clean, o.RecoveryPoint = true, 4
		want := []string{"1:b0"}
		if outcome == checkpoint.Commit {
			want = []string{"0:a0", "1:b0"}
		}
		for range 2 {
			l = openLog(t, o)
			l.SetHighWatermark(4)
			if got, corrupt := committedReader(t, l); !slices.Equal(got, want) || (len(corrupt) > 0) != (outcome == checkpoint.Undecided) {
				t.Errorf("%v: read %v, corrupt %v, want %v", outcome, got, corrupt, want)
			}
			must(t, l.Close())
		}
	}
}
