package commitlog

import (
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A producer snapshot of another log, or of another time, is found out by the batches: it opens no
// transaction, and ends none.
func TestSnapshotOfAnotherLog(t *testing.T) {
	producer := func(id int64, sequence int32) *record.Producer {
		return &record.Producer{ID: id, BaseSequence: sequence}
	}
	open := func(t *testing.T, l *Log) {
		mustAppend(t, l, spec{records: 4, txn: true, producer: producer(7, 0)}.build(t))
	}
	ended := func(t *testing.T, l *Log) {
		mustAppend(t, l, spec{records: 3, txn: true, producer: producer(7, 0)}.build(t))
		mustMark(t, l, marker(7, 0, true, 1))
	}
	plain := func(t *testing.T, l *Log) { mustAppend(t, l, spec{records: 4}.build(t)) }
	other := func(t *testing.T, l *Log) {
		mustAppend(t, l, spec{records: 4, txn: true, producer: producer(8, 0)}.build(t))
	}
	f := func(name string, of, into func(*testing.T, *Log), stable int64) {
		t.Run(name, func(t *testing.T) {
			fill := func(write func(*testing.T, *Log)) (Options, *vfs.Mem) {
				mem := vfs.NewMem()
				o := testOptions(mem)
				o.Clean = true
				l := openLog(t, o)
				write(t, l)
				must(t, l.Close())
				return o, mem
			}
			_, from := fill(of)
			o, mem := fill(into)
			b, err := vfs.ReadFile(from, dir+snapshotName(4), 1<<10)
			must(t, err)
			must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(4), b))
			l := openLog(t, o)
			l.SetHighWatermark(4)
			if got := l.Offsets().LastStable; got != stable {
				t.Errorf("the last stable offset is %d, want %d", got, stable)
			}
			must(t, l.Close())
		})
	}
	f("its own", open, open, 0)
	f("a transaction that is not there", open, plain, 4)
	f("another producer's", open, other, 0)
	f("a transaction that has ended", open, ended, 4)
	f("a transaction that has not ended", ended, open, 0)
	f("nothing of an open one", plain, open, 0)
}

// The beginning of an open transaction may have been deleted: that contradicts nothing, and the
// producer goes on after a clean stop.
func TestSnapshotOfTransactionWithoutBeginning(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Clean = true
	l := openLog(t, o)
	data := func(sequence int32) []byte {
		return spec{records: 4, txn: true, producer: &record.Producer{ID: 7, BaseSequence: sequence}}.build(t)
	}
	mustAppend(t, l, data(0))
	must(t, l.Roll())
	mustAppend(t, l, spec{records: 4}.build(t))
	l.SetHighWatermark(8)
	must(t, l.IncrementLogStart(6))
	if n, err := l.DeleteOldSegments(testTime); n != 1 || err != nil {
		t.Fatalf("%d segments deleted, %v", n, err)
	}
	must(t, l.Close())
	o.RecoveryPoint, o.HighWatermark, o.LogStartOffset = 8, 8, 6
	l = openLog(t, o)
	if p := l.mu.producers.producers[7]; p == nil || p.txn.offset != 0 {
		t.Errorf("producer 7 is %+v, want its transaction open", p)
	}
	mustAppend(t, l, data(4))
	must(t, l.Close())
}

// A base offset with a bit turned round hides the batches behind it from a search. That contradicts no
// snapshot: what is open stays so, after a clean stop and after the next.
func TestSnapshotBehindDamagedOffset(t *testing.T) {
	for _, rolled := range []bool{true, false} {
		for bit := range 64 {
			mem := vfs.NewMem()
			o := testOptions(mem)
			o.Clean = true
			l := openLog(t, o)
			mustAppend(t, l, spec{}.build(t))                                                             // 0
			first := len(contentsOf(t, mem, segment.Name(0, segment.LogFile, "")))                        // of the next
			mustAppend(t, l, spec{}.build(t))                                                             // 1
			mustAppend(t, l, spec{txn: true, producer: &record.Producer{ID: 7}, tag: "open"}.build(t))    // 2
			mustAppend(t, l, spec{txn: true, producer: &record.Producer{ID: 8}, tag: "aborted"}.build(t)) // 3
			mustMark(t, l, marker(8, 0, true, 0))                                                         // 4
			if rolled {
				must(t, l.Roll())
			}
			mustAppend(t, l, spec{tag: "behind"}.build(t)) // 5
			must(t, l.Close())
			b := contentsOf(t, mem, segment.Name(0, segment.LogFile, ""))
			b[first+7-bit/8] ^= 1 << (bit % 8)
			must(t, writeFile(mem, dir+segment.Name(0, segment.LogFile, ""), b))
			o.RecoveryPoint, o.HighWatermark = 6, 6
			for range 2 {
				l = openLog(t, o)
				l.SetHighWatermark(6)
				got, _ := committedReader(t, l)
				if stable := l.Offsets().LastStable; stable != 2 || slices.Contains(got, "2:open0") {
					t.Errorf("rolled %v, bit %d: last stable offset %d, read %v", rolled, bit, stable, got)
				}
				must(t, l.Close())
			}
		}
	}
}

// The snapshot of an earlier time under the name of the newest: its transaction has ended, further in front than
// the last index entry. And one of a later time, under an earlier name, is none.
func TestSnapshotsExchanged(t *testing.T) {
	for _, clean := range []bool{true, false} {
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		sequence := int32(0)
		data := func(tag string) {
			mustAppend(t, l, spec{txn: true, producer: &record.Producer{ID: 7, BaseSequence: sequence}, tag: tag}.build(t))
			sequence++
		}
		data("lost") // 0
		must(t, l.Roll())
		mustMark(t, l, marker(7, 0, true, 0))  // 1
		data("kept")                           // 2
		mustMark(t, l, marker(7, 0, false, 0)) // 3
		for range 9 {
			mustAppend(t, l, spec{tag: "plain"}.build(t)) // 4 to 12
		}
		must(t, l.Close())
		early, late := contentsOf(t, mem, snapshotName(1)), contentsOf(t, mem, snapshotName(13))
		must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(13), early))
		must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(1), late))
		o.Clean, o.RecoveryPoint = clean, 13
		for range 2 {
			l = openLog(t, o)
			l.SetHighWatermark(13)
			got, corrupt := committedReader(t, l)
			if len(got) != 10 || got[0] != "2:kept0" || len(corrupt) > 0 || l.Offsets().LastStable != 13 {
				t.Errorf("clean %v: read %v, corrupt %v, last stable offset %d", clean, got, corrupt, l.Offsets().LastStable)
			}
			must(t, l.Close())
			o.Clean = true
		}
	}
}

// An unclean start that knows nothing of an open transaction, because the snapshot has been exchanged for one
// of another log, keeps what the index says of its ABORT marker.
func TestSnapshotOfNothingKeepsAborted(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	mustAppend(t, l, spec{txn: true, producer: &record.Producer{ID: 7}, tag: "lost"}.build(t)) // 0
	must(t, l.Roll())
	mustMark(t, l, marker(7, 0, true, 0))         // 1
	mustAppend(t, l, spec{tag: "plain"}.build(t)) // 2
	must(t, l.Close())
	must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(1), newProducerState(1).encode()))
	o.RecoveryPoint = 3
	for range 2 {
		l = openLog(t, o)
		l.SetHighWatermark(3)
		if got, corrupt := committedReader(t, l); !slices.Equal(got, []string{"2:plain0"}) || len(corrupt) > 0 {
			t.Errorf("read %v, corrupt %v", got, corrupt)
		}
		must(t, l.Close())
		o.Clean = true
	}
}

// Where the last segment is missing, what is left contradicts no snapshot that is behind it.
func TestSnapshotBehindMissingSegment(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	mustAppend(t, l, spec{txn: true, producer: &record.Producer{ID: 7}, tag: "a"}.build(t)) // 0
	mustAppend(t, l, spec{tag: "b"}.build(t))                                               // 1
	must(t, l.Roll())
	mustMark(t, l, marker(7, 0, true, 0))     // 2
	mustAppend(t, l, spec{tag: "c"}.build(t)) // 3
	must(t, l.Close())
	must(t, mem.Remove(dir+segment.Name(2, segment.LogFile, "")))
	o.Clean, o.RecoveryPoint, o.HighWatermark = true, 4, 4
	for range 3 {
		l = openLog(t, o)
		l.SetHighWatermark(4)
		got, _ := committedReader(t, l)
		if end, stable := l.Offsets().End, l.Offsets().LastStable; end != 4 || stable != 4 || !slices.Equal(got, []string{"1:b0"}) {
			t.Errorf("clean %v: log ends at %d, last stable offset %d, read %v", o.Clean, end, stable, got)
		}
		l.Abandon()
		o.Clean = false
	}
}

// A snapshot that does not know a producer whose batches are further in front is found out by the one before
// it, also where a recovery after a kill begins.
func TestSnapshotWithoutProducersOfEarlierSegments(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for name, content := range map[string]func(*vfs.Mem) []byte{
			"empty":   func(*vfs.Mem) []byte { return newProducerState(4).encode() },
			"earlier": func(mem *vfs.Mem) []byte { return contentsOf(t, mem, snapshotName(2)) },
		} {
			mem := vfs.NewMem()
			o := testOptions(mem)
			l := openLog(t, o)
			send := func(l *Log, id int64, sequence int32) AppendInfo {
				t.Helper()
				return mustAppend(t, l, spec{producer: &record.Producer{ID: id, BaseSequence: sequence}}.build(t))
			}
			send(l, 7, 0)
			send(l, 8, 0)
			must(t, l.Roll())
			send(l, 8, 1)
			mustAppend(t, l, spec{}.build(t))
			must(t, l.Roll())
			mustAppend(t, l, spec{}.build(t))
			must(t, l.Close())
			o.Clean, o.RecoveryPoint, o.HighWatermark = clean, 5, 5
			at := int64(4)
			if clean {
				at = 5
			}
			must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(at), content(mem)))
			l = openLog(t, o)
			if info := send(l, 7, 0); !info.Duplicate || info.FirstOffset != 0 {
				t.Errorf("%s, clean %v: sent again, producer 7 is at %d", name, clean, info.FirstOffset)
			}
			if !clean && name == "earlier" {
				must(t, l.Close())
				continue // no batch in front of what is recovered is read
			}
			if info := send(l, 8, 1); !info.Duplicate || info.FirstOffset != 2 {
				t.Errorf("%s, clean %v: sent again, producer 8 is at %d", name, clean, info.FirstOffset)
			}
			must(t, l.Close())
		}
	}
}

// No snapshot speaks of what is not in front of the offset in its name.
func TestSnapshotBeyondItsName(t *testing.T) {
	for _, p := range []producer{
		{id: 9, txn: position{offset: 3}, coordinatorEpoch: -1},
		{id: 9, txn: noPosition, coordinatorEpoch: -1, count: 1, batches: [batchesKept]producerBatch{{lastOffset: 2}}},
	} {
		for _, clean := range []bool{true, false} {
			mem := vfs.NewMem()
			o := threeSegments(t, mem)
			o.Clean, o.HighWatermark = clean, 6
			p.lastTimestamp = testTime.UnixMilli()
			other := newProducerState(2)
			other.put(&p)
			must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(2), other.encode()))
			removeAll(t, mem, snapshotName(4), snapshotName(6))
			o.RecoveryPoint = 2
			l := openLog(t, o)
			l.SetHighWatermark(6)
			if got := l.Offsets(); got.LastStable != 6 || l.mu.producers.producers[9] != nil || l.mu.producers.producers[7] == nil {
				t.Errorf("clean %v: last stable offset %d, producers %+v", clean, got.LastStable, l.Producers())
			}
		}
	}
}

// A transaction that was open at a roll may have been aborted and compacted since. That contradicts no snapshot
// of then, whose producers may have nothing else in the log.
func TestSnapshotOfCompactedTransaction(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.Compact, o.Clean = true, true
	l := openLog(t, o)
	mustAppend(t, l, spec{records: 4}.build(t))
	first := l.Size()
	mustAppend(t, l, spec{records: 4, txn: true, producer: &record.Producer{ID: 7}}.build(t))
	must(t, l.Roll())
	mustMark(t, l, marker(7, 0, true, 1))
	must(t, l.Close())
	logFile := dir + segment.Name(0, segment.LogFile, "")
	b, err := vfs.ReadFile(mem, logFile, 1<<10)
	must(t, err)
	must(t, vfs.WriteFileAtomic(mem, logFile, b[:first]))
	want, err := vfs.ReadFile(mem, dir+snapshotName(8), 1<<10)
	must(t, err)

	o.Clean, o.RecoveryPoint, o.HighWatermark = false, 9, 9
	must(t, openLog(t, o).Close())
	got, err := vfs.ReadFile(mem, dir+snapshotName(8), 1<<10)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the snapshot is %x, %v, was %x", got, err, want)
	}
}

// A snapshot of another log with an open transaction, in which a recovery begins where the log has nothing any
// more: no transaction is open at the end of a log that does not begin in it, or in what is lost of it.
func TestSnapshotOfTransactionThatHasNotBegun(t *testing.T) {
	f := func(name string, compact bool, harm func(t *testing.T, mem *vfs.Mem), stable int64) {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := testOptions(mem)
			o.Config.Compact = compact
			l := openLog(t, o)
			mustAppend(t, l, spec{}.build(t))                                                                // 0
			first := l.Size()                                                                                // of the next
			mustAppend(t, l, spec{size: 400, txn: true, producer: &record.Producer{ID: 8}}.build(t))         // 1
			mustAppend(t, l, spec{size: 400, producer: &record.Producer{ID: 9}, tag: "of another"}.build(t)) // 2
			must(t, l.Roll())
			mustMark(t, l, marker(8, 0, true, 1))     // 3
			mustAppend(t, l, spec{tag: "d"}.build(t)) // 4
			must(t, l.Close())
			other := newProducerState(3)
			for _, id := range []int64{7, 8} {
				p := producer{id: id, txn: position{offset: 1}, lastTimestamp: testTime.UnixMilli(), coordinatorEpoch: -1}
				other.put(&p)
				other.insertOpen(&p)
			}
			must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(3), other.encode()))
			logFile := dir + segment.Name(0, segment.LogFile, "")
			must(t, vfs.WriteFileAtomic(mem, logFile, contentsOf(t, mem, segment.Name(0, segment.LogFile, ""))[:first]))
			harm(t, mem)
			o.RecoveryPoint, o.HighWatermark = 5, 5
			for range 2 {
				l = openLog(t, o)
				l.SetHighWatermark(5)
				if got := l.Offsets(); got.LastStable != stable || got.End != 5 {
					t.Errorf("last stable offset %d, end %d, want %d", got.LastStable, got.End, stable)
				}
				must(t, l.Close())
				o.Clean = true
			}
		})
	}
	compacted := func(t *testing.T, mem *vfs.Mem) {
		must(t, vfs.WriteFileAtomic(mem, dir+segment.Name(0, segment.IndexFile, ""), nil))
	}
	f("compacted", true, compacted, 5)
	f("its batch is lost, as an index says", true, func(*testing.T, *vfs.Mem) {}, 1)
}
