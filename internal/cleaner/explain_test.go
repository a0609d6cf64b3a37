package cleaner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/record"
)

// explained is the text of a report without the first line, which has sizes of files.
func explained(t *testing.T, m *Manager, name string) string {
	t.Helper()
	r, err := m.Explain(name)
	must(t, err)
	encoded, err := json.Marshal(r) // what the broker sends and the command shows
	must(t, err)
	var sent Report
	must(t, json.Unmarshal(encoded, &sent))
	var b strings.Builder
	must(t, sent.WriteText(&b, time.Now()))
	return b.String()
}

func wantLine(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
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
		wantLine(t, explained(t, m, "transaction"),
			"  held back  402 B from offset 2 on: last stable offset 2, by a transaction of producer 4000 (epoch 3) open since 2000-01-01T00:00:00Z (1h30m ago)",
			"  dirty      332 B that a cleaning may go through, offsets 0 to 2",
			"  next       due, cleaned as soon as a thread is free")

		l = s.add("/a", partition("replicas"), config)
		s.fill(l, 2, 1)
		s.fill(l, 2, 1)
		l.SetHighWatermark(1)
		wantLine(t, explained(t, m, "replicas"),
			"  held back  664 B from offset 0 on: high watermark 1, replicas are behind",
			"  next       not due: what is dirty is held back")

		config.MinCompactionLagMs = time.Hour.Milliseconds()
		l = s.add("/a", partition("young"), config)
		s.fill(l, 2, 1)
		time.Sleep(10 * time.Minute)
		wantLine(t, explained(t, m, "young"), "  held back  332 B from offset 0 on: min.compaction.lag.ms, over in 50m0s")

		config.MinCompactionLagMs, config.MaxCompactionLagMs = 0, 2*time.Hour.Milliseconds()
		l = s.add("/a", partition("late"), config)
		s.fill(l, 2, 2)
		s.fill(l, 2, 1)
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{partition("late"): 4}))
		wantLine(t, explained(t, m, "late"),
			"  ratio      0.33 dirty, limit 0.50 (min.cleanable.dirty.ratio): 333 B more to go",
			"  next       not due: dirty ratio not above min.cleanable.dirty.ratio; due anyway in 2h0m (max.compaction.lag.ms)",
			"cleaner  off (log.cleaner.threads=0): nothing is compacted, and compacted topics have no retention")

		m.Pause(partition("late"))
		wantLine(t, explained(t, m, "late"), "  next       paused: the log is being moved, truncated or deleted")
		m.Resume(partition("late"))
		m.failed(partition("late"), l, "/a", fmt.Errorf("segment 0: %w", record.ErrCorrupt))
		wantLine(t, explained(t, m, "late"), "  next       uncleanable until the next start or a forced clean: segment 0: corrupt")

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
		f := func(want string) {
			t.Helper()
			wantLine(t, explained(t, m, "orders"), "  ratio      "+want)
		}
		f("0.00 dirty, limit 0.50 (min.cleanable.dirty.ratio): the next segment that is not held back is enough")
		s.append(l, "k", "v") // active, so that it is held back
		f("0.00 dirty, limit 0.50 (min.cleanable.dirty.ratio): the next segment that is not held back is enough")
		must(t, l.Roll())
		f("1.00 dirty, limit 0.50 (min.cleanable.dirty.ratio)")
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{orders0: 1}))
		f("0.00 dirty, limit 0.50 (min.cleanable.dirty.ratio): 71 B more to go")
		c.MinCleanableRatio = 0
		l.SetConfig(c)
		f("0.00 dirty, limit 0.00 (min.cleanable.dirty.ratio): the next segment that is not held back is enough")
		c.MinCleanableRatio = 1
		l.SetConfig(c)
		f("0.00 dirty, limit 1.00 (min.cleanable.dirty.ratio)")
	})
}

// A cleaning under way says how far it is, and is told afterwards with what it removed.
func TestExplainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, m := slowCleaning(t)
		time.Sleep(time.Second)
		text := explained(t, m, "orders")
		wantLine(t, text, "  next       cleaning")
		if !strings.Contains(text, "  running    map, ") || !strings.Contains(text, "cleaner  1 threads, 1 at work, nothing else is due") {
			t.Errorf("got\n%s", text)
		}
		stats := m.Stats()
		if got := stats.Threads[0]; got.Partition != "orders-0" || !got.Alive || got.Progress.ReadTotal != l.Size() {
			t.Errorf("thread: %+v", got)
		}
		time.Sleep(time.Hour)
		text = explained(t, m, "orders")
		if !strings.Contains(text, "offsets 0 to 100 cleaned in ") {
			t.Errorf("got\n%s", text)
		}
		wantLine(t, text, "             10 records kept; removed: 90 superseded by later ones")
		if got := m.Stats(); got.MaxCleanTime < time.Second || got.MaxUtilization <= 0 || got.MaxDirtyRatio != 0 || got.Skipped[SkipNothing] != 1 {
			t.Errorf("stats: %+v", got)
		}
	})
}

func TestProgressReport(t *testing.T) {
	var p Progress
	plan := &Plan{CleanedBytes: 300, DirtyBytes: 100}
	f := func(elapsed time.Duration, want ProgressReport) {
		t.Helper()
		if d := cmp.Diff(want, p.report(plan, elapsed)); d != "" {
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
	if got, text := want.Done(), want.Text(); got < 0.22 || got > 0.23 || text != "rewrite, 23% after 2s, 50 B/s, 7s left" {
		t.Errorf("done %v, %q", got, text)
	}
}

func TestWords(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(bytesText(0), "0 B")
	f(bytesText(1023), "1023 B")
	f(bytesText(1024), "1.0 KiB")
	f(bytesText(1536<<20), "1.5 GiB")
	f(durationText(-1), "0s")
	f(durationText(1500*time.Microsecond), "2ms")
	f(durationText(90*time.Second), "1m30s")
	f(durationText(25*time.Hour+30*time.Minute), "1d1h")
	f(agoText(-time.Second), "in the future")
	r := Removed{1, 2, 3, 4, 5}
	f(r.text(), "1 superseded by later ones, 2 tombstones older than delete.retention.ms, 3 of aborted transactions, 4 without key, 5 transaction markers")
	f((&Removed{}).text(), "none")
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
