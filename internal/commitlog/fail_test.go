package commitlog

import (
	"errors"
	"math"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Offsets run out at 2^63 - 1, which can only be the log end. A set that does not fit is refused,
// again and again, and one that fits is taken; the log and its disk are well.
func TestNoOffsetsAreLeft(t *testing.T) {
	f := func(magic int8, start int64, count int, want error) {
		t.Helper()
		o := testOptions(vfs.NewMem())
		o.Config.MessageFormat = magic
		o.OnFailure = func(err error) { t.Errorf("log failed: %v", err) }
		l := openLog(t, o)
		must(t, l.TruncateFullyAndStartAt(start))
		for range 2 {
			set := batchOf(t, count)
			_, err := l.AppendAsLeader(set, 0, AppendOptions{})
			if !errors.Is(err, want) || errors.Is(err, ErrStorage) {
				t.Fatalf("format %d, %d records at %d: got %v, want %v", magic, count, start, err, want)
			}
			if want == nil {
				break
			}
			if end := l.Offsets().End; end != start || l.LatestEpoch() >= 0 {
				t.Fatalf("refused at %d: end %d, epoch %d", start, end, l.LatestEpoch())
			}
		}
		mustCheck(t, l)
		must(t, l.Flush())
		o.RecoveryPoint = l.RecoveryPoint()
		if again := openLog(t, o); again.Offsets().End != l.Offsets().End {
			t.Errorf("opened again: end %d, want %d", again.Offsets().End, l.Offsets().End)
		}
	}
	for _, magic := range []int8{1, 2} {
		f(magic, math.MaxInt64-2, 1, nil)
		f(magic, math.MaxInt64-2, 2, nil)
		f(magic, math.MaxInt64-2, 3, ErrNoOffsets)
		f(magic, math.MaxInt64-1, 1, nil)
		f(magic, math.MaxInt64-1, 2, ErrNoOffsets)
		f(magic, math.MaxInt64, 1, ErrNoOffsets)
	}
	l := openLog(t, testOptions(vfs.NewMem()))
	must(t, l.TruncateFullyAndStartAt(math.MaxInt64))
	sent := record.Batch(batchOf(t, 1))
	sent.SetBaseOffset(math.MaxInt64)
	if _, err := l.AppendAsFollower(sent, 0); !errors.Is(err, ErrNoOffsets) || l.Failed() != nil {
		t.Errorf("follower: got %v, failed %v", err, l.Failed())
	}
}

// batchOf returns a batch of count records.
func batchOf(t testing.TB, count int) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{})
	for i := range count {
		must(t, b.Append(record.Record{Offset: int64(i), Timestamp: testTime.UnixMilli(), Value: []byte("v")}))
	}
	return b.Build()
}

// The process is short of something from the n-th operation on, for each n: an append with a roll
// and a new leader epoch, a flush, retention and a rename. What was not done leaves no trace, the
// disk is not blamed, and once there is enough again all goes on; a log that does not know what its
// files have is opened again and has everything.
func TestShortageAtEveryStep(t *testing.T) {
	opens := func(op vfs.Op) bool {
		return op.Kind == vfs.OpOpen || op.Kind == vfs.OpCreate || op.Kind == vfs.OpSyncDir || op.Kind == vfs.OpReadDir
	}
	writes := func(op vfs.Op) bool { return op.Kind == vfs.OpWrite }
	for _, c := range []struct {
		name  string
		err   error
		meets func(vfs.Op) bool
	}{
		{"out of descriptors", syscall.EMFILE, opens},
		{"out of descriptors of the machine", syscall.ENFILE, opens},
		{"out of memory", syscall.ENOMEM, func(op vfs.Op) bool { return opens(op) || writes(op) }},
		{"too large a file", &vfs.ShortWrite{N: 20, Err: syscall.EFBIG}, writes},
	} {
		for n := 0; shortageAt(t, c.name, n, c.err, c.meets); n++ {
		}
	}
}

// shortageAt reports whether there was an n-th operation.
func shortageAt(t *testing.T, name string, n int, shortage error, meets func(vfs.Op) bool) (met bool) {
	t.Helper()
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.SegmentBytes = 400
	o.OnFailure = func(err error) {
		if fault := vfs.FaultOf(err); fault == vfs.DiskFault || fault == vfs.SpaceFault {
			t.Errorf("%s, step %d: %v is blamed on the disk", name, n, err)
		}
	}
	var later inBackground
	o.Background = later.add
	l := openLog(t, o)
	set := func() []byte { return spec{size: 60, tag: "x"}.build(t) }
	for range 3 {
		mustAppend(t, l, set())
	}
	want, _ := readAll(t, l, 0, ReadLogEnd)
	segment.CloseIdle()
	segment.CloseIdle() // the file must be opened for the next append
	left := n
	mem.SetHook(func(op vfs.Op) error {
		if !meets(op) {
			return nil
		}
		if left--; left >= 0 {
			return nil
		}
		met = true
		return shortage
	})
	if _, err := l.AppendAsLeader(set(), 1, AppendOptions{}); err == nil {
		want = append(want, "3:x0")
	} else if !met {
		t.Fatal(err)
	}
	later.run()
	_ = l.Flush()
	l.SetHighWatermark(l.Offsets().End)
	_ = l.RenameDir(o.Dir + "-renamed")
	_ = l.RenameDir(o.Dir)
	mem.SetHook(nil)
	if l.Failed() != nil {
		o.RecoveryPoint, o.LogStartOffset = l.RecoveryPoint(), l.Offsets().LogStart
		o.Dir = l.Dir()
		l = openLog(t, o)
	}
	later.run()
	if got, _ := readAll(t, l, 0, ReadLogEnd); !slices.Equal(got, want) {
		t.Fatalf("%s, step %d: read %v, want %v", name, n, got, want)
	}
	mustCheck(t, l)
	if info := mustAppend(t, l, set()); info.FirstOffset != int64(len(want)) {
		t.Fatalf("%s, step %d: next append got %d, want %d", name, n, info.FirstOffset, len(want))
	}
	must(t, l.Flush())
	if l.RecoveryPoint() != l.Offsets().End {
		t.Fatalf("%s, step %d: recovery point %d after a flush, end %d", name, n, l.RecoveryPoint(), l.Offsets().End)
	}
	o.RecoveryPoint, o.LogStartOffset, o.Dir = l.RecoveryPoint(), l.Offsets().LogStart, l.Dir()
	o.FS = mem.CrashClone(nil)
	again := openLog(t, o)
	if end := again.Offsets().End; end != int64(len(want))+1 {
		t.Fatalf("%s, step %d: after a crash: end %d, want %d", name, n, end, len(want)+1)
	}
	return met
}

// A first batch that is damaged is no reason not to append, and none to blame the disk.
func TestAppendBehindDamagedFirstBatch(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.OnFailure = func(err error) { t.Errorf("log failed: %v", err) }
	l := openLog(t, o)
	for range 3 {
		mustAppend(t, l, spec{size: 50}.build(t))
	}
	must(t, l.Close())
	o.Clean, o.RecoveryPoint = true, 3
	file, err := mem.OpenFile(o.Dir+"/"+logName(0), os.O_RDWR, 0)
	must(t, err)
	_, err = file.WriteAt([]byte{0x7f}, 8) // of the length
	must(t, errors.Join(err, file.Close()))
	l = openLog(t, o)
	if info, err := l.AppendAsLeader(spec{size: 50}.build(t), 0, AppendOptions{}); err != nil || info.FirstOffset != 3 {
		t.Errorf("got offset %d, %v", info.FirstOffset, err)
	}
}
