package commitlog

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Reports about Kafka's storage as tests, by their numbers. Those that need a broker are in
// package broker.

func rename(t *testing.T, mem *vfs.Mem, from, to string) {
	t.Helper()
	must(t, mem.Rename(dir+from, dir+to))
}

func contentsOf(t *testing.T, mem *vfs.Mem, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(mem, dir+name, 1<<20)
	must(t, err)
	return b
}

func indexName(base int64) string { return segment.Name(base, segment.IndexFile, "") }
func timeName(base int64) string  { return segment.Name(base, segment.TimeIndexFile, "") }

// wantSix opens the log of threeSegments and compares it with what was written.
func wantSix(t *testing.T, o Options, values ...string) *Log {
	t.Helper()
	if values == nil {
		values = []string{"0:a0", "1:b0", "2:a0", "3:b0", "4:a0", "5:b0"}
	}
	l := openLog(t, o)
	if got, end := readAll(t, l, max(0, l.Offsets().LogStart), ReadLogEnd); !slices.Equal(got, values) || end != 6 || l.Offsets().End != 6 {
		t.Errorf("read %v up to %d, log end %d, want %v", got, end, l.Offsets().End, values)
	}
	if p := l.Producers(); len(p) != 1 || p[0].LastSequence != 5 {
		t.Errorf("producers %+v", p)
	}
	for _, name := range names(t, o.FS.(*vfs.Mem)) {
		if strings.HasSuffix(name, segment.SwapSuffix) || strings.HasSuffix(name, segment.CleanedSuffix) {
			t.Errorf("%s is left", name)
		}
	}
	return l
}

// A crash while segments 0 and 2 are replaced by their merged copy, at each step.
func TestKAFKA12520(t *testing.T) {
	f := func(name string, prepare func(mem *vfs.Mem, merged []byte)) {
		for _, clean := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				mem := vfs.NewMem()
				o := threeSegments(t, mem)
				o.Clean = clean
				prepare(mem, append(contentsOf(t, mem, logName(0)), contentsOf(t, mem, logName(2))...))
				read := 0
				mem.SetHook(func(op vfs.Op) error {
					if op.Kind == vfs.OpRead && op.Name == dir+logName(0) {
						read++
					}
					return nil
				})
				l, err := Open(o)
				must(t, err)
				mem.SetHook(nil)
				must(t, l.Close())
				if clean && read > 0 || read > 4 { // an index may be missing, or empty
					t.Errorf("segments were read again, %d times", read)
				}
				if snapshots := names(t, mem); !slices.Contains(snapshots, snapshotName(4)) || !slices.Contains(snapshots, snapshotName(6)) {
					t.Errorf("producer snapshots are gone: %v", snapshots)
				}
				o.Clean = true
				wantSix(t, o)
			})
		}
	}
	put := func(mem *vfs.Mem, merged []byte, suffixes ...string) {
		for i, name := range []string{logName(0), indexName(0), timeName(0)} {
			if i > 0 {
				merged = nil
			}
			must(t, vfs.WriteFileAtomic(mem, dir+name+suffixes[i], merged))
		}
	}
	each := func(mem *vfs.Mem, do func(name string)) {
		for _, base := range []int64{0, 2} {
			for _, name := range []string{logName(base), indexName(base), timeName(base)} {
				do(name)
			}
		}
	}
	f("output not complete", func(mem *vfs.Mem, merged []byte) { put(mem, merged[:100], ".cleaned", ".cleaned", ".cleaned") })
	f("being renamed to swap", func(mem *vfs.Mem, merged []byte) { put(mem, merged, ".swap", ".cleaned", ".cleaned") })
	f("swap, with the originals", func(mem *vfs.Mem, merged []byte) { put(mem, merged, ".swap", ".swap", ".swap") })
	f("swap, originals deleted", func(mem *vfs.Mem, merged []byte) {
		put(mem, merged, ".swap", ".swap", ".swap")
		each(mem, func(name string) { rename(t, mem, name, name+segment.DeletedSuffix) })
	})
	f("swap, originals gone", func(mem *vfs.Mem, merged []byte) {
		put(mem, merged, ".swap", ".swap", ".swap")
		each(mem, func(name string) { must(t, mem.Remove(dir+name)) })
	})
	f("log renamed, indexes not", func(mem *vfs.Mem, merged []byte) {
		each(mem, func(name string) { must(t, mem.Remove(dir+name)) })
		put(mem, merged, "", ".swap", ".swap")
	})
}

// As above, with the log start inside of what is swapped in.
func TestKAFKA7401(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean, o.LogStartOffset = true, 3
	must(t, vfs.WriteFileAtomic(mem, dir+logName(0)+".swap", append(contentsOf(t, mem, logName(0)), contentsOf(t, mem, logName(2))...)))
	l := wantSix(t, o, "3:b0", "4:a0", "5:b0")
	if start := l.Offsets().LogStart; start != 3 {
		t.Errorf("log start %d, want 3", start)
	}
}

// An empty active segment without an index is no damage.
func TestKAFKA13603(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean = true
	l := openLog(t, o)
	must(t, l.Roll())
	must(t, l.Close())
	for _, name := range []string{indexName(6), timeName(6)} {
		must(t, mem.Remove(dir+name))
	}
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && filepath.Ext(op.Name) == ".log" {
			t.Errorf("a recovery: %v", op)
		}
		return nil
	})
	l = openLog(t, o)
	mem.SetHook(nil)
	mustAppend(t, l, spec{}.build(t))
}

// A bad index in the first segment: only that one is made again, and snapshots stay.
func TestKAFKA5829(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.RecoveryPoint = 4
	overwrite(t, mem, indexName(0), 0, []byte("garbage"))
	reads := map[string]int{}
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead {
			reads[op.Name]++
		}
		return nil
	})
	l, err := Open(o)
	must(t, err)
	mem.SetHook(nil)
	must(t, l.Close())
	if reads[dir+logName(0)] > 0 || reads[dir+logName(2)] > 1 { // where the segment in front ends
		t.Errorf("reads: %v", reads)
	}
	for _, offset := range []int64{2, 4, 6} {
		if !slices.Contains(names(t, mem), snapshotName(offset)) {
			t.Errorf("snapshot %d is gone", offset)
		}
	}
	o.Clean = true
	wantSix(t, o)
}

// Files that recovery wants to remove are gone already.
func TestKAFKA6324(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	must(t, vfs.WriteFileAtomic(mem, dir+indexName(6), nil))
	must(t, vfs.WriteFileAtomic(mem, dir+logName(0)+segment.DeletedSuffix, nil))
	must(t, vfs.WriteFileAtomic(mem, dir+timeName(2)+segment.CleanedSuffix, nil))
	gone := 0
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove && !strings.HasSuffix(op.Name, ".snapshot") {
			gone++
			return &os.PathError{Op: "remove", Path: op.Name, Err: os.ErrNotExist}
		}
		return nil
	})
	l, err := Open(o)
	mem.SetHook(nil)
	if err != nil || gone == 0 || l.Offsets().End != 6 {
		t.Errorf("got %v, %d files", err, gone)
	}
}

func TestKAFKA8306(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.LogStartOffset = 500
	if info := mustAppend(t, openLog(t, o), spec{}.build(t)); info.FirstOffset != 500 {
		t.Errorf("append got %d, want 500", info.FirstOffset)
	}
}

// A log of an old Kafka has no partition.metadata: it gets one.
func TestKAFKA16814(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean = true
	must(t, mem.Remove(dir+checkpoint.PartitionMetadataFile))
	l := wantSix(t, o)
	mustAppend(t, l, spec{}.build(t))
	if m, err := checkpoint.ReadPartitionMetadata(mem, dir+checkpoint.PartitionMetadataFile); err != nil || m.TopicID != testTopicID {
		t.Errorf("got %v, %v", m.TopicID, err)
	}
}

// A length that is negative, zero or 2 GiB neither crashes nor allocates, nor hides what follows.
func TestLinkedinKafka409(t *testing.T) {
	for _, size := range []string{"\xff\xff\xff\xff", "\x00\x00\x00\x00", "\x7f\xff\xff\xff"} {
		for _, clean := range []bool{false, true} {
			mem := vfs.NewMem()
			o := threeSegments(t, mem)
			o.Clean, o.RecoveryPoint = clean, 6
			if !clean {
				o.RecoveryPoint = 0
			}
			overwrite(t, mem, logName(2), 8, []byte(size))
			l := openLog(t, o)
			must(t, l.Scrub(nil))
			if q := l.Quarantine(); len(q) != 1 || q[0].First != 2 || q[0].End != 3 || l.Offsets().End != 6 {
				t.Errorf("%x, clean %v: quarantine %v, end %d", size, clean, q, l.Offsets().End)
			}
		}
	}
}

// The name of a new segment is durable when its records are.
func TestKAFKA3968(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	for range 3 {
		mustAppend(t, l, spec{}.build(t))
		must(t, l.Roll())
	}
	mustAppend(t, l, spec{}.build(t))
	must(t, l.Flush())
	o := testOptions(mem.CrashClone(nil))
	o.RecoveryPoint = l.RecoveryPoint()
	if end := openLog(t, o).Offsets().End; end != 4 {
		t.Errorf("log end %d after the crash, want 4", end)
	}
}

// A snapshot is durable before the recovery point passes it.
func TestKAFKA9892(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	var later inBackground
	o.Background = later.add
	l := openLog(t, o)
	mustAppend(t, l, spec{producer: &record.Producer{ID: 7}}.build(t))
	must(t, l.Roll())
	later.run()
	if l.RecoveryPoint() != 1 {
		t.Fatalf("recovery point %d, want 1", l.RecoveryPoint())
	}
	if _, err := mem.CrashClone(nil).Stat(dir + snapshotName(1)); err != nil {
		t.Error(err)
	}
}

// Zeros behind a time index make no segment look old.
func TestKAFKA10207(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean = true
	o.Config.RetentionMs = 1000
	for _, base := range []int64{0, 2, 4} {
		overwrite(t, mem, timeName(base), int64(len(contentsOf(t, mem, timeName(base)))), make([]byte, 120))
	}
	l := wantSix(t, o)
	l.SetHighWatermark(6)
	if n, err := l.DeleteOldSegments(testTime); n != 0 || err != nil {
		t.Errorf("%d segments deleted, %v", n, err)
	}
}

// Index files of the active segment whose size is no multiple of an entry.
func TestKAFKA12734(t *testing.T) {
	for _, clean := range []bool{true, false} {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.Clean = clean
		overwrite(t, mem, indexName(4), int64(len(contentsOf(t, mem, indexName(4)))), []byte("12345"))
		overwrite(t, mem, timeName(4), int64(len(contentsOf(t, mem, timeName(4)))), []byte("1234567"))
		l := wantSix(t, o)
		mustAppend(t, l, spec{}.build(t))
		must(t, l.Close())
		if n := len(contentsOf(t, mem, indexName(4))) % 8; n != 0 {
			t.Errorf("clean %v: .index has %d bytes too many", clean, n)
		}
		if n := len(contentsOf(t, mem, timeName(4))) % 12; n != 0 {
			t.Errorf("clean %v: .timeindex has %d bytes too many", clean, n)
		}
	}
}

// A sealed segment keeps no preallocated index or log.
func TestKAFKA4734(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.Preallocate, o.Config.SegmentBytes = true, 4096
	l := openLog(t, o)
	for range 5 {
		mustAppend(t, l, spec{size: 100}.build(t))
	}
	size := l.Size()
	must(t, l.Roll())
	if n := int64(len(contentsOf(t, mem, logName(0)))); n != size {
		t.Errorf(".log has %d bytes, want %d", n, size)
	}
	if n := len(contentsOf(t, mem, timeName(0))); n == 0 || n > 5*12 {
		t.Errorf(".timeindex has %d bytes", n)
	}
	if found, ok, err := l.Lookup(LookupRequest{Timestamp: testTime.UnixMilli()}); found.Offset != 0 || !ok || err != nil {
		t.Errorf("by time: got %v, %v, %v", found, ok, err)
	}
}

// The active segment becomes empty by a truncation and takes the next append.
func TestKAFKA6492(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean = true
	l := openLog(t, o)
	must(t, l.TruncateTo(4))
	if info := mustAppend(t, l, spec{}.build(t)); info.FirstOffset != 4 || l.NumSegments() != 3 {
		t.Errorf("append got %d in %d segments, want 4 in 3", info.FirstOffset, l.NumSegments())
	}
}

// A follower's gap that no index can hold rolls, and the segment is named by the batch.
func TestKAFKA4451(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	mustAppend(t, l, spec{}.build(t))
	far := record.Batch(spec{}.build(t))
	far.SetBaseOffset(math.MaxInt32 + 100)
	far.SetLeaderEpoch(0)
	if _, err := l.AppendAsFollower(far, 0); err != nil {
		t.Fatal(err)
	}
	if s := l.Segments(); len(s) != 2 || s[1].BaseOffset != math.MaxInt32+100 {
		t.Errorf("segments %v", s)
	}
}
