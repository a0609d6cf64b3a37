package commitlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A sealed segment of a compacted log is cut between two batches, which looks like what compaction leaves. Where
// the indexes, or the size that the file had at the last stop, say otherwise, whoever reads there is told, at
// every start. All else is served.
func TestSealedEndIsLost(t *testing.T) {
	const batches, cut = 8, 5
	type setting struct {
		name         string
		clean, state bool
		point        int64
	}
	settings := []setting{
		{"clean, and its sizes are known", true, true, 2*batches + 1},
		{"clean", true, false, 2*batches + 1},
		{"killed, and all is recovered", false, false, 0},
		{"killed, and the next segment is recovered", false, false, batches},
		{"killed, and the last segment is recovered", false, false, 2 * batches},
	}
	f := func(name string, s setting, damage func(t *testing.T, mem *vfs.Mem, size int64), lost bool) {
		t.Run(name+"/"+s.name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := testOptions(mem)
			o.Config.IndexIntervalBytes, o.Config.Compact = 100, true
			l := openLog(t, o)
			for i := range int64(2*batches + 1) {
				mustAppend(t, l, spec{size: 50, timestamp: testTime.UnixMilli() + i}.build(t))
				if i%batches == batches-1 {
					must(t, l.Roll())
				}
			}
			size := l.Offsets().segments[0].Size() / batches
			must(t, l.Close())
			if s.state {
				var err error
				o.CleanState, err = l.CleanState()
				must(t, err)
			}
			o.Clean, o.RecoveryPoint, o.HighWatermark = s.clean, s.point, 2*batches+1
			damage(t, mem, size)
			end := int64(2*batches + 1)
			for starts := range 4 {
				l, err := Open(o)
				must(t, err)
				l.SetHighWatermark(end)
				if got := l.Offsets().End; got != end {
					t.Fatalf("start %d: the log ends at %d, want %d", starts, got, end)
				}
				wantCut(t, l, cut, batches, lost)
				o, end = useAndStopOpen(t, o, l, starts%2 == 0), end+1
			}
		})
	}
	between := func(t *testing.T, mem *vfs.Mem, size int64) { cutFile(t, mem, logName(0), cut*size) }
	for _, s := range settings {
		f("nothing", s, func(*testing.T, *vfs.Mem, int64) {}, false)
		f("cut", s, between, true)
		for _, kind := range []string{indexName(0), timeName(0)} {
			f("cut, without "+kind, s, func(t *testing.T, mem *vfs.Mem, size int64) {
				between(t, mem, size)
				removeAll(t, mem, kind)
			}, true)
		}
		f("cut, without indexes", s, func(t *testing.T, mem *vfs.Mem, size int64) {
			between(t, mem, size)
			removeAll(t, mem, indexName(0), timeName(0))
		}, s.state)
	}
}

// wantCut reads all offsets of a log, of which [from, to) may be cut off, and lost or gone by compaction.
func wantCut(t *testing.T, l *Log, from, to int64, lost bool) {
	t.Helper()
	whole := !lost && l.Offsets().segments[0].Damages() == nil
	for offset := range l.Offsets().End {
		r, err := l.Read(offset, 1000, ReadUncommitted, segment.WholeFirst)
		first := r.Slice.First().BaseOffset
		r.Slice.Release()
		switch in := offset >= from && offset < to; {
		case in && lost:
			if !errors.Is(err, record.ErrCorrupt) {
				t.Fatalf("offset %d is lost: got a batch at %d, %v", offset, first, err)
			}
		case in && whole:
			if err != nil || first != offset && first != to {
				t.Fatalf("offset %d: got a batch at %d, %v", offset, first, err)
			}
		case err != nil || first != offset:
			t.Fatalf("offset %d: got a batch at %d, %v", offset, first, fmt.Sprint(err, l.Quarantine()))
		}
	}
}
