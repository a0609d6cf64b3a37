package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
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
	for at := l.Offsets().LogStart; ; {
		r, err := l.Read(at, 1<<20, ReadCommitted, true)
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
