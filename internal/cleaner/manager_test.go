package cleaner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

func partition(name string) topic.Partition { return topic.Partition{Topic: name} }

// A thread cleans what is due, the filthiest first, and looks again after the back-off.
func TestThreadCleansTheFilthiestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		c := compacted()
		c.MinCleanableRatio = 0.3
		dirty, dirtier, clean := s.add("/a", partition("dirty"), c), s.add("/a", partition("dirtier"), c), s.add("/b", partition("clean"), c)
		for _, l := range []*commitlog.Log{dirty, dirtier, clean} {
			s.fill(l, 10, 10)
		}
		m := s.start(withoutThreads())
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{partition("dirty"): 100, partition("dirtier"): 50}))
		must(t, m.checkpoints.set("/b", map[topic.Partition]int64{partition("clean"): 100}))
		s.fill(dirty, 10, 5)

		found := m.choose(time.Now())
		if found.best == nil || found.best.log != dirtier || found.skipped[SkipNothing] != 1 {
			t.Fatalf("got %+v", found)
		}
		m.Reconfigure(testManagerConfig())
		synctest.Wait()
		if keyCount(t, dirtier) != 10 || keyCount(t, dirty) != 10 {
			t.Errorf("keys: got %d and %d, want 10", keyCount(t, dirtier), keyCount(t, dirty))
		}
		if a, b := m.checkpoints.get("/a", partition("dirty")), m.checkpoints.get("/a", partition("dirtier")); a != 150 || b != 100 {
			t.Errorf("checkpoints: got %d and %d, want 150 and 100", a, b)
		}
		s.fill(clean, 10, 10)
		time.Sleep(14 * time.Second)
		if keyCount(t, clean) != 200 {
			t.Error("cleaned within the back-off")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if keyCount(t, clean) != 10 {
			t.Error("not cleaned after the back-off")
		}
		s2 := m.Stats()
		if s2.Totals.Cleanings != 3 || s2.Totals.Removed.Superseded != 90+140+190 || s2.DeadThreads != 0 || s2.RecopyRatio <= 0 {
			t.Errorf("stats: %+v", s2)
		}
	})
}

// A pause ends the cleaning under way, which leaves the checkpoint alone.
func TestPauseAbortsCleaning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, m := slowCleaning(t)
		m.Pause(orders0)
		if got := m.states.name(orders0); got != "paused" || m.checkpoints.get("/a", orders0) != noCheckpoint || keyCount(t, l) != 100 {
			t.Errorf("state %s, checkpoint %d, %d keys", got, m.checkpoints.get("/a", orders0), keyCount(t, l))
		}
		must(t, m.Truncated("/a", orders0, 50))
		time.Sleep(time.Minute)
		if got := m.states.name(orders0); got != "paused" {
			t.Errorf("state %s under a pause", got)
		}
		m.Resume(orders0)
		time.Sleep(time.Hour)
		if got := m.checkpoints.get("/a", orders0); got != 100 || keyCount(t, l) != 10 {
			t.Errorf("checkpoint %d, %d keys after the pause", got, keyCount(t, l))
		}
		if got := m.Stats().Totals; got.Aborted != 1 || got.Cleanings != 1 {
			t.Errorf("totals %+v", got)
		}
		must(t, m.Truncated("/a", orders0, 50))
		if got := m.checkpoints.get("/a", orders0); got != 50 {
			t.Errorf("checkpoint %d after a truncation to 50", got)
		}
	})
}

// KAFKA-6266, KAFKA-8764, KAFKA-9826, KAFKA-7400, KAFKA-9133: a checkpoint outside the log is
// corrected on disk, and one inside the active segment is no reason to clean for ever.
func TestCheckpointIsCorrected(t *testing.T) {
	f := func(name string, stored, logStart, want int64, cleanings int64) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				l := s.add("/a", orders0, compacted())
				s.fill(l, 10, 10)
				s.append(l, "active", "v")
				must(t, l.IncrementLogStart(logStart))
				must(t, vfs.WriteFileAtomic(s.fs, "/a/"+checkpoint.CleanerOffsets, fmt.Appendf(nil, "0\n2\norders 0 %d\ngone 3 7\n", stored)))
				m := s.start(testManagerConfig())
				time.Sleep(time.Hour)
				if got := m.checkpoints.get("/a", orders0); got != want {
					t.Errorf("checkpoint: got %d, want %d", got, want)
				}
				if got := m.Stats().Totals.Cleanings; got != cleanings {
					t.Errorf("%d cleanings, want %d", got, cleanings)
				}
				text, err := vfs.ReadFile(s.fs, "/a/"+checkpoint.CleanerOffsets, 1<<10)
				must(t, err)
				if want != stored && strings.Contains(string(text), "gone") {
					t.Errorf("an entry of a log that is not there: %q", text)
				}
			})
		})
	}
	f("beyond the end", 1000, 0, 100, 1)
	f("below the start", 10, 55, 100, 1)
	f("start in the active segment", 10, 101, 101, 0)
	f("in the active segment", 101, 0, 101, 0)
	f("clean", 100, 0, 100, 0)
}

// What lies below the log start goes, and with compact,delete what retention gives up, but
// not while the log is paused.
func TestRetentionOfCompactedLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		c := compactedOnRequest()
		only := s.add("/a", partition("only"), c)
		c.Delete, c.RetentionMs = true, time.Hour.Milliseconds()
		both := s.add("/a", partition("both"), c)
		c.Compact = false
		plain := s.add("/a", partition("plain"), c) // is somebody else's to look after
		for _, l := range []*commitlog.Log{only, both, plain} {
			s.fill(l, 10, 1)
			s.fill(l, 10, 1)
			s.append(l, "k", "v")
		}
		m := s.start(testManagerConfig())
		segments := func(wantOnly, wantBoth int) {
			t.Helper()
			synctest.Wait()
			if a, b := only.NumSegments(), both.NumSegments(); a != wantOnly || b != wantBoth {
				t.Errorf("segments: got %d and %d, want %d and %d", a, b, wantOnly, wantBoth)
			}
			if n := plain.NumSegments(); n != 3 {
				t.Errorf("a log that is not compacted has %d segments, want 3", n)
			}
		}
		time.Sleep(30 * time.Minute)
		segments(3, 3)
		m.Pause(partition("only"))
		must(t, only.IncrementLogStart(15))
		time.Sleep(31 * time.Minute)
		segments(3, 1)
		m.Resume(partition("only"))
		time.Sleep(time.Minute)
		segments(2, 1)
		must(t, only.IncrementLogStart(21))
		time.Sleep(time.Minute)
		segments(1, 1)
	})
}

// log.cleaner.enable=false: nothing is cleaned, and compacted logs have no retention.
func TestDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, compacted())
		s.fill(l, 10, 2)
		must(t, l.IncrementLogStart(20))
		c := testManagerConfig()
		c.Enabled = false
		m := s.start(c)
		time.Sleep(time.Hour)
		if n := l.NumSegments(); n != 2 {
			t.Errorf("%d segments", n)
		}
		c.Enabled = true
		m.Reconfigure(c) // it cannot be switched on
		time.Sleep(time.Hour)
		if n := l.NumSegments(); n != 2 {
			t.Errorf("%d segments", n)
		}
	})
}

// Other settings abort what runs and start threads anew.
func TestReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, m := slowCleaning(t)
		m.Reconfigure(slow()) // the same: nothing happens
		if got := m.Stats().Totals.Aborted; got != 0 {
			t.Errorf("%d aborted", got)
		}
		c := testManagerConfig()
		c.Threads = 2
		m.Reconfigure(c)
		synctest.Wait()
		got := m.Stats()
		if keyCount(t, l) != 10 || got.Totals.Aborted != 1 || len(got.Threads) != 2 || got.DeadThreads != 0 {
			t.Errorf("%d keys, stats %+v", keyCount(t, l), got)
		}
	})
}

// Settings that change before the start or behind the end start nothing.
func TestReconfigureWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, compacted())
		s.fill(l, 10, 10)
		c := testManagerConfig()
		c.Threads = 2
		m := NewManager(ManagerOptions{FS: s.fs, Config: testManagerConfig()})
		m.Reconfigure(c)
		synctest.Wait()
		if got := m.Stats(); len(got.Threads) != 0 || keyCount(t, l) != 100 {
			t.Errorf("before the start: %d keys, stats %+v", keyCount(t, l), got)
		}
		m.Start(s)
		m.Close()
		s.fill(l, 10, 10)
		before := keyCount(t, l)
		m.Reconfigure(testManagerConfig())
		time.Sleep(time.Hour)
		if got := keyCount(t, l); got != before {
			t.Errorf("behind the end: %d keys, want %d", got, before)
		}
	})
}

// A log that went, or whose place another one has, is not taken for a cleaning, and keeps no state of one.
func TestCleaningOfALogThatWent(t *testing.T) {
	s := newShelf(t)
	l := s.add("/a", orders0, compacted())
	other := s.add("/a", partition("other"), compacted())
	m := s.start(withoutThreads())
	f := func(there *commitlog.Log, want bool) {
		t.Helper()
		s.remove(orders0)
		if there != nil {
			s.logs[orders0] = placed{there, "/a"}
		}
		c := m.newCleaning(t.Context(), l, "/a", compaction.Plan{})
		defer c.cancel()
		got := m.begin(c)
		if got {
			m.states.end(orders0, &c.task)
		}
		if got != want || m.states.name(orders0) != "idle" {
			t.Errorf("got %v, want %v; state %s", got, want, m.states.name(orders0))
		}
	}
	f(l, true)
	f(other, false)
	f(nil, false)
}

func TestCloseAbortsCleaning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, m := slowCleaning(t)
		m.Close()
		if m.states.name(orders0) != "idle" || keyCount(t, l) != 100 {
			t.Errorf("state %s, %d keys", m.states.name(orders0), keyCount(t, l))
		}
		if _, err := m.CleanNow(context.Background(), orders0, false); !errors.Is(err, ErrClosed) {
			t.Errorf("forced: %v", err)
		}
		m.Pause(orders0)
		m.Resume(orders0)
	})
}

// An error of the disk takes its directory offline.
func TestDiskErrorFailsTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, compacted())
		s.fill(l, 10, 10)
		broken := errors.New("disk on fire")
		s.fs.SetHook(func(op vfs.Op) error {
			if strings.HasSuffix(op.Name, ".cleaned") {
				return broken
			}
			return nil
		})
		m := s.start(testManagerConfig())
		synctest.Wait()
		if got := s.failure("/a"); !errors.Is(got, broken) {
			t.Errorf("got %v", got)
		}
		m.DirFailed("/a", orders0)
		s.remove(orders0)
		s.fs.SetHook(nil)
		if got := m.Stats(); got.Totals.Failed != 1 || len(got.Uncleanable) != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

// What an error of a cleaning means.
func TestFailed(t *testing.T) {
	s := newShelf(t)
	l := s.add("/a", orders0, compacted())
	other := s.add("/a", partition("other"), compacted())
	m := s.start(withoutThreads())
	f := func(name string, l *commitlog.Log, err error, offline, uncleanable bool) {
		t.Helper()
		m.failed(orders0, l, "/a", err)
		if got := s.failure("/a") != nil; got != offline {
			t.Errorf("%s: directory offline: %v", name, got)
		}
		if got := m.uncleanable("/a", orders0) != nil; got != uncleanable {
			t.Errorf("%s: uncleanable: %v", name, got)
		}
		delete(s.failed, "/a")
		delete(m.mu.uncleanable, "/a")
	}
	f("damage", l, fmt.Errorf("x: %w", record.ErrCorrupt), false, true)
	f("no progress", l, errNoProgress, false, true)
	f("disk", l, &fs.PathError{Op: "read", Path: "x", Err: fs.ErrPermission}, true, false)
	f("no room", l, &commitlog.DiskFullError{Op: "clean"}, false, false)
	f("changed", l, commitlog.ErrSegmentsChanged, false, false)
	f("another log has its place", other, record.ErrCorrupt, false, false)
}

// A log that is set aside is not chosen; it follows the log to another directory, and is
// dropped with it.
func TestUncleanable(t *testing.T) {
	s := newShelf(t)
	s.fill(s.add("/a", orders0, compacted()), 10, 2)
	must(t, vfs.MkdirAll(s.fs, "/b", 0o755))
	m := s.start(withoutThreads())
	l, _ := s.Place(orders0)
	m.failed(orders0, l, "/a", record.ErrCorrupt)
	if found := m.choose(time.Now()); found.best != nil || found.skipped[SkipUncleanable] != 1 {
		t.Errorf("got %+v", found)
	}
	if got := m.Stats(); got.Uncleanable["/a"] != 1 || got.UncleanableBytes["/a"] == 0 {
		t.Errorf("stats %+v", got)
	}
	m.Pause(orders0)
	must(t, m.Carry(orders0, "/a", "/b"))
	must(t, m.Forget("/a", orders0))
	m.Resume(orders0)
	if m.uncleanable("/a", orders0) != nil || m.uncleanable("/b", orders0) == nil {
		t.Error("the mark did not move")
	}
	must(t, m.Forget("/b", orders0))
	if m.uncleanable("/b", orders0) != nil {
		t.Error("the mark stays behind")
	}
}
