package commitlog

import (
	"testing"

	"github.com/gregor-kafka/gregor/record"
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
