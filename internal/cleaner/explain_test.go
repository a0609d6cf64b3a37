package cleaner

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// explained is the report on the only partition of a topic.
func explained(t *testing.T, m *Manager, name string) PartitionReport {
	t.Helper()
	r, err := m.Explain(name)
	must(t, err)
	if len(r.Partitions) != 1 {
		t.Fatalf("%s has %d partitions", name, len(r.Partitions))
	}
	return r.Partitions[0]
}

// held says what is held back, by whom and until when.
func held(p PartitionReport) string {
	s := fmt.Sprintf("%d B from %d on: %s", p.HeldBytes, p.FirstUncleanable, p.Limit)
	if x := p.Transaction; x != nil {
		s += fmt.Sprintf(" of %d (epoch %d) at %d since %s", x.ProducerID, x.ProducerEpoch, x.FirstOffset, x.Since.UTC().Format(time.RFC3339))
	}
	if p.YoungUntil != nil {
		s += " until " + p.YoungUntil.UTC().Format(time.RFC3339)
	}
	return s
}

// next says whether a log is due.
func next(p PartitionReport) string {
	s := p.State
	if p.Due {
		s += ", due"
	}
	if p.Skip != "" {
		s += ", " + string(p.Skip)
	}
	if p.OverdueAt != nil {
		s += ", overdue at " + p.OverdueAt.UTC().Format(time.RFC3339)
	}
	return s
}

// Who holds back what may not be cleaned.
func TestExplainWhoHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		m := s.start(withoutThreads())
		config := compacted()
		config.MinCleanableRatio = 0.5

		l := s.add("/a", partition("transaction"), config)
		s.fill(l, 2, 1)
		s.appendBatch(l, record.BuilderOptions{Producer: &record.Producer{ID: 4000, Epoch: 3}, Transactional: true},
			record.Record{Timestamp: time.Now().UnixMilli(), Key: []byte("k"), Value: []byte("v")})
		time.Sleep(90 * time.Minute)
		s.fill(l, 2, 1)
		f := func(p PartitionReport, wantHeld, wantNext string) {
			t.Helper()
			if held(p) != wantHeld || next(p) != wantNext {
				t.Errorf("got %q, %q, want %q, %q", held(p), next(p), wantHeld, wantNext)
			}
		}
		p := explained(t, m, "transaction")
		f(p, "402 B from 2 on: open transaction of 4000 (epoch 3) at 2 since 2000-01-01T00:00:00Z", "idle, due")
		if p.CleanableBytes != 332 || p.FirstDirty != 0 || p.LastStable != 2 {
			t.Errorf("got %+v", p)
		}

		l = s.add("/a", partition("replicas"), config)
		s.fill(l, 2, 1)
		s.fill(l, 2, 1)
		l.SetHighWatermark(1)
		p = explained(t, m, "replicas")
		f(p, "664 B from 0 on: high watermark", "idle, what is dirty is held back")
		if p.HighWatermark != 1 {
			t.Errorf("high watermark %d, want 1", p.HighWatermark)
		}

		config.MinCompactionLagMs = time.Hour.Milliseconds()
		l = s.add("/a", partition("young"), config)
		s.fill(l, 2, 1)
		time.Sleep(10 * time.Minute)
		f(explained(t, m, "young"), "332 B from 0 on: min.compaction.lag.ms until 2000-01-01T02:30:00Z", "idle, what is dirty is held back")

		config.MinCompactionLagMs, config.MaxCompactionLagMs = 0, 2*time.Hour.Milliseconds()
		l = s.add("/a", partition("late"), config)
		s.fill(l, 2, 2)
		s.fill(l, 2, 1)
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{partition("late"): 4}))
		const late = "0 B from 6 on: active segment"
		f(explained(t, m, "late"), late, "idle, dirty ratio not above min.cleanable.dirty.ratio, overdue at 2000-01-01T03:40:00Z")

		m.Pause(partition("late"))
		f(explained(t, m, "late"), late, "paused, something is under way or it is paused, overdue at 2000-01-01T03:40:00Z")
		m.Resume(partition("late"))
		m.failed(partition("late"), l, "/a", fmt.Errorf("segment 0: %w", record.ErrCorrupt))
		p = explained(t, m, "late")
		f(p, late, "idle, uncleanable, overdue at 2000-01-01T03:40:00Z")
		if p.Uncleanable != "segment 0: corrupt" {
			t.Errorf("got %q", p.Uncleanable)
		}

		if _, err := m.Explain("nothing"); !errors.Is(err, ErrUnknownPartition) {
			t.Errorf("got %v", err)
		}
	})
}

// What is missing until the ratio is reached.
func TestExplainRatio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		m := s.start(withoutThreads())
		c := compacted()
		c.MinCleanableRatio = 0.5
		l := s.add("/a", orders0, c)
		f := func(ratio, limit float64, missing int64) {
			t.Helper()
			if p := explained(t, m, "orders"); p.DirtyRatio != ratio || p.MinDirtyRatio != limit || p.MissingBytes != missing {
				t.Errorf("%v dirty, limit %v, %d more to go; want %v, %v, %d", p.DirtyRatio, p.MinDirtyRatio, p.MissingBytes, ratio, limit, missing)
			}
		}
		f(0, 0.5, 1)
		s.append(l, "k", "v") // active, so that it is held back
		f(0, 0.5, 1)
		must(t, l.Roll())
		f(1, 0.5, 0)
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{orders0: 1}))
		f(0, 0.5, 71)
		c.MinCleanableRatio = 0
		l.SetConfig(c)
		f(0, 0, 1)
		c.MinCleanableRatio = 1
		l.SetConfig(c)
		f(0, 1, 0)
	})
}

// A cleaning under way says how far it is, and is told afterwards with what it removed.
func TestExplainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, m := slowCleaning(t)
		time.Sleep(time.Second)
		r, err := m.Explain("orders")
		must(t, err)
		if p := r.Partitions[0]; p.State != "cleaning" || p.Progress == nil || p.Progress.Phase != "map" {
			t.Errorf("got %+v", p)
		}
		if c := r.Cleaner; c.Threads != 1 || len(c.Running) != 1 || c.Next != nil {
			t.Errorf("got %+v", c)
		}
		stats := m.Stats()
		if got := stats.Threads[0]; got.Partition != "orders-0" || !got.Alive || got.Progress.ReadTotal != l.Size() {
			t.Errorf("thread: %+v", got)
		}
		time.Sleep(time.Hour)
		last := explained(t, m, "orders").Last
		if last == nil || last.FirstDirty != 0 || last.EndOffset != 100 || last.RecordsKept != 10 || last.Removed != (Removed{Superseded: 90}) {
			t.Errorf("got %+v", last)
		}
		if got := m.Stats(); got.MaxCleanTime < time.Second || got.MaxUtilization <= 0 || got.MaxDirtyRatio != 0 || got.Skipped[SkipNothing] != 1 {
			t.Errorf("stats: %+v", got)
		}
	})
}

func TestProgressReport(t *testing.T) {
	var p compaction.Progress
	plan := &compaction.Plan{CleanedBytes: 300, DirtyBytes: 100}
	f := func(elapsed time.Duration, want ProgressReport) {
		t.Helper()
		if d := cmp.Diff(want, reportProgress(&p, plan, elapsed)); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	f(0, ProgressReport{Phase: "map", MapTotal: 100, ReadTotal: 400, RemainingMs: -1})
	p.MapBytes.Store(50)
	f(time.Second, ProgressReport{Phase: "map", MapBytes: 50, MapTotal: 100, ReadTotal: 400, ElapsedMs: 1000, BytesPerSecond: 50, RemainingMs: 9000})
	p.MapBytes.Store(40) // the map was full
	p.ReadBytes.Store(60)
	p.WrittenBytes.Store(20)
	p.Records.Store(3)
	want := ProgressReport{Phase: "rewrite", MapBytes: 40, MapTotal: 40, ReadBytes: 60, ReadTotal: 400, WrittenBytes: 20, Records: 3,
		ElapsedMs: 2000, BytesPerSecond: 50, RemainingMs: 6800}
	f(2*time.Second, want)
	if got := want.Done(); got < 0.22 || got > 0.23 {
		t.Errorf("done %v", got)
	}
}

// KAFKA-13194: the high watermark lies in a sealed segment. Nothing at or above it is cleaned, and
// a value that is not committed yet does not shadow the one that is.
func TestKAFKA13194(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, compacted())
		s.fill(l, 2, 2) // 0 to 3
		s.append(l, "k0", "committed")
		must(t, l.Roll())
		s.append(l, "k0", "not committed")
		s.fill(l, 2, 1)
		l.SetHighWatermark(5)
		m := s.start(testManagerConfig())
		time.Sleep(time.Hour)
		if got := m.checkpoints.get("/a", orders0); got != 5 {
			t.Errorf("clean to %d, want the high watermark, 5", got)
		}
		if d := cmp.Diff([]string{"3:k1=3-1-", "4:k0=committed"}, read(t, l)); d != "" {
			t.Errorf("below the high watermark (-want +got)\n%s", d)
		}
		l.SetHighWatermark(l.Offsets().End)
		time.Sleep(time.Hour)
		if d := cmp.Diff([]string{"6:k0=6-0-", "7:k1=7-0-"}, read(t, l)); d != "" {
			t.Errorf("when all is committed (-want +got)\n%s", d)
		}
	})
}

// A topic that is compacted no more is left alone from then on; one that becomes compacted is
// cleaned at the next look.
func TestPolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, commitlog.DefaultConfig())
		s.fill(l, 10, 2)
		m := s.start(testManagerConfig())
		time.Sleep(time.Minute)
		if got := keyCount(t, l); got != 20 {
			t.Errorf("%d records of a topic that is not compacted", got)
		}
		l.SetConfig(compacted())
		time.Sleep(time.Minute)
		if got := keyCount(t, l); got != 10 {
			t.Errorf("%d records of a topic that is compacted now", got)
		}
		l.SetConfig(commitlog.DefaultConfig())
		s.fill(l, 10, 1)
		time.Sleep(time.Minute)
		if got := keyCount(t, l); got != 20 {
			t.Errorf("%d records of a topic that is compacted no more", got)
		}
		if r, err := m.Explain("orders"); err != nil || r.Partitions[0].Compacted {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
