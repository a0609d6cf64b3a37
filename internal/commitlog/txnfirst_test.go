package commitlog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// repeatedTransactions writes four segments with transactions of two producers that end and begin in any of
// them. The log is stopped.
func repeatedTransactions(t *testing.T, mem *vfs.Mem) Options {
	t.Helper()
	o := testOptions(mem)
	l := openLog(t, o)
	data := inTransactions(t, l)
	end := func(id int64, abort bool) {
		t.Helper()
		mustMark(t, l, marker(id, 0, abort, 0))
	}
	data(1, "kept") // 0
	end(1, false)   // 1
	data(1, "lost") // 2
	data(2, "lost") // 3
	must(t, l.Roll())
	data(1, "lost") // 4
	data(2, "lost") // 5
	data(1, "lost") // 6
	must(t, l.Roll())
	data(1, "lost") // 7
	end(1, true)    // 8
	data(1, "kept") // 9
	end(1, false)   // 10
	data(1, "lost") // 11
	end(1, true)    // 12
	end(2, true)    // 13
	must(t, l.Roll())
	data(1, "lost") // 14
	data(1, "lost") // 15
	end(1, true)    // 16
	must(t, l.Close())
	o.Clean, o.RecoveryPoint = true, 17
	return o
}

// Whatever an index of aborted transactions calls the first offset of one, wherever a reader begins, and after
// whatever stop, readers of committed records see what was committed and nothing else, and the index
// is right afterwards.
func TestFirstOffsetOfAborted(t *testing.T) {
	entries := map[int64]int{7: 3, 14: 1} // by base
	for base, count := range entries {
		for i := range count {
			for first := range int64(17) {
				for _, point := range []int64{-1, 17, 0} { // -1: after a clean stop
					t.Run(fmt.Sprintf("segment %d, entry %d, first %d, recovery point %d", base, i, first, point), func(t *testing.T) {
						mem := vfs.NewMem()
						o := repeatedTransactions(t, mem)
						want := contentsOf(t, mem, txnName(base))
						bad := slices.Clone(want)
						binary.BigEndian.PutUint64(bad[34*i+10:], uint64(first))
						must(t, vfs.WriteFileAtomic(mem, dir+txnName(base), bad))
						if o.Clean = point < 0; !o.Clean {
							o.RecoveryPoint = point
						}
						checkFirstOffset(t, mem, o, base, want)
					})
				}
			}
		}
	}
}

func checkFirstOffset(t *testing.T, mem *vfs.Mem, o Options, base int64, index []byte) {
	t.Helper()
	for from := range int64(17) {
		copied := mem.CrashClone(nil)
		o.FS = copied
		l := openLog(t, o)
		l.SetHighWatermark(17)
		var want []string
		if from == 0 {
			want = append(want, "0:kept0")
		}
		if from <= 9 {
			want = append(want, "9:kept0")
		}
		if got, corrupt := committedFrom(t, l, from); !slices.Equal(got, want) || len(corrupt) > 0 {
			t.Errorf("from %d: read %v, corrupt %v, want %v", from, got, corrupt, want)
		}
		if got := contentsOf(t, copied, txnName(base)); from == 0 && !slices.Equal(got, index) {
			t.Errorf("the index is %x, want %x", got, index)
		}
		l.Abandon()
	}
}
