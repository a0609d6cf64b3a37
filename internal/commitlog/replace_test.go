package commitlog

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// segmentedLog has segments at 0, 2, 4 and an active one at 6.
func segmentedLog(t *testing.T, fsys vfs.FS) *Log {
	t.Helper()
	l := openLog(t, testOptions(fsys))
	for range 3 {
		mustAppend(t, l, spec{tag: "a", producer: &record.Producer{ID: 7, BaseSequence: int32(l.Offsets().End)}}.build(t))
		mustAppend(t, l, spec{tag: "b", producer: &record.Producer{ID: 7, BaseSequence: int32(l.Offsets().End)}}.build(t))
		must(t, l.Roll())
	}
	mustAppend(t, l, spec{tag: "c", producer: &record.Producer{ID: 7, BaseSequence: int32(l.Offsets().End)}}.build(t))
	must(t, l.Flush())
	return l
}

// copyTo makes a cleaned segment of the batches of others for which keep is true.
func copyTo(t *testing.T, l *Log, from []CleanSegment, keep func(record.Batch) bool) *segment.Segment {
	t.Helper()
	c, err := l.CreateCleaned(from[0].BaseOffset())
	must(t, err)
	for _, s := range from {
		for b, err := range s.Batches(0, s.Bytes) {
			must(t, err)
			if keep(b.Batch) {
				must(t, c.Append(b.Batch))
			}
		}
	}
	must(t, errors.Join(c.Seal(), c.Flush()))
	return c
}

func segmentsOf(list []CleanSegment) (segments []*segment.Segment) {
	for _, s := range list {
		segments = append(segments, s.Segment)
	}
	return segments
}

func onlyB(b record.Batch) bool { return b.BaseOffset()%2 == 1 }

func namesIn(t *testing.T, fsys vfs.FS, l *Log) string {
	t.Helper()
	names, err := listNames(fsys, l.Dir())
	must(t, err)
	return strings.Join(names, " ")
}

func TestReplaceSegments(t *testing.T) {
	fsys := vfs.NewMem()
	o := testOptions(fsys)
	l := segmentedLog(t, fsys)
	v := l.CleanView()
	defer v.Release()
	old := v.Segments[:2]
	must(t, l.ReplaceSegments(v, []*segment.Segment{copyTo(t, l, old, onlyB)}, segmentsOf(old)))
	if values, _ := readAll(t, l, 0, ReadUncommitted); strings.Join(values, " ") != "1:b0 3:b0 4:a0 5:b0 6:c0" {
		t.Errorf("values %v", values)
	}
	// The snapshot of the segment at 2 went with it, that of 4 stays.
	if names := namesIn(t, fsys, l); strings.Contains(names, snapshotName(2)) || !strings.Contains(names, snapshotName(4)) ||
		strings.Contains(names, segment.SwapSuffix) || strings.Contains(names, segment.CleanedSuffix) {
		t.Errorf("files %s", names)
	}
	must(t, l.Close())
	o.Clean = true
	l = openLog(t, o)
	if values, _ := readAll(t, l, 0, ReadLogEnd); strings.Join(values, " ") != "1:b0 3:b0 4:a0 5:b0 6:c0" {
		t.Errorf("values %v after a restart", values)
	}
}

// Readers that are inside of the old files go on, and so do those that have an old view.
func TestReplaceSegmentsReadersGoOn(t *testing.T) {
	fsys := vfs.NewMem()
	o := testOptions(fsys)
	var removals []func()
	o.DeleteLater = func(_ time.Duration, f func()) { removals = append(removals, f) }
	l := openLog(t, o)
	for range 2 {
		mustAppend(t, l, spec{tag: "a"}.build(t))
		must(t, l.Roll())
	}
	r, err := l.Read(0, 1<<20, ReadUncommitted, segment.WholeFirst)
	must(t, err)
	v := l.CleanView()
	old := v.Segments[:2]
	must(t, l.ReplaceSegments(v, []*segment.Segment{copyTo(t, l, old, onlyB)}, segmentsOf(old)))
	for _, f := range removals {
		f()
	}
	segment.CloseIdle()
	segment.CloseIdle() // no descriptor is open any more
	for _, s := range old {
		must(t, s.ReadBytes(make([]byte, s.Bytes), 0))
	}
	if !strings.Contains(namesIn(t, fsys, l), segment.DeletedSuffix) {
		t.Error("files of a view are gone")
	}
	v.Release()
	if strings.Contains(namesIn(t, fsys, l), segment.DeletedSuffix) {
		t.Error("files are left that no view needs")
	}
	if n := len(contents(t, r)); n == 0 { // it releases the slice
		t.Error("a slice of a replaced file is empty")
	}
}

// What was made from a view does not go in when the log has changed below it.
func TestReplaceSegmentsChanged(t *testing.T) {
	f := func(name string, change func(l *Log)) {
		t.Helper()
		fsys := vfs.NewMem()
		l := segmentedLog(t, fsys)
		v := l.CleanView()
		defer v.Release()
		old := v.Segments[:2]
		c := copyTo(t, l, old, onlyB)
		change(l)
		before := namesIn(t, fsys, l)
		if err := l.ReplaceSegments(v, []*segment.Segment{c}, segmentsOf(old)); !errors.Is(err, ErrSegmentsChanged) {
			t.Errorf("%s: got %v, want ErrSegmentsChanged", name, err)
		}
		if after := namesIn(t, fsys, l); after != before {
			t.Errorf("%s: files %s, before %s", name, after, before)
		}
		must(t, c.Remove())
	}
	f("truncated in front", func(l *Log) { must(t, l.TruncateTo(3)) })
	f("truncated behind", func(l *Log) { must(t, l.TruncateTo(6)) })
	f("truncated fully", func(l *Log) { must(t, l.TruncateFullyAndStartAt(10)) })
	f("deleted", func(l *Log) {
		must(t, l.IncrementLogStart(2))
		if _, err := l.DeleteOldSegments(testTime); err != nil {
			t.Fatal(err)
		}
	})
	f("replaced", func(l *Log) {
		v := l.CleanView()
		defer v.Release()
		old := v.Segments[1:2]
		must(t, l.ReplaceSegments(v, []*segment.Segment{copyTo(t, l, old, onlyB)}, segmentsOf(old)))
	})
}

// Appends and rolls do not count as changes.
func TestReplaceSegmentsBesideAppends(t *testing.T) {
	l := segmentedLog(t, vfs.NewMem())
	v := l.CleanView()
	defer v.Release()
	old := v.Segments[1:3]
	c := copyTo(t, l, old, onlyB)
	mustAppend(t, l, spec{tag: "d"}.build(t))
	must(t, l.Roll())
	must(t, l.ReplaceSegments(v, []*segment.Segment{c}, segmentsOf(old)))
	if values, _ := readAll(t, l, 0, ReadUncommitted); strings.Join(values, " ") != "0:a0 1:b0 3:b0 5:b0 6:c0 7:d0" {
		t.Errorf("values %v", values)
	}
}

// A swap that fails before it began to count is undone; later the log is poisoned.
func TestReplaceSegmentsFails(t *testing.T) {
	undone, poisoned := 0, 0
	for at := 0; ; at++ {
		fsys := vfs.NewMem()
		l := segmentedLog(t, fsys)
		v := l.CleanView()
		old := v.Segments[:2]
		c := copyTo(t, l, old, onlyB)
		n, done := at, false
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpRename || op.Kind == vfs.OpSyncDir {
				if n--; n == -1 {
					return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: syscall.ENOSPC}
				}
			}
			return nil
		})
		err := l.ReplaceSegments(v, []*segment.Segment{c}, segmentsOf(old))
		fsys.SetHook(nil)
		_, full := errors.AsType[*DiskFullError](err)
		switch {
		case err == nil:
			done = true
		case full:
			undone++
			must(t, c.Remove())
			if names := namesIn(t, fsys, l); strings.Contains(names, segment.SwapSuffix) || strings.Contains(names, segment.CleanedSuffix) {
				t.Errorf("fails at %d: files %s", at, names)
			}
			if values, _ := readAll(t, l, 0, ReadUncommitted); len(values) != 7 {
				t.Errorf("fails at %d: values %v", at, values)
			}
			mustAppend(t, l, spec{}.build(t))
		default:
			poisoned++
			if l.Failed() == nil {
				t.Errorf("fails at %d: %v, and the log is not poisoned", at, err)
			}
			o := testOptions(fsys.CrashClone(nil))
			again := openLog(t, o)
			if values, _ := readAll(t, again, 0, ReadLogEnd); len(values) != 5 && len(values) != 7 {
				t.Errorf("fails at %d: values %v after a restart", at, values)
			}
		}
		v.Release()
		if done {
			break
		}
	}
	if undone < 4 || poisoned < 4 {
		t.Errorf("%d undone, %d poisoned", undone, poisoned)
	}
}

func TestReplaceSegmentsOfPoisonedLog(t *testing.T) {
	fsys := vfs.NewMem()
	l := segmentedLog(t, fsys)
	v := l.CleanView()
	defer v.Release()
	old := v.Segments[:2]
	c := copyTo(t, l, old, onlyB)
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return syscall.EIO
		}
		return nil
	})
	if _, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{}); !errors.Is(err, ErrStorage) {
		t.Fatal(err)
	}
	fsys.SetHook(nil)
	before := namesIn(t, fsys, l)
	if err := l.ReplaceSegments(v, []*segment.Segment{c}, segmentsOf(old)); !errors.Is(err, ErrStorage) {
		t.Errorf("got %v", err)
	}
	if after := namesIn(t, fsys, l); after != before {
		t.Errorf("files %s, before %s", after, before)
	}
}

func TestCleanViewProducers(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	mustAppend(t, l, spec{producer: &record.Producer{ID: 1, Epoch: 2}, records: 3}.build(t))
	mustMark(t, l, marker(5, 4, false, 0)) // of a producer without records
	v := l.CleanView()
	defer v.Release()
	f := func(id int64, epoch int16, last int64, control, want bool) {
		t.Helper()
		if got := v.EndsProducer(id, epoch, last, control); got != want {
			t.Errorf("EndsProducer(%d, %d, %d, %v) = %v", id, epoch, last, control, got)
		}
	}
	f(1, 2, 2, false, true)
	f(1, 9, 2, false, true) // the offset counts
	f(1, 2, 1, false, false)
	f(5, 4, 3, true, true)
	f(5, 3, 3, true, false)
	f(5, 4, 3, false, false)
	f(6, 0, 0, false, false)
	f(-1, -1, 0, false, false)
}
