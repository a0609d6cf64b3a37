package commitlog

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// needsRoom reports whether a full disk refuses the operation.
func needsRoom(op vfs.Op) bool {
	return op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate || op.Kind == vfs.OpMkdir
}

// The disk is full from the n-th operation on, for each n: an append, with a roll and a new
// leader epoch, is done or leaves no trace. When there is room again appends go on.
func TestDiskFullAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		mem := vfs.NewMem()
		o := testOptions(mem)
		o.Config.SegmentBytes = 400
		o.OnFailure = func(err error) { t.Errorf("step %d: log failed: %v", n, err) }
		var later inBackground // one after the other, so that the steps have an order
		o.Background = later.add
		l := openLog(t, o)
		set := func() []byte { return spec{size: 60, tag: "x"}.build(t) }
		for range 3 {
			mustAppend(t, l, set())
		}
		before, _ := readAll(t, l, 0, ReadLogEnd)
		failed, left := false, n
		mem.SetHook(func(op vfs.Op) error {
			if !needsRoom(op) {
				return nil
			}
			if left--; left >= 0 {
				return nil
			}
			failed = true
			if op.Kind == vfs.OpWrite {
				return &vfs.ShortWrite{N: int(op.Size / 2), Err: syscall.ENOSPC}
			}
			return syscall.ENOSPC
		})
		_, err := l.AppendAsLeader(set(), 1, AppendOptions{})
		if err != nil && (!errors.Is(err, ErrStorage) || !failed) || l.Failed() != nil {
			t.Fatalf("step %d: got %v, poisoned: %v", n, err, l.Failed())
		}
		later.run()
		want := before
		if err == nil {
			want = append(slices.Clone(before), "3:x0")
		}
		if got, _ := readAll(t, l, 0, ReadLogEnd); !slices.Equal(got, want) {
			t.Fatalf("step %d: read %v, want %v", n, got, want)
		}
		l.SetHighWatermark(l.Offsets().End)
		must(t, l.IncrementLogStart(1))
		_, err = l.DeleteOldSegments(testTime)
		must(t, err)
		mustCheck(t, l)
		if err := l.Flush(); err != nil && l.Failed() != nil {
			t.Fatalf("step %d: flush: %v", n, err)
		}
		mem.SetHook(nil)
		info, err := l.AppendAsLeader(set(), 1, AppendOptions{})
		if err != nil || info.FirstOffset != int64(len(want)) {
			t.Fatalf("step %d: with room again: offset %d, %v, want %d", n, info.FirstOffset, err, len(want))
		}
		must(t, l.Flush())
		mustCheck(t, l)
		o.RecoveryPoint, o.LogStartOffset = l.RecoveryPoint(), 1
		again := openLog(t, o)
		if end := again.Offsets().End; end != int64(len(want))+1 || again.EpochForOffset(int64(len(want))) != 1 {
			t.Fatalf("step %d: opened again: end %d, epoch %d", n, end, again.LatestEpoch())
		}
		if !failed {
			if n < 4 {
				t.Fatalf("only %d steps", n)
			}
			return
		}
	}
}

// What a directory says of its disk stops appends and nothing else.
func TestDiskSaysFull(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Disk = &Disk{}
	l := openLog(t, o)
	mustAppend(t, l, spec{}.build(t))
	o.Disk.SetFull(true)
	for _, err := range []error{
		second(l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})),
		second(l.AppendAsFollower(spec{}.build(t), 0)),
	} {
		if _, ok := errors.AsType[*DiskFullError](err); !ok || !errors.Is(err, ErrStorage) {
			t.Errorf("got %v", err)
		}
	}
	must(t, l.Flush())
	must(t, l.IncrementLogStart(1))
	must(t, l.Roll())
	_, err := l.DeleteOldSegments(testTime)
	must(t, err)
	o.Disk.SetFull(false)
	if info := mustAppend(t, l, spec{}.build(t)); info.FirstOffset != 1 {
		t.Errorf("append got %d, want 1", info.FirstOffset)
	}
}

func second(_ AppendInfo, err error) error { return err }

// A failed or short write for another reason, an undo that fails, and any failed sync poison
// the log: no change is accepted until it is opened again, and no sync is taken for done.
func TestPoison(t *testing.T) {
	f := func(name string, inject func(vfs.Op) error, do func(*Log) error) {
		t.Helper()
		mem := vfs.NewMem()
		o := testOptions(mem)
		failures := 0
		o.OnFailure = func(error) { failures++ }
		l := openLog(t, o)
		mustAppend(t, l, spec{tag: "a"}.build(t))
		must(t, l.Flush())
		if _, err := l.AppendAsLeader(spec{tag: "b"}.build(t), 0, AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		mem.SetHook(inject)
		err := do(l)
		mem.SetHook(nil)
		if !errors.Is(err, ErrStorage) || l.Failed() == nil || failures != 1 {
			t.Errorf("%s: got %v, failed %v, told %d times", name, err, l.Failed(), failures)
		}
		point := l.RecoveryPoint()
		for what, err := range map[string]error{
			"append": second(l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})), "follow": second(l.AppendAsFollower(spec{}.build(t), 0)),
			"flush": l.Flush(), "flush to": l.FlushTo(2), "roll": l.Roll(), "truncate": l.TruncateTo(0), "start": l.IncrementLogStart(1),
			"close": l.Close(),
		} {
			if !errors.Is(err, ErrStorage) {
				t.Errorf("%s, then %s: got %v", name, what, err)
			}
		}
		if l.RecoveryPoint() != point || point > 1 {
			t.Errorf("%s: recovery point %d moved to %d", name, point, l.RecoveryPoint())
		}
		again := openLog(t, testOptions(mem.CrashClone(nil)))
		mustAppend(t, again, spec{}.build(t))
	}
	appendOne := func(l *Log) error {
		return second(l.AppendAsLeader(spec{size: 50}.build(t), 0, AppendOptions{}))
	}
	on := func(kind vfs.OpKind, err error) func(vfs.Op) error {
		return func(op vfs.Op) error {
			if op.Kind == kind {
				return err
			}
			return nil
		}
	}
	f("failed write", on(vfs.OpWrite, syscall.EIO), appendOne)
	f("short write", on(vfs.OpWrite, &vfs.ShortWrite{N: 20, Err: io.ErrShortWrite}), appendOne)
	f("disk full, undo fails", func(op vfs.Op) error {
		switch op.Kind {
		case vfs.OpWrite:
			return &vfs.ShortWrite{N: 20, Err: syscall.ENOSPC}
		case vfs.OpTruncate:
			return syscall.EIO
		}
		return nil
	}, appendOne)
	f("failed sync", on(vfs.OpSync, syscall.EIO), (*Log).Flush)
	f("failed sync of a full disk", on(vfs.OpSync, syscall.ENOSPC), (*Log).Flush)
	f("failed sync, shared", on(vfs.OpSync, syscall.EIO), func(l *Log) error { return l.FlushTo(2) })
}
