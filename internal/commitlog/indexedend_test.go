package commitlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// The last segment is cut, in a directory that has no checkpoint and no producer snapshot, or has both. After
// a clean stop its indexes tell where the log ended; after an unclean one they do not. However it is, what is
// appended from then on is there after every start.
func TestIndexesTellTheEnd(t *testing.T) {
	const batches = 8
	noWitness := func(mem *vfs.Mem, o *Options) {
		o.RecoveryPoint, o.HighWatermark = 0, 0
		removeAll(t, mem, snapshotName(batches), "leader-epoch-checkpoint")
	}
	f := func(name string, damage func(mem *vfs.Mem, o *Options, size int64), clean, unclean int64) {
		for stop, want := range map[bool]int64{true: clean, false: unclean} {
			t.Run(fmt.Sprintf("%s/clean %v", name, stop), func(t *testing.T) {
				mem := vfs.NewMem()
				o := testOptions(mem)
				o.Config.IndexIntervalBytes = 100
				l := openLog(t, o)
				for i := range int64(batches) {
					mustAppend(t, l, spec{tag: "a", size: 50, timestamp: testTime.UnixMilli() + i}.build(t))
				}
				size := l.Offsets().segments[0].Size() / batches
				must(t, l.Close())
				o.RecoveryPoint, o.HighWatermark, o.Clean = batches, batches, stop
				damage(mem, &o, size)
				end := want
				for starts := range 4 {
					o, end = wantEnd(t, o, end, starts%2 == 0), end+1
				}
			})
		}
	}
	cutAt := func(bytes func(size int64) int64) func(*vfs.Mem, *Options, int64) {
		return func(mem *vfs.Mem, o *Options, size int64) {
			noWitness(mem, o)
			cutFile(t, mem, logName(0), bytes(size))
		}
	}
	between := cutAt(func(size int64) int64 { return 4 * size })
	inside := cutAt(func(size int64) int64 { return 4*size + 70 })
	and := func(damage func(*vfs.Mem, *Options, int64), removed string) func(*vfs.Mem, *Options, int64) {
		return func(mem *vfs.Mem, o *Options, size int64) {
			damage(mem, o, size)
			removeAll(t, mem, removed)
		}
	}
	f("nothing", cutAt(func(size int64) int64 { return batches * size }), batches, batches)
	f("between two batches", between, batches, 4)
	f("inside of one", inside, batches, 4)
	f("in a header", cutAt(func(size int64) int64 { return 4*size + 7 }), batches, 4)
	f("inside of the last one", cutAt(func(size int64) int64 { return batches*size - 1 }), batches, batches-1)
	f("inside of the first one", cutAt(func(int64) int64 { return 70 }), batches, 0)
	f("to nothing", cutAt(func(int64) int64 { return 0 }), batches, 0)
	f("between two batches, without time index", and(between, timeName(0)), batches, 4)
	f("between two batches, without index", and(between, indexName(0)), batches, 4)
	f("inside of one, without time index", and(inside, timeName(0)), batches, 4)
	f("inside of one, without index", and(inside, indexName(0)), batches, 4)
	f("inside of one, without both", and(and(inside, indexName(0)), timeName(0)), 4, 4)
	f("between two batches, with all checkpoints", func(mem *vfs.Mem, _ *Options, size int64) {
		cutFile(t, mem, logName(0), 4*size)
	}, batches, batches)
	f("inside of one, with a high watermark below", func(mem *vfs.Mem, o *Options, size int64) {
		noWitness(mem, o)
		o.HighWatermark = 6
		cutFile(t, mem, logName(0), 4*size+70)
	}, batches, 6)

	// The indexes are of a log that was longer, and this one ends well.
	longer := func(set func(o *Options)) func(*vfs.Mem, *Options, int64) {
		return func(mem *vfs.Mem, o *Options, size int64) {
			between(mem, o, size)
			set(o)
		}
	}
	f("the recovery point says no", longer(func(o *Options) { o.RecoveryPoint = 4 }), 4, 4)
	f("the high watermark says no", longer(func(o *Options) { o.HighWatermark = 4 }), 4, 4)
}

// wantEnd opens a log that is to end where it should, reads all of it up to there, with an error or without,
// appends a record and stops.
func wantEnd(t *testing.T, o Options, end int64, clean bool) Options {
	t.Helper()
	l, err := Open(o)
	must(t, err)
	if got := l.Offsets().End; got != end {
		t.Fatalf("the log ends at %d, want %d; quarantine %v", got, end, l.Quarantine())
	}
	l.SetHighWatermark(end)
	for offset := range end {
		r, err := l.Read(offset, 1000, ReadUncommitted, segment.WholeFirst)
		if first := r.Slice.First().BaseOffset; !errors.Is(err, record.ErrCorrupt) && (err != nil || first != offset) {
			t.Errorf("offset %d: got a batch at %d, %v", offset, first, err)
		}
		r.Slice.Release()
	}
	return useAndStopOpen(t, o, l, clean)
}
