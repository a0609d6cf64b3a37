package commitlog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// filesOf are those of a segment, .log first.
func filesOf(base int64) []string { return []string{logName(base), indexName(base), timeName(base)} }

func removeAll(t *testing.T, mem *vfs.Mem, names ...string) {
	t.Helper()
	must(t, removeFiles(mem, dir, names))
}

// cutFile gives a file of the log's directory a size.
func cutFile(t *testing.T, mem *vfs.Mem, name string, size int64) {
	t.Helper()
	f, err := mem.OpenFile(dir+name, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	must(t, errors.Join(f.Truncate(size), f.Close()))
}

// A log of six records in three segments, of which the checkpoints know that it ends at 6, is
// damaged in every way that files can be. It goes on at its proven end, what is lost is in
// quarantine, and all of that stays so at every later start, whatever the stop was and whatever is
// appended. Nothing else is lost.
func TestProvenEndOfDamagedLogs(t *testing.T) {
	type want struct {
		start, end int64
		lost       [2]int64
	}
	batchSize := int64(len(spec{tag: "a", producer: &record.Producer{ID: 7}}.build(t)))
	f := func(name string, damage func(*vfs.Mem, *Options), clean, unclean want) {
		for stop, want := range map[bool]want{true: clean, false: unclean} {
			t.Run(fmt.Sprintf("%s/clean %v", name, stop), func(t *testing.T) {
				mem := vfs.NewMem()
				o := threeSegments(t, mem)
				o.HighWatermark, o.Clean = 6, stop
				damage(mem, &o)
				held := int64(0)
				for starts := range 5 {
					wantProof(t, o, want.start, want.end+held, want.lost)
					o, held = useAndStop(t, o, held, starts%2 == 0)
				}
			})
		}
	}
	same := func(name string, damage func(*vfs.Mem), start int64, lost ...int64) {
		w := want{start, 6, [2]int64{6, 6}}
		copy(w.lost[:], lost)
		f(name, func(mem *vfs.Mem, _ *Options) { damage(mem) }, w, w)
	}
	same("nothing", func(*vfs.Mem) {}, 0)
	same("bit in the last batch", func(mem *vfs.Mem) { overwrite(t, mem, logName(4), batchSize+70, []byte("x")) }, 0, 5, 6)
	same("length of the last batch", func(mem *vfs.Mem) { overwrite(t, mem, logName(4), batchSize+8, []byte{0xff}) }, 0, 5, 6)
	same("bit in the offset of the last batch", func(mem *vfs.Mem) { overwrite(t, mem, logName(4), batchSize+4, []byte{2}) }, 0, 5, 6)
	same("bit in the offset of the first batch", func(mem *vfs.Mem) { overwrite(t, mem, logName(0), 5, []byte{2}) }, 0, 0, 1)
	same("last segment is garbage", func(mem *vfs.Mem) { overwrite(t, mem, logName(4), 0, make([]byte, 2*batchSize)) }, 0, 4, 6)
	same("cut inside of the last batch", func(mem *vfs.Mem) { cutFile(t, mem, logName(4), 2*batchSize-3) }, 0, 5, 6)
	same("cut between two batches", func(mem *vfs.Mem) { cutFile(t, mem, logName(4), batchSize) }, 0, 5, 6)
	same("last one cut to nothing", func(mem *vfs.Mem) { cutFile(t, mem, logName(4), 0) }, 0, 4, 6)
	same("last one missing", func(mem *vfs.Mem) { removeAll(t, mem, logName(4)) }, 0, 4, 6)
	same("last one missing with its indexes", func(mem *vfs.Mem) { removeAll(t, mem, filesOf(4)...) }, 0, 4, 6)
	same("last two missing", func(mem *vfs.Mem) { removeAll(t, mem, logName(2), logName(4)) }, 0, 2, 6)
	same("middle one missing", func(mem *vfs.Mem) { removeAll(t, mem, logName(2)) }, 0, 2, 4)
	same("middle one cut to nothing", func(mem *vfs.Mem) { cutFile(t, mem, logName(2), 0) }, 0, 2, 4)
	same("middle one cut inside of a batch", func(mem *vfs.Mem) { cutFile(t, mem, logName(2), 2*batchSize-3) }, 0, 3, 4)
	same("first one missing", func(mem *vfs.Mem) { removeAll(t, mem, logName(0)) }, 0, 0, 2)
	same("first one cut to nothing", func(mem *vfs.Mem) { cutFile(t, mem, logName(0), 0) }, 0, 0, 2)
	same("all .log files missing", func(mem *vfs.Mem) { removeAll(t, mem, logName(0), logName(2), logName(4)) }, 0, 0, 6)
	same("all segments missing", func(mem *vfs.Mem) { removeAll(t, mem, slices.Concat(filesOf(0), filesOf(2), filesOf(4))...) }, 0, 0, 6)
	same("all but the .log files missing", func(mem *vfs.Mem) {
		for _, name := range names(t, mem) {
			if _, kind, _, _ := segment.ParseName(name); kind != segment.LogFile {
				removeAll(t, mem, name)
			}
		}
	}, 0)
	same("directory empty", func(mem *vfs.Mem) { removeAll(t, mem, names(t, mem)...) }, 6)
	same("directory missing", func(mem *vfs.Mem) { must(t, vfs.RemoveAll(mem, "/data/t-0")) }, 6)
	same("garbage behind the end", func(mem *vfs.Mem) { overwrite(t, mem, logName(4), 2*batchSize, make([]byte, 100)) }, 0)

	again := func(mem *vfs.Mem, name string, twice string) {
		must(t, vfs.WriteFileAtomic(mem, dir+name, append(contentsOf(t, mem, name), twice...)))
	}
	same("first one twice in its file", func(mem *vfs.Mem) { again(mem, logName(0), string(contentsOf(t, mem, logName(0)))) }, 0)
	same("last one twice in its file", func(mem *vfs.Mem) { again(mem, logName(4), string(contentsOf(t, mem, logName(4)))) }, 0)
	for _, base := range []int64{1, 3, 5, 50} {
		same(fmt.Sprint("copy of the first one as ", base), func(mem *vfs.Mem) {
			must(t, vfs.WriteFileAtomic(mem, dir+logName(base), contentsOf(t, mem, logName(0))[:batchSize]))
		}, 0)
	}

	whole := want{0, 6, [2]int64{6, 6}}
	alone := func(damage func(*vfs.Mem)) func(*vfs.Mem, *Options) { // no checkpoint knows anything
		return func(mem *vfs.Mem, o *Options) {
			if !o.Clean {
				o.RecoveryPoint, o.HighWatermark = 0, 0
			}
			damage(mem)
		}
	}
	f("cut between two batches, and a snapshot at the end", alone(func(mem *vfs.Mem) { cutFile(t, mem, logName(4), batchSize) }), want{0, 6, [2]int64{5, 6}}, want{0, 6, [2]int64{5, 6}})
	f("last one missing, and a snapshot at the end", alone(func(mem *vfs.Mem) { removeAll(t, mem, logName(4)) }), want{0, 6, [2]int64{4, 6}}, want{0, 6, [2]int64{4, 6}})
	f("last one of a compacted log missing", func(mem *vfs.Mem, o *Options) {
		alone(func(mem *vfs.Mem) { removeAll(t, mem, logName(4)) })(mem, o)
		o.Config.Compact = true
	}, want{0, 6, [2]int64{4, 6}}, want{0, 6, [2]int64{4, 6}})
	f("high watermark of another world", func(_ *vfs.Mem, o *Options) { o.HighWatermark = 1 << 60 }, whole, whole)
	f("recovery point of another world", func(_ *vfs.Mem, o *Options) { o.RecoveryPoint = 1 << 60 }, whole, whole)
	f("high watermark a little too high", func(_ *vfs.Mem, o *Options) { o.HighWatermark = 16 }, whole, want{0, 16, [2]int64{6, 16}})
	f("empty .log file behind the end", func(mem *vfs.Mem, _ *Options) { cutFile(t, mem, logName(50), 0) }, whole, whole)
	f("what a crash left of a roll", func(mem *vfs.Mem, o *Options) {
		if o.Clean {
			return
		}
		cutFile(t, mem, logName(8), 0)
		must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(8), contentsOf(t, mem, snapshotName(6))))
	}, whole, want{0, 8, [2]int64{6, 8}})
	same("indexes of no segment behind the end", func(mem *vfs.Mem) { cutFile(t, mem, indexName(50), 0) }, 0)
	same("snapshot behind the end", func(mem *vfs.Mem) {
		must(t, vfs.WriteFileAtomic(mem, dir+snapshotName(50), contentsOf(t, mem, snapshotName(6))))
	}, 0)
	f("empty .log file far behind the end", func(mem *vfs.Mem, _ *Options) { cutFile(t, mem, logName(1<<60), 0) }, whole, whole)
	f("log start in what is missing", func(mem *vfs.Mem, o *Options) {
		o.LogStartOffset = 3
		removeAll(t, mem, logName(2))
	}, want{3, 6, [2]int64{3, 4}}, want{3, 6, [2]int64{3, 4}})
	f("log start behind what is missing", func(mem *vfs.Mem, o *Options) {
		o.LogStartOffset = 3
		removeAll(t, mem, logName(0))
	}, want{3, 6, [2]int64{6, 6}}, want{3, 6, [2]int64{6, 6}})
	f("log start in a log that is missing", func(mem *vfs.Mem, o *Options) {
		o.LogStartOffset = 3
		removeAll(t, mem, slices.Concat(filesOf(0), filesOf(2), filesOf(4))...)
	}, want{3, 6, [2]int64{3, 6}}, want{3, 6, [2]int64{3, 6}})
}

// useAndStop appends a record, and stops the log cleanly or kills it. It returns how to open it
// next, and how many records were appended.
func useAndStop(t *testing.T, o Options, held int64, clean bool) (Options, int64) {
	t.Helper()
	l, err := Open(o)
	must(t, err)
	return useAndStopOpen(t, o, l, clean), held + 1
}

// useAndStopOpen is useAndStop of a log that was opened.
func useAndStopOpen(t *testing.T, o Options, l *Log, clean bool) Options {
	t.Helper()
	end := l.Offsets().End
	if info := mustAppend(t, l, spec{tag: "new"}.build(t)); info.FirstOffset != end {
		t.Fatalf("the next record got %d, want %d", info.FirstOffset, end)
	}
	o.CleanState, o.Clean = nil, clean
	if clean {
		err := l.Close()
		must(t, err)
		o.RecoveryPoint, o.HighWatermark, o.LogStartOffset = l.RecoveryPoint(), l.Offsets().HighWatermark, l.Offsets().LogStart
		o.CleanState, err = l.CleanState()
		must(t, err)
	} else {
		l.background.Wait()
		l.Abandon()
	}
	return o
}

// wantProof opens a log and stops it again without a trace.
func wantProof(t *testing.T, o Options, start, end int64, lost [2]int64) {
	t.Helper()
	mem, fork := o.FS.(*vfs.Mem), vfs.NewMem()
	if _, err := mem.Stat(dir); err == nil {
		must(t, vfs.MkdirAll(fork, dir, 0o755))
		for _, name := range names(t, mem) {
			must(t, vfs.WriteFileAtomic(fork, dir+name, contentsOf(t, mem, name)))
		}
	}
	o.FS, o.CleanState = fork, nil
	l := openLog(t, o)
	l.SetHighWatermark(l.Offsets().End)
	if got := l.Offsets(); got.LogStart != start || got.End != end {
		t.Errorf("log [%d,%d), want [%d,%d)", got.LogStart, got.End, start, end)
	}
	for offset := start; offset < end; offset++ {
		r, err := l.Read(offset, 1000, ReadUncommitted, segment.WholeFirst)
		isLost := offset >= lost[0] && offset < lost[1]
		first := r.Slice.First().BaseOffset
		r.Slice.Release()
		if isLost != errors.Is(err, record.ErrCorrupt) || !isLost && (err != nil || first != offset) {
			t.Fatalf("offset %d: got a batch at %d, %v, want lost %v; quarantine %v", offset, first, err, isLost, l.Quarantine())
		}
	}
	l.background.Wait()
	l.Abandon()
}

// Who brings a missing file back has his records again.
func TestLossIsHealedByTheFile(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.HighWatermark = 6
	saved := contentsOf(t, mem, logName(2))
	removeAll(t, mem, filesOf(2)...)
	cutFile(t, mem, indexName(2), 0)
	l, err := Open(o)
	must(t, err)
	if q := l.Quarantine(); len(q) != 1 || q[0].First != 2 || q[0].End != 4 {
		t.Errorf("quarantine %v, want [2,4)", q)
	}
	must(t, l.Close())
	must(t, vfs.WriteFileAtomic(mem, dir+logName(2), saved))
	o.Clean = true
	wantSix(t, o)
	if _, err := mem.Stat(dir + checkpoint.Losses); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", checkpoint.Losses, err)
	}
}

// Losses go with the records around them: by retention, and by a truncation.
func TestLossesGo(t *testing.T) {
	lossy := func() (*vfs.Mem, Options) {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.HighWatermark = 6
		removeAll(t, mem, logName(2))
		return mem, o
	}
	reopened := func(o Options, l *Log) []Quarantined {
		must(t, l.Close())
		o.Clean, o.RecoveryPoint, o.LogStartOffset, o.HighWatermark = true, l.RecoveryPoint(), l.Offsets().LogStart, l.Offsets().End
		return openLog(t, o).Quarantine()
	}
	_, o := lossy()
	l, err := Open(o)
	must(t, err)
	l.SetHighWatermark(6)
	must(t, l.IncrementLogStart(4))
	if n, err := l.DeleteOldSegments(testTime); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if q := reopened(o, l); len(q) > 0 {
		t.Errorf("after retention: %v", q)
	}
	for offset, want := range map[int64]int64{2: 2, 3: 3, 4: 4, 5: 4} { // the end of the loss
		mem, o := lossy()
		l, err := Open(o)
		must(t, err)
		must(t, l.TruncateTo(offset))
		if info := mustAppend(t, l, spec{}.build(t)); info.FirstOffset != offset {
			t.Errorf("truncated to %d: the next record got %d", offset, info.FirstOffset)
		}
		q := reopened(o, l)
		if want == 2 {
			if len(q) > 0 || slices.Contains(names(t, mem), checkpoint.Losses) {
				t.Errorf("truncated to %d: %v, files %v", offset, q, names(t, mem))
			}
			continue
		}
		if len(q) != 1 || q[0].First != 2 || q[0].End != want {
			t.Errorf("truncated to %d: %v, want [2,%d)", offset, q, want)
		}
	}
}

// A file of losses that cannot be read is named, and the log opens.
func TestDamagedLosses(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	must(t, vfs.WriteFileAtomic(mem, dir+checkpoint.Losses, []byte("0\n1\nx y\n")))
	o.Clean = true
	wantSix(t, o)
}

// A log that has something noted is looked at again after a clean stop, not known by heart.
func TestNotesAreNoCleanState(t *testing.T) {
	for _, name := range []string{"", checkpoint.Losses, checkpoint.TransactionsFile} {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		l, err := Open(o)
		must(t, err)
		must(t, l.Close())
		if name != "" {
			must(t, vfs.WriteFileAtomic(mem, dir+name, []byte("0\n0\n")))
		}
		s, err := l.CleanState()
		if must(t, err); (s != nil) != (name == "") {
			t.Errorf("with %q: %v", name, s)
		}
	}
}

// An epoch that began where nothing was written stands for no loss, as the log ends there.
func TestIdleEpochIsNoLoss(t *testing.T) {
	for _, clean := range []bool{true, false} {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		must(t, checkpoint.WriteEpochs(mem, dir+checkpoint.LeaderEpochs, []checkpoint.EpochEntry{{Epoch: 0, StartOffset: 0}, {Epoch: 1, StartOffset: 6}}))
		o.Clean, o.HighWatermark = clean, 6
		if q := wantSix(t, o).Quarantine(); len(q) > 0 {
			t.Errorf("clean %v: %v", clean, q)
		}
	}
}
