package compaction

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// flip changes a byte of the batch at an offset.
func (g *ledger) flip(offset int64, at int) {
	g.t.Helper()
	for _, s := range g.log.Offsets().CleanSegments() {
		for l, err := range s.Batches(0, s.Size()) {
			must(g.t, err)
			if l.Batch.BaseOffset() != offset {
				continue
			}
			f, err := g.fs.OpenFile(s.Path(segment.LogFile), os.O_RDWR, 0)
			must(g.t, err)
			b := []byte{l.Batch[at] ^ 1}
			_, err = f.WriteAt(b, l.Position+int64(at))
			must(g.t, errors.Join(err, f.Close()))
			return
		}
	}
	g.t.Fatalf("no batch at %d", offset)
}

// A segment with damage stays as it is, to the byte, and what is in quarantine with it. What is
// behind is cleaned, but no tombstone and no marker goes: an older record may be in the damage,
// or in the segment, which still has what is superseded.
func TestCleanLeavesDamage(t *testing.T) {
	for _, when := range []string{"unknown", "known"} {
		g := newLedger(t)
		g.put(kind{}, "a=1", "b=1")
		g.put(kind{producer: 1, txn: true}, "c=1")
		g.put(kind{}, "a=2")
		g.roll()
		g.put(kind{}, "b=2", "d=1")
		g.put(kind{}, "d=2")
		g.roll()
		g.end(1, 0, record.ControlAbort)
		g.put(kind{producer: 1}, "z=1")
		g.put(kind{}, "b", "a", "d=3")
		g.roll()
		g.flip(3, record.HeaderSize+3)
		if when == "known" {
			g.log.SetHighWatermark(g.log.Offsets().End)
			must(t, g.log.Scrub(nil))
		}
		before := g.segment(0)
		for range 3 { // so that tombstones and markers are old enough
			r := g.again()
			if r.Damaged != 1 || len(g.log.Quarantine()) != 1 {
				t.Fatalf("%s: result %+v, quarantine %v", when, r, g.log.Quarantine())
			}
			g.now = g.now.Add(2 * ledgerDelay * time.Millisecond)
		}
		if got := g.segment(0); got != before {
			t.Errorf("%s: segment 0 has changed", when)
		}
		// 2 is aborted, and stays with its segment; the index must still say so.
		if got := join(consume(t, g.log, 4, commitlog.ReadCommitted)); got != "8:z=1 9:b 10:a 11:d=3" {
			t.Errorf("%s: behind the damage %s", when, got)
		}
		r, err := g.log.Read(0, 1<<20, commitlog.ReadCommitted, segment.WholeFirst)
		must(t, err)
		r.Slice.Release()
		if len(r.Aborted) != 1 || r.Aborted[0].FirstOffset != 2 {
			t.Errorf("%s: aborted %v", when, r.Aborted)
		}
		if !strings.Contains(g.batches(), "7-7:1c") {
			t.Errorf("%s: the marker is gone: %s", when, g.batches())
		}
	}
}

// segment returns the bytes of a segment.
func (g *ledger) segment(i int) string {
	s := g.log.Offsets().CleanSegments()[i]
	b, err := vfs.ReadFile(g.fs, s.Path(segment.LogFile), 1<<20)
	must(g.t, err)
	return string(b)
}

// Damage in what is dirty takes no record with it but its own: the last good one of each key
// stays.
func TestCleanDamageInTheMap(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1")
	g.roll()
	g.put(kind{}, "a=2")
	g.put(kind{}, "b=2")
	g.roll()
	g.flip(2, record.HeaderSize+3)
	g.clean()
	got := join(consume(t, g.log, 3, commitlog.ReadUncommitted))
	if all := g.batches(); all != "0-1:1 | 3-3:1 |" || got != "3:b=2" { // a=1 stays
		t.Errorf("batches %s, behind the damage %s", all, got)
	}
}

// Damage that is met when segments are written anew, in what was cleaned before, keeps its own segment as it
// is, and not its neighbours.
func TestCleanDamageInTheRewrite(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1") // 0
	g.roll()
	g.put(kind{}, "c=1", "a=1") // 2
	g.put(kind{}, "d=1", "a=1") // 4
	g.roll()
	g.put(kind{}, "a=2", "a=3") // 6
	g.roll()
	g.flip(2, record.HeaderSize+3)
	g.cleaned = 6
	if r := g.clean(); r.Damaged != 1 || r.Segments != 2 {
		t.Errorf("result %+v", r)
	}
	g.wantBatches("0-1:1 | 4-5:2 | 6-7:1 |")
}

// A batch with a right checksum that makes no sense stays, and so does what it may have
// superseded.
func TestCleanUnreadableBatch(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1")
	bad := record.Batch(g.batch(kind{codec: record.Snappy}, "a=2"))
	bad[record.HeaderSize+20] = 0xff // of the compressed block
	bad = withRightChecksum(bad)
	bad.SetBaseOffset(2)
	_, err := g.log.AppendAsFollower(bad, 0)
	must(t, err)
	g.log.SetHighWatermark(g.log.Offsets().End)
	g.put(kind{}, "b=2")
	g.roll()
	g.clean()
	g.wantBatches("0-1:1 2-2:1 3-3:1 |")
}

// withRightChecksum computes the checksum of a batch anew, by way of a stamp that changes it.
func withRightChecksum(b record.Batch) record.Batch {
	was := b.MaxTimestamp()
	b.SetMaxTimestamp(record.CreateTime, was+1)
	b.SetMaxTimestamp(record.CreateTime, was)
	return b
}

// A cleaning ends at once when it is told to; what was written is removed.
func TestCleanAborted(t *testing.T) {
	g := crashHistory(t, false)
	files := g.files()
	ctx, cancel := context.WithCancel(t.Context())
	g.fs.SetHook(func(op vfs.Op) error {
		if strings.HasSuffix(op.Name, segment.CleanedSuffix) {
			cancel()
		}
		return nil
	})
	if _, err := g.tryClean(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	g.fs.SetHook(nil)
	if got := g.files(); got != files {
		t.Errorf("files\n%s\nwant\n%s", got, files)
	}
	g.clean()
}

// A truncation while a log is cleaned takes away what the map was made from.
func TestCleanTruncatedMeanwhile(t *testing.T) {
	g := crashHistory(t, false)
	before := g.records()
	truncated := false
	g.fs.SetHook(func(op vfs.Op) error {
		if strings.HasSuffix(op.Name, segment.CleanedSuffix) && op.Kind == vfs.OpSync && !truncated {
			truncated = true
			return g.log.TruncateTo(g.log.Offsets().End - 1)
		}
		return nil
	})
	if _, err := g.tryClean(t.Context()); !errors.Is(err, commitlog.ErrSegmentsChanged) {
		t.Errorf("got %v", err)
	}
	g.fs.SetHook(nil)
	if got := g.records(); !strings.HasPrefix(before, got) {
		t.Errorf("records %s, before %s", got, before)
	}
	must(t, g.log.Check())
	g.clean()
}
