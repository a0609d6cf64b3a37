package cleaner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// idleShelf has a Manager whose thread finds no log, and looks again after the back-off only.
func idleShelf(t *testing.T) (*shelf, *Manager) {
	s := newShelf(t)
	return s, s.start(testManagerConfig())
}

func TestCleanNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := idleShelf(t)
		c := compactedOnRequest()
		c.DeleteRetentionMs = 1000
		l := s.add("/a", orders0, c)
		s.fill(l, 10, 3)
		s.append(l, "k0", "")
		clean := func(roll bool, keys int, from, to int64, removed Removed) {
			t.Helper()
			out, err := m.CleanNow(t.Context(), orders0, roll)
			must(t, err)
			if got := keyCount(t, l); got != keys || out.FirstDirty != from || out.EndOffset != to || out.Removed != removed || !out.Forced || out.RecordsKept > int64(keys) {
				t.Errorf("%d keys, want %d; outcome %+v, want [%d,%d) and %+v", got, keys, out, from, to, removed)
			}
			if got := m.checkpoints.get("/a", orders0); got != to {
				t.Errorf("checkpoint %d, want %d", got, to)
			}
		}
		clean(false, 11, 0, 30, Removed{Superseded: 20})
		clean(true, 10, 30, 31, Removed{Superseded: 1})
		clean(false, 10, 0, 31, Removed{}) // everything again
		time.Sleep(2 * time.Second)
		clean(false, 9, 0, 31, Removed{Tombstones: 1})
		s.append(l, "k1", "new")
		clean(true, 9, 31, 32, Removed{Superseded: 1})
		if r, err := m.Explain("orders"); err != nil || r.Partitions[0].Last.FirstDirty != 31 {
			t.Errorf("explained: %+v, %v", r, err)
		}
	})
}

func TestCleanNowRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := idleShelf(t)
		f := func(name string, want error) {
			t.Helper()
			if out, err := m.CleanNow(t.Context(), partition(name), false); !errors.Is(err, want) || out != nil {
				t.Errorf("%s: got %+v, %v, want %v", name, out, err, want)
			}
		}
		f("unknown", ErrUnknownPartition)
		c := compacted()
		c.Compact = false
		s.add("/a", partition("deleted"), c)
		f("deleted", ErrNotCompacted)
		c = compactedOnRequest()
		l := s.add("/a", partition("logs"), c)
		s.append(l, "k", "v")
		f("logs", ErrNothingToClean)
		must(t, l.Roll())
		m.Pause(partition("logs"))
		f("logs", ErrPaused)
		m.Resume(partition("logs"))
		c.MinCompactionLagMs = time.Hour.Milliseconds()
		l.SetConfig(c)
		f("logs", ErrNothingToClean)
	})
}

// Records at or above the last stable offset are not touched, whatever the checkpoint says.
func TestCleanNowKeepsToTheLastStableOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := idleShelf(t)
		l := s.add("/a", orders0, compactedOnRequest())
		s.fill(l, 10, 2)
		s.appendBatch(l, record.BuilderOptions{Producer: &record.Producer{ID: 7, Epoch: 1}, Transactional: true},
			record.Record{Timestamp: time.Now().UnixMilli(), Key: []byte("k0"), Value: []byte("open")})
		s.fill(l, 10, 2)
		must(t, m.checkpoints.set("/a", map[topic.Partition]int64{orders0: 41}))
		out, err := m.CleanNow(t.Context(), orders0, true)
		must(t, err)
		if out.EndOffset != 20 || keyCount(t, l) != 31 {
			t.Errorf("%d records, outcome %+v", keyCount(t, l), out)
		}
		if got := m.checkpoints.get("/a", orders0); got != 41 {
			t.Errorf("checkpoint %d, want 41", got)
		}
	})
}

// A map that is too small for the keys makes several rounds, which count as one cleaning. What is
// told of the first ones does not change under its reader.
func TestCleanNowInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		cfg := testManagerConfig()
		cfg.DedupeBytes, cfg.BytesPerSecond = 24*100, 10_000 // 100 slots
		m := s.start(cfg)
		l := s.add("/a", orders0, compactedOnRequest())
		s.fill(l, 300, 1)
		s.fill(l, 300, 1)
		told := make(map[*Outcome]Outcome)
		listen := func() {
			r, err := m.Explain("orders")
			must(t, err)
			if last := r.Partitions[0].Last; last != nil && told[last] == (Outcome{}) {
				told[last] = *last
			}
		}
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		var out *Outcome
		done := make(chan error)
		go func() {
			var err error
			out, err = m.CleanNow(t.Context(), orders0, false)
			done <- err
		}()
		for cleaning := true; cleaning; {
			select {
			case <-ticker.C:
				listen()
			case err := <-done:
				must(t, err)
				cleaning = false
			}
		}
		if keyCount(t, l) != 300 || out.Rounds < 6 || out.FirstDirty != 0 || out.EndOffset != 600 || out.Removed.Superseded != 300 {
			t.Errorf("%d keys, outcome %+v", keyCount(t, l), out)
		}
		if len(told) < 3 {
			t.Errorf("told of %d rounds", len(told))
		}
		for last, was := range told {
			if *last != was {
				t.Errorf("told of %+v, which is %+v now", was, *last)
			}
		}
	})
}

// The last cleaning that was asked for counts among the last ones, also without threads.
func TestCleanNowInStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		l := s.add("/a", orders0, compactedOnRequest())
		s.fill(l, 10, 10)
		cfg := withoutThreads()
		cfg.BytesPerSecond = 1000
		m := s.start(cfg)
		if got := m.Stats(); got.RecopyRatio != 0 || got.MaxCleanTime != 0 || got.MaxUtilization != 0 {
			t.Errorf("before: %+v", got)
		}
		out, err := m.CleanNow(t.Context(), orders0, false)
		must(t, err)
		got := m.Stats()
		if want := float64(out.BytesWritten) / float64(out.BytesRead); got.RecopyRatio != want || want <= 0 {
			t.Errorf("%v of what was read was written, want %v", got.RecopyRatio, want)
		}
		if got.MaxCleanTime.Milliseconds() != out.TookMs || out.TookMs == 0 || got.MaxUtilization != out.MapUtilization {
			t.Errorf("%+v of %+v", got, out)
		}
	})
}

// A forced clean waits for the task of the log, and ends with its context.
func TestCleanNowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, m := slowCleaning(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.CleanNow(ctx, orders0, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		s.append(l, "k0", "later")
		l.SetConfig(compactedOnRequest()) // the thread has enough
		out, err := m.CleanNow(t.Context(), orders0, true)
		must(t, err)
		if out.FirstDirty != 100 || out.EndOffset != 101 || keyCount(t, l) != 10 {
			t.Errorf("%d keys, outcome %+v", keyCount(t, l), out)
		}
	})
}

// A pause ends a forced clean, as any other.
func TestCleanNowAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.fill(s.add("/a", orders0, compactedOnRequest()), 10, 10)
		m := s.start(slow())
		done := make(chan error)
		go func() {
			_, err := m.CleanNow(t.Context(), orders0, false)
			done <- err
		}()
		time.Sleep(time.Second)
		m.Pause(orders0)
		if err := <-done; !errors.Is(err, ErrAborted) {
			t.Errorf("got %v", err)
		}
		m.Resume(orders0)
	})
}

// A log that was set aside is tried again, and used again if that goes well.
func TestCleanNowOfAnUncleanableLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := idleShelf(t)
		l := s.add("/a", orders0, compacted())
		s.fill(l, 10, 2)
		m.failed(orders0, l, "/a", record.ErrCorrupt)
		_, err := m.CleanNow(t.Context(), orders0, false)
		must(t, err)
		if m.uncleanable("/a", orders0) != nil {
			t.Error("still uncleanable")
		}
	})
}

// 50 cleanings under a reader who starts from the beginning each time: no gap, no duplicate, no
// error, and the newest value of every key.
func TestReaderDuringCleanings(t *testing.T) {
	s, m := idleShelf(t)
	c := compactedOnRequest()
	c.SegmentBytes = 4000
	l := s.add("/a", orders0, c)
	s.fill(l, 20, 2)
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := readsWell(t, read(t, l)); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 50 {
		s.fill(l, 20, 1)
		_, err := m.CleanNow(t.Context(), orders0, false)
		must(t, err)
	}
	close(stop)
	must(t, <-done)
}

// readsWell checks that offsets ascend and every key is there.
func readsWell(t *testing.T, records []string) error {
	t.Helper()
	last, keys := int64(-1), make(map[string]bool)
	for _, r := range records {
		var offset int64
		var key string
		if _, err := fmt.Sscanf(r, "%d:%s", &offset, &key); err != nil {
			return err
		}
		if offset <= last {
			return fmt.Errorf("offset %d after %d", offset, last)
		}
		last = offset
		keys[key[:min(len(key), 3)]] = true
	}
	if len(keys) < 20 {
		return fmt.Errorf("%d keys, want 20", len(keys))
	}
	return nil
}
