package commitlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

const dir = "/data/t-0/"

// threeSegments makes a log with segments 0, 2 and 4, two records each, stopped cleanly.
func threeSegments(t *testing.T, mem *vfs.Mem) Options {
	t.Helper()
	o := testOptions(mem)
	l := openLog(t, o)
	for i := range int32(3) {
		mustAppend(t, l, spec{tag: "a", producer: &record.Producer{ID: 7, BaseSequence: 2 * i}}.build(t))
		mustAppend(t, l, spec{tag: "b", producer: &record.Producer{ID: 7, BaseSequence: 2*i + 1}}.build(t))
		if i < 2 {
			must(t, l.Roll())
		}
	}
	must(t, l.Close())
	o.RecoveryPoint = l.RecoveryPoint()
	return o
}

func names(t *testing.T, mem *vfs.Mem) (list []string) {
	t.Helper()
	entries, err := mem.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func overwrite(t *testing.T, mem *vfs.Mem, name string, offset int64, b []byte) {
	t.Helper()
	f, err := mem.OpenFile(dir+name, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(b, offset)
	must(t, errors.Join(err, f.Close()))
}

func logName(base int64) string { return segment.Name(base, segment.LogFile, "") }

func TestCleanLoadReadsOnlyTheTail(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean = true
	before := names(t, mem)
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && op.Name != dir+logName(4) && filepath.Ext(op.Name) == ".log" {
			t.Errorf("unexpected %v", op)
		}
		return nil
	})
	l := openLog(t, o)
	mem.SetHook(nil)
	wantOffsets(t, l, 0, 0, 0, 6)
	if l.RecoveryPoint() != 6 || len(l.Producers()) != 1 || l.LatestEpoch() != 0 {
		t.Errorf("recovery point %d, producers %v, epoch %d", l.RecoveryPoint(), l.Producers(), l.LatestEpoch())
	}
	if after := names(t, mem); !slices.Equal(before, after) {
		t.Errorf("files changed: %v, before %v", after, before)
	}
}

func TestUncleanLoad(t *testing.T) {
	f := func(name string, point, logStart int64, damage func(*vfs.Mem), wantStart, wantEnd, wantPoint int64) {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := threeSegments(t, mem)
			o.RecoveryPoint, o.LogStartOffset = point, logStart
			damage(mem)
			l := openLog(t, o)
			wantOffsets(t, l, wantStart, wantStart, wantStart, wantEnd)
			if got := l.RecoveryPoint(); got != wantPoint {
				t.Errorf("recovery point %d, want %d", got, wantPoint)
			}
			if info := mustAppend(t, l, spec{}.build(t)); info.FirstOffset != wantEnd {
				t.Errorf("next append gets %d, want %d", info.FirstOffset, wantEnd)
			}
		})
	}
	nothing := func(*vfs.Mem) {}
	garbage := func(name string, offset int64) func(*vfs.Mem) {
		return func(mem *vfs.Mem) { overwrite(t, mem, name, offset, []byte("garbage")) }
	}
	remove := func(names ...string) func(*vfs.Mem) {
		return func(mem *vfs.Mem) {
			for _, name := range names {
				must(t, mem.Remove(dir+name))
			}
		}
	}
	f("nothing is wrong", 3, 0, nothing, 0, 6, 3)
	f("no recovery point", 0, 0, nothing, 0, 6, 0)
	f("KAFKA-10101: recovery point beyond the end", 100, 0, nothing, 0, 6, 6)
	f("KAFKA-10101: log start beyond the end", 6, 500, nothing, 500, 500, 500)
	f("log start inside", 6, 3, nothing, 3, 6, 6)
	f("garbage in the last segment", 4, 0, garbage(logName(4), 80), 0, 6, 4)
	f("garbage in the middle", 0, 0, garbage(logName(2), 80), 0, 6, 0)
	f("segment missing above the recovery point", 1, 0, remove(logName(2)), 0, 6, 1)
	f("no index", 4, 0, remove("00000000000000000000.index", "00000000000000000004.index", "00000000000000000004.timeindex"), 0, 6, 4)
	f("no snapshots", 4, 0, remove(snapshotName(2), snapshotName(4), snapshotName(6)), 0, 6, 4)
	f("broken snapshot", 4, 0, garbage(snapshotName(4), 0), 0, 6, 4)
	f("no epochs", 0, 0, remove("leader-epoch-checkpoint"), 0, 6, 0)
	f("broken epochs", 4, 0, garbage("leader-epoch-checkpoint", 0), 0, 6, 4)
	for _, size := range []string{"\xff\xff\xff\xff", "\x00\x00\x00\x00", "\x7f\xff\xff\xff"} { // linkedin/kafka#409
		last := int64(len(spec{tag: "a", producer: &record.Producer{ID: 7}}.build(t)))
		f("hostile size", 4, 0, func(mem *vfs.Mem) { overwrite(t, mem, logName(4), 8, []byte(size)) }, 0, 6, 4)
		f("hostile size at the end", 4, 0, func(mem *vfs.Mem) { overwrite(t, mem, logName(4), last+8, []byte(size)) }, 0, 6, 4)
	}
}

// A clean stop of a log without producers whose recovery point is lost or old: all records are there,
// also behind what compaction left.
func TestCleanWithoutRecoveryPoint(t *testing.T) {
	f := func(compact bool, codec record.Codec, format int8) {
		t.Helper()
		o := testOptions(vfs.NewMem())
		o.Config.Compact, o.Config.MessageFormat = compact, format
		l := openLog(t, o)
		for range 3 {
			mustAppend(t, l, spec{records: 5, codec: codec}.build(t))
		}
		must(t, l.Close())
		for _, point := range []int64{0, 7, 15} {
			o.Clean, o.RecoveryPoint = true, point
			if end := openLog(t, o).Offsets().End; end != 15 {
				t.Errorf("%v, format %d, recovery point %d: got end %d, want 15", codec, format, point, end)
			}
		}
	}
	f(false, record.None, 2)
	f(false, record.Gzip, 2)
	f(false, record.Gzip, 1)
	f(true, record.Gzip, 0)
}

func TestBelowRecoveryPointNothingIsRead(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	overwrite(t, mem, logName(0), 40, []byte("garbage"))
	o.RecoveryPoint = 4
	l, err := Open(o)
	must(t, err)
	wantOffsets(t, l, 0, 0, 0, 6)
	if err := l.Check(); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("Check says %v", err)
	}
}

// KAFKA-8306: the checkpoint says 500, and the directory is empty.
func TestEmptyDirectoryBeginsAtLogStart(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.LogStartOffset = 500
	wantOffsets(t, openLog(t, o), 500, 500, 500, 500)
}

// A segment that is missing above the recovery point is a loss: its offsets are refused, and
// what is behind is served.
func TestMissingSegmentIsALoss(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.RecoveryPoint = 1
	must(t, mem.Remove(dir+logName(2)))
	l := openLog(t, o)
	wantOffsets(t, l, 0, 0, 0, 6)
	l.SetHighWatermark(6)
	for offset, lost := range []bool{false, false, true, true, false, false} {
		r, err := l.Read(int64(offset), 1000, ReadUncommitted, segment.WholeFirst)
		r.Slice.Release()
		if errors.Is(err, record.ErrCorrupt) != lost || !lost && err != nil {
			t.Errorf("offset %d: got %v, want lost %v", offset, err, lost)
		}
	}
	o = threeSegments(t, vfs.NewMem())
	o.RecoveryPoint, o.Config.Compact = 1, true // there it is where compaction took all
	must(t, removeFiles(o.FS, dir, []string{logName(2), indexName(2), timeName(2)}))
	if q := openLog(t, o).Quarantine(); len(q) > 0 {
		t.Errorf("compacted: got %v", q)
	}
}

// Producers are the same after a recovery, with snapshots at each base and the end.
func TestRecoveryOfProducers(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.RecoveryPoint = 3
	l := openLog(t, o)
	if p := l.Producers(); len(p) != 1 || p[0].LastSequence != 5 {
		t.Errorf("producers %+v", p)
	}
	for _, offset := range []int64{2, 4, 6} {
		if _, err := mem.Stat(dir + snapshotName(offset)); err != nil {
			t.Error(err)
		}
	}
}

// The states that a crash leaves of a replacement (KAFKA-12520): the output, segment 0 with
// all records of 0 and 2, is complete when its files are called .swap.
// DeleteRecords up to the log end takes no producer with it: what it sends next goes on after the
// restart as before, and a repeated batch is known.
func TestProducersOfADeletedLog(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l, err := Open(o)
	must(t, err)
	set := spec{records: 3, producer: &record.Producer{ID: 7}}
	mustAppend(t, l, set.build(t))
	must(t, l.IncrementLogStart(3))
	must(t, l.Close())

	o.RecoveryPoint, o.LogStartOffset, o.Clean = 3, 3, true
	l = openLog(t, o)
	if info := mustAppend(t, l, set.build(t)); !info.Duplicate {
		t.Error("the repeated batch was appended again")
	}
	if producers := l.Producers(); len(producers) != 1 || producers[0].LastSequence != 2 {
		t.Errorf("producers after the restart: %+v", producers)
	}
}

// After a crash a snapshot above the recovery point may be of records that a truncation took: it
// is not believed, at the log start either.
func TestSnapshotOfTruncatedRecords(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l, err := Open(o)
	must(t, err)
	mustAppend(t, l, spec{records: 2, producer: &record.Producer{ID: 7}}.build(t))
	mustAppend(t, l, spec{records: 1, producer: &record.Producer{ID: 7, BaseSequence: 2}}.build(t))
	must(t, l.Roll())
	stale, err := vfs.ReadFile(o.FS, dir+snapshotName(3), 1<<10)
	must(t, err)
	must(t, l.TruncateTo(2))
	mustAppend(t, l, spec{records: 1}.build(t))
	must(t, l.Roll())
	mustAppend(t, l, spec{records: 1}.build(t))
	must(t, l.Close())
	must(t, vfs.WriteFileAtomic(o.FS, dir+snapshotName(3), stale))

	o.LogStartOffset = 3
	l = openLog(t, o)
	for _, p := range l.Producers() {
		if p.LastSequence == 2 {
			t.Errorf("producer %d is said to have sent what was truncated", p.ProducerID)
		}
	}
}

func TestSwapStates(t *testing.T) {
	kinds := []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile}
	f := func(name string, suffixes [3]string, originals, wantSwapped bool) {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := threeSegments(t, mem)
			o.Clean = true
			var merged []byte
			for _, base := range []int64{0, 2} {
				b, err := vfs.ReadFile(mem, dir+logName(base), 1<<20)
				must(t, err)
				merged = append(merged, b...)
			}
			if !originals {
				for _, base := range []int64{0, 2} {
					for _, kind := range kinds {
						must(t, mem.Rename(dir+segment.Name(base, kind, ""), dir+segment.Name(base, kind, segment.DeletedSuffix)))
					}
				}
			}
			for i, kind := range kinds {
				var data []byte
				if kind == segment.LogFile {
					data = merged
				}
				must(t, writeFile(mem, dir+segment.Name(0, kind, suffixes[i]), data))
			}
			l := openLog(t, o)
			want := []int64{0, 2, 4}
			if wantSwapped {
				want = []int64{0, 4}
			}
			if got := bases(l); !slices.Equal(got, want) {
				t.Errorf("segments %v, want %v", got, want)
			}
			l.SetHighWatermark(6)
			if got, _ := readAll(t, l, 0, ReadUncommitted); len(got) != 6 {
				t.Errorf("records %v", got)
			}
			if p := l.Producers(); len(p) != 1 || p[0].LastSequence != 5 {
				t.Errorf("producers %+v: the snapshots must stay", p)
			}
			for _, name := range names(t, mem) {
				switch filepath.Ext(name) {
				case segment.DeletedSuffix, segment.CleanedSuffix, segment.SwapSuffix:
					t.Errorf("%s is left", name)
				}
			}
		})
	}
	const cleaned, swap = segment.CleanedSuffix, segment.SwapSuffix
	f("output under way", [3]string{cleaned, cleaned, cleaned}, true, false)
	f("renaming to swap", [3]string{swap, cleaned, cleaned}, true, false)
	f("swapped, originals there", [3]string{swap, swap, swap}, true, true)
	f("swapped, originals deleted", [3]string{swap, swap, swap}, false, true)
	f("log in place", [3]string{"", swap, swap}, false, true)
	f("log and index in place", [3]string{"", "", swap}, false, true)
}

// KAFKA-7401: a swap below the log start.
func TestSwapBelowLogStart(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.LogStartOffset = 5
	for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
		must(t, mem.Rename(dir+segment.Name(2, kind, ""), dir+segment.Name(2, kind, segment.SwapSuffix)))
	}
	l := openLog(t, o)
	wantOffsets(t, l, 5, 5, 5, 6)
	if got := bases(l); !slices.Equal(got, []int64{0, 2, 4}) {
		t.Errorf("segments %v", got)
	}
}

func TestOrphansAreDeleted(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	for _, name := range []string{"00000000000000000099.index", "00000000000000000001.txnindex", "00000000000000000000.log.deleted", snapshotName(3)} {
		must(t, writeFile(mem, dir+name, nil))
	}
	must(t, writeFile(mem, dir+"notes.txt", nil))
	o.Clean = true
	openLog(t, o)
	got := names(t, mem)
	for _, name := range []string{"00000000000000000099.index", "00000000000000000001.txnindex", "00000000000000000000.log.deleted", snapshotName(3)} {
		if slices.Contains(got, name) {
			t.Errorf("%s is left", name)
		}
	}
	if !slices.Contains(got, "notes.txt") {
		t.Error("a file of somebody else is gone")
	}
}

// KAFKA-6264: batches whose offsets do not fit the segment. Nothing is lost.
func TestKAFKA6264(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	must(t, openLog(t, o).Close())
	var data []byte
	offsets := []int64{0, 5, 1<<31 + 10, 1<<31 + 11, 1 << 33}
	for i, offset := range offsets {
		b := record.Batch(spec{producer: &record.Producer{ID: 7, BaseSequence: int32(i)}, txn: true}.build(t))
		b.SetBaseOffset(offset)
		b.SetLeaderEpoch(2)
		data = append(data, b...)
	}
	abort := record.Batch(marker(7, 0, true, 0))
	abort.SetBaseOffset(1<<33 + 1)
	data = append(data, abort...)
	overwrite(t, mem, logName(0), 0, data)
	l := openLog(t, o)
	if got := bases(l); !slices.Equal(got, []int64{0, 1<<31 + 10, 1 << 33}) {
		t.Errorf("segments %v", got)
	}
	wantOffsets(t, l, 0, 0, 0, 1<<33+2)
	l.SetHighWatermark(1<<33 + 2)
	if got, _ := readAll(t, l, 0, ReadUncommitted); len(got) != len(offsets) {
		t.Errorf("records %v", got)
	}
	r, err := l.Read(1<<33, 1000, ReadCommitted, segment.WholeFirst)
	must(t, err)
	r.Slice.Release()
	if len(r.Aborted) != 1 || r.Aborted[0].FirstOffset != 0 {
		t.Errorf("aborted %+v", r.Aborted)
	}
	wantEpochs(t, l.epochs, 2, 0)
}

func TestDeleteDirectoryIsNotRecovered(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Dir = "/data/t-0.00-delete"
	must(t, mem.Rename("/data/t-0", o.Dir))
	must(t, openLog(t, o).Delete())
	if _, err := mem.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
