package commitlog

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

func txnName(base int64) string { return segment.Name(base, segment.TxnIndexFile, "") }

// inTransactions returns a function that appends a record of a producer in a transaction.
func inTransactions(t *testing.T, l *Log) func(producerID int64, tag string) {
	sequence := map[int64]int32{}
	return func(id int64, tag string) {
		t.Helper()
		mustAppend(t, l, spec{producer: &record.Producer{ID: id, BaseSequence: sequence[id]}, txn: true, tag: tag}.build(t))
		sequence[id]++
	}
}

// transactions writes, in two segments, transactions that abort and one that does not, one of
// them across the roll. The log is stopped.
func transactions(t *testing.T, mem *vfs.Mem) Options {
	t.Helper()
	o := testOptions(mem)
	l := openLog(t, o)
	data := inTransactions(t, l)
	data(1, "aborted")                    // 0
	data(2, "aborted")                    // 1
	mustMark(t, l, marker(1, 0, true, 0)) // 2
	data(1, "kept")                       // 3
	data(3, "aborted")                    // 4
	mustMark(t, l, marker(3, 0, true, 0)) // 5
	must(t, l.Roll())
	mustMark(t, l, marker(1, 0, false, 0)) // 6
	data(2, "aborted")                     // 7
	mustMark(t, l, marker(2, 0, true, 0))  // 8
	data(1, "aborted")                     // 9
	mustMark(t, l, marker(1, 0, true, 0))  // 10
	data(4, "kept")                        // 11
	mustMark(t, l, marker(4, 0, false, 0)) // 12
	must(t, l.Close())
	o.Clean, o.RecoveryPoint = true, 13
	return o
}

// aborted returns what read_committed is told to leave out, up to the end.
func abortedOf(t *testing.T, l *Log) (list []segment.AbortedTxn) {
	t.Helper()
	l.SetHighWatermark(l.Offsets().End)
	for at := int64(0); at < l.Offsets().End; {
		r, err := l.Read(at, 1<<20, ReadCommitted, segment.WholeFirst)
		must(t, err)
		for b := range record.Batches(contents(t, r)) {
			at = b.NextOffset()
		}
		for _, a := range r.Aborted {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// After a clean stop, with any bit of an index of aborted transactions turned round or the file cut
// in the middle of an entry, readers are told the right ones, and the file is right again. Only a
// last stable offset that is lower, or not above the marker, nobody can tell from a right one.
func TestTxnIndexDamage(t *testing.T) {
	mem := vfs.NewMem()
	want := abortedOf(t, openLog(t, transactions(t, mem)))
	if len(want) != 4 {
		t.Fatalf("got %v, want four aborted transactions", want)
	}
	for _, base := range []int64{0, 6} {
		size := len(contentsOf(t, mem, txnName(base)))
		for cut := range size {
			if cut%34 > 0 {
				mem := vfs.NewMem()
				o := transactions(t, mem)
				must(t, writeFile(mem, dir+txnName(base), contentsOf(t, mem, txnName(base))[:cut]))
				if d := cmp.Diff(want, abortedOf(t, openLog(t, o))); d != "" {
					t.Errorf("segment %d cut to %d bytes: (-want +got)\n%s", base, cut, d)
				}
			}
		}
		for bit := range 8 * size {
			t.Run(fmt.Sprintf("%d/%d", base, bit), func(t *testing.T) {
				mem := vfs.NewMem()
				o := transactions(t, mem)
				good := contentsOf(t, mem, txnName(base))
				bad := slices.Clone(good)
				bad[bit/8] ^= 1 << (bit % 8)
				must(t, writeFile(mem, dir+txnName(base), bad))
				l := openLog(t, o)
				got := abortedOf(t, l)
				if bit/8%34 >= 26 { // the last stable offset
					for i := range min(len(got), len(want)) {
						if got[i].LastStableOffset <= got[i].LastOffset+1 {
							got[i].LastStableOffset = want[i].LastStableOffset
						}
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("(-want +got)\n%s", d)
				}
				must(t, l.Close())
			})
		}
	}
}

// A writer meets the damage first.
func TestTxnIndexDamageMetByAppend(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"version":     func(b []byte) []byte { b[0] = 1; return b },
		"last offset": func(b []byte) []byte { b[34+20] = 1; return b },
		"garbage":     func(b []byte) []byte { copy(b, "garbage garbage garbage"); return b },
	} {
		t.Run(name, func(t *testing.T) {
			want := abortedOf(t, openLog(t, transactions(t, vfs.NewMem())))
			mem := vfs.NewMem()
			o := transactions(t, mem)
			must(t, writeFile(mem, dir+txnName(6), damage(contentsOf(t, mem, txnName(6)))))
			l := openLog(t, o)
			mustAppend(t, l, spec{producer: &record.Producer{ID: 9}, txn: true}.build(t)) // 13
			mustMark(t, l, marker(9, 0, true, 0))                                         // 14
			want = append(want, segment.AbortedTxn{ProducerID: 9, FirstOffset: 13, LastOffset: 14, LastStableOffset: 15})
			if d := cmp.Diff(want, abortedOf(t, l)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			must(t, l.TruncateTo(9))
			must(t, l.Close())
			o.RecoveryPoint = 9
			if d := cmp.Diff(want[:3], abortedOf(t, openLog(t, o))); d != "" {
				t.Errorf("truncated (-want +got)\n%s", d)
			}
		})
	}
}

// Truncation meets it.
func TestTxnIndexDamageMetByTruncation(t *testing.T) {
	want := abortedOf(t, openLog(t, transactions(t, vfs.NewMem())))
	mem := vfs.NewMem()
	o := transactions(t, mem)
	bad := contentsOf(t, mem, txnName(6))
	bad[0] = 1
	must(t, writeFile(mem, dir+txnName(6), bad))
	l := openLog(t, o)
	must(t, l.TruncateTo(9))
	if d := cmp.Diff(want[:3], abortedOf(t, l)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A disk that is full when an aborted transaction is to be noted: the marker is in the log, readers
// are told, and the file gets the entry when there is room. A crash before that loses nothing.
func TestTxnIndexOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.OnFailure = func(err error) { t.Errorf("log failed: %v", err) }
	l := openLog(t, o)
	for i := range int32(3) {
		mustAppend(t, l, spec{producer: &record.Producer{ID: 1, BaseSequence: i}, txn: true}.build(t))
		if i == 1 { // the second one finds no room
			mem.SetHook(func(op vfs.Op) error {
				if needsRoom(op) && op.Name == dir+txnName(0) {
					return &vfs.ShortWrite{N: 5, Err: syscall.ENOSPC}
				}
				return nil
			})
		}
		mustMark(t, l, marker(1, 0, true, 0))
		if got := abortedOf(t, l); len(got) != int(i)+1 {
			t.Fatalf("after %d: told of %v", i, got)
		}
		if i == 1 {
			must(t, l.Flush())
			c := o
			c.FS, c.OnFailure = mem.CrashClone(nil), nil
			if got := abortedOf(t, openLog(t, c)); len(got) != 2 {
				t.Errorf("after a crash: told of %v", got)
			}
			mem.SetHook(nil)
		}
	}
	want := abortedOf(t, l)
	must(t, l.Close())
	o.Clean, o.RecoveryPoint = true, 6
	if d := cmp.Diff(want, abortedOf(t, openLog(t, o))); d != "" || len(want) != 3 {
		t.Errorf("(-want +got)\n%s", d)
	}
}
