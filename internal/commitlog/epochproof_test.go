package commitlog

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// Whatever happened to the file, and to the epoch of one batch, the answers are those of the
// batches; after a clean stop and after another.
func TestEpochsAreProvenWhenAsked(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	for i, epoch := range []int32{0, 0, 0, 3, 3, 7, 7, 7} {
		if i%2 == 1 {
			must(t, l.Roll())
		}
		l.EnterEpoch(epoch)
		_, err := l.AppendAsLeader(spec{records: 2}.build(t), epoch, AppendOptions{})
		must(t, err)
	}
	must(t, l.Close())
	good, err := vfs.ReadFile(mem, dir+checkpoint.LeaderEpochs, 1000)
	must(t, err)
	if string(good) != "0\n3\n0 0\n3 6\n7 10\n" {
		t.Fatalf("wrote %q", good)
	}
	want := []checkpoint.EpochEntry{{Epoch: 0, StartOffset: 0}, {Epoch: 3, StartOffset: 6}, {Epoch: 7, StartOffset: 10}}
	f := func(what string, harm func(mem *vfs.Mem)) {
		for _, clean := range []bool{true, false} {
			for _, point := range []int64{0, 16} {
				mem := mem.CrashClone(nil)
				harm(mem)
				o.FS, o.Clean, o.RecoveryPoint = mem, clean, point
				l := openLog(t, o)
				l.EnterEpoch(9)
				if e, end := l.EpochEndOffset(5); e != 3 || end != 10 {
					t.Errorf("%s, clean %t, from %d: epoch 5 is %d, ends at %d, want 3 and 10", what, clean, point, e, end)
				}
				got, _ := l.epochs.view(16) // where an entry of a later epoch than 9 had to give way to 9
				if !slices.Equal(got[:min(len(got), 3)], want) {
					t.Errorf("%s, clean %t, from %d: got %v, want %v", what, clean, point, got, want)
				}
				_, err := l.AppendAsLeader(spec{}.build(t), 9, AppendOptions{})
				must(t, err)
			}
		}
	}
	file := func(text string) func(*vfs.Mem) {
		return func(mem *vfs.Mem) { must(t, vfs.WriteFileAtomic(mem, dir+checkpoint.LeaderEpochs, []byte(text))) }
	}
	f("nothing", func(*vfs.Mem) {})
	f("missing", func(mem *vfs.Mem) { must(t, mem.Remove(dir+checkpoint.LeaderEpochs)) })
	for _, text := range []string{
		"", "0\n0\n", "0\n3\n0 0\n", "0\n1\n0 0\n", "0\n2\n0 0\n3 6\n", "0\n1\n7 10\n", "0\n2\n3 6\n7 10\n", "0\n2\n0 0\n7 10\n",
		"0\n3\n0 0\n3 2\n7 10\n", "0\n3\n0 0\n3 8\n7 10\n", "0\n3\n0 0\n5 6\n7 10\n", "0\n3\n0 0\n3 6\n17 10\n", "0\n3\n0 0\n3 6\n7 60\n",
		"0\n1\n2147483647 0\n", "0\n1\n8 0\n",
	} {
		f(text, file(text))
	}
	for at := range 8 {
		for _, bit := range []int{0, 3, 9, 31} {
			if at == 7 && bit == 3 {
				continue // the last one could be of epoch 15, had we not entered 9 later
			}
			f(fmt.Sprintf("bit %d of batch %d", bit, at), func(mem *vfs.Mem) { flipEpoch(t, mem, at, bit) })
		}
	}
}

// flipEpoch changes the leader epoch of the batch that is the i-th of eight, in segments of
// one, two, two, two and one.
func flipEpoch(t *testing.T, mem *vfs.Mem, i, bit int) {
	t.Helper()
	base := int64(i-(i+1)%2) * 2
	if i == 0 {
		base = 0
	}
	f, err := mem.OpenFile(dir+logName(base), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	at := (int64(i) - base/2) * int64(len(spec{records: 2}.build(t)))
	epoch := make([]byte, 4)
	_, err = f.ReadAt(epoch, at+12)
	must(t, err)
	binary.BigEndian.PutUint32(epoch, binary.BigEndian.Uint32(epoch)^1<<bit)
	_, err = f.WriteAt(epoch, at+12)
	must(t, err)
}
