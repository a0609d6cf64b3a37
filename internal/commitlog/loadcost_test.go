package commitlog

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A log whose producers were never any has no snapshots. After a clean stop it is opened without reading what
// is in front of the active segment, and says so for the next time.
func TestCleanLoadWithoutSnapshots(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	l := openLog(t, o)
	for i := range 6 {
		if i == 2 || i == 4 {
			must(t, l.Roll())
		}
		mustAppend(t, l, spec{tag: "a"}.build(t))
	}
	must(t, l.Close())
	for _, name := range names(t, mem) {
		if filepath.Ext(name) == ".snapshot" {
			removeAll(t, mem, name)
		}
	}
	o.Clean, o.RecoveryPoint = true, 6
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && op.Name != dir+logName(4) && filepath.Ext(op.Name) == ".log" {
			t.Errorf("unexpected %v", op)
		}
		return nil
	})
	l = openLog(t, o)
	mem.SetHook(nil)
	wantOffsets(t, l, 0, 0, 0, 6)
	if !slices.Contains(names(t, mem), snapshotName(4)) {
		t.Errorf("no snapshot at the active segment: %v", names(t, mem))
	}
}

// Only a log with records and no leader epochs has to look for these, later.
func TestLoadHandsOffWhatIsMissing(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	f := func(what string, want int) {
		t.Helper()
		var later inBackground
		o.Background = later.add
		l := openLog(t, o)
		if len(later.tasks) != want {
			t.Errorf("%s: %d tasks, want %d", what, len(later.tasks), want)
		}
		later.run()
		if want > 0 && l.LatestEpoch() != 0 {
			t.Errorf("%s: latest epoch %d", what, l.LatestEpoch())
		}
		if l.Offsets().End == 0 {
			mustAppend(t, l, spec{tag: "a"}.build(t))
		}
		must(t, l.Close())
		o.Clean, o.RecoveryPoint = true, 1
	}
	l := openLog(t, o)
	must(t, l.Close())
	o.Clean = true
	f("empty", 0)
	f("with epochs", 0)
	removeAll(t, mem, "leader-epoch-checkpoint")
	f("without epochs", 1)
}

// A directory without files has lost nothing, unless something says that it had.
func TestEmptyDirectoryIsNoLoss(t *testing.T) {
	f := func(logStart int64, want bool) {
		t.Helper()
		mem := vfs.NewMem()
		must(t, vfs.MkdirAll(mem, dir, 0o755))
		var out bytes.Buffer
		o := testOptions(mem)
		o.Logger, o.LogStartOffset = slog.New(slog.NewTextHandler(&out, nil)), logStart
		wantOffsets(t, openLog(t, o), logStart, logStart, logStart, logStart)
		if got := strings.Contains(out.String(), "records are lost"); got != want {
			t.Errorf("log start %d: told of a loss: %v, want %v\n%s", logStart, got, want, out.String())
		}
	}
	f(0, false)
	f(1, true)
}

// Nothing but indexes are what a crash of a compaction may leave, or all that is left of segments: they are no
// segment to open.
func TestOnlyIndexesOfACompactedLog(t *testing.T) {
	for _, compact := range []bool{false, true} {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.Config.Compact, o.HighWatermark = compact, 6
		removeAll(t, mem, logName(0), logName(2), logName(4))
		l := openLog(t, o)
		if got := l.Offsets(); got.LogStart != 0 || got.End != 6 {
			t.Errorf("compacted %v: log [%d,%d), want [0,6)", compact, got.LogStart, got.End)
		}
	}
}

// A sealed segment without batches had some, as both its indexes say. Where compaction leaves segments
// that are empty one index alone says nothing.
func TestEmptiedSegmentIsALoss(t *testing.T) {
	f := func(compact bool, emptied []string, want bool) {
		t.Helper()
		mem := vfs.NewMem()
		o := testOptions(mem)
		l := openLog(t, o)
		for i := range 6 {
			if i == 2 || i == 4 {
				must(t, l.Roll())
			}
			mustAppend(t, l, spec{tag: "a", size: 300}.build(t))
		}
		must(t, l.Close())
		o.Config.Compact, o.Clean, o.RecoveryPoint = compact, true, 6
		for _, name := range append(emptied, logName(2)) {
			cutFile(t, mem, name, 0)
		}
		l, err := Open(o)
		must(t, err)
		defer l.Abandon()
		l.SetHighWatermark(6)
		r, err := l.Read(2, 1000, ReadUncommitted, segment.WholeFirst)
		r.Slice.Release()
		if got := err != nil; got != want {
			t.Errorf("compacted %v, without %v: lost %v, want %v (%v)", compact, emptied, got, want, err)
		}
	}
	for _, compact := range []bool{false, true} {
		f(compact, nil, true)
		f(compact, []string{indexName(2)}, !compact)
		f(compact, []string{timeName(2)}, !compact)
		f(compact, []string{indexName(2), timeName(2)}, false)
	}
}
