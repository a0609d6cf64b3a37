package segment

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A crashModel does random things to a segment, with a crash at random operations of the file
// system, and knows what has to be there afterwards.
type crashModel struct {
	t   *testing.T
	rng *rand.Rand
	m   *vfs.Mem
	s   *Segment

	next    int64 // offset to append
	flushed int64 // all below was flushed and not truncated since
	created bool  // the files have been flushed once
}

// TestCrash: what was flushed is there after a crash, the rest is a prefix of what was appended,
// and the segment passes Check and takes appends.
func TestCrash(t *testing.T) {
	rounds := uint64(300)
	if testing.Short() {
		rounds = 50
	}
	for seed := range rounds {
		m := newFS(t)
		c := &crashModel{t: t, rng: rand.New(rand.NewPCG(seed, 99)), m: m}
		c.s = create(t, m, 0, smallConfig())
		c.arm()
		for range 40 {
			c.step()
		}
		m.SetHook(nil)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// arm lets a clone of the file system be checked before one of the next operations.
func (c *crashModel) arm() {
	left := c.rng.IntN(30)
	c.m.SetHook(func(op vfs.Op) error {
		if op.Kind.Changes() {
			left--
		}
		if left == 0 {
			c.checkCrash(op.String())
			left = 1 + c.rng.IntN(30)
		}
		return nil
	})
}

func (c *crashModel) step() {
	switch c.rng.IntN(12) {
	default:
		count := 1 + c.rng.IntN(4)
		must(c.t, c.s.Append(batch(c.t, c.next, count, t0+c.next, c.rng.IntN(2000))))
		c.next += int64(count)
	case 0, 1, 2:
		must(c.t, c.s.Flush())
		c.flushed, c.created = c.next, true
	case 3:
		must(c.t, c.s.Seal())
		must(c.t, c.s.Flush())
		c.flushed, c.created = c.next, true
	case 4:
		c.truncate()
	}
}

func (c *crashModel) truncate() {
	offset := c.rng.Int64N(c.next + 1)
	c.flushed = min(c.flushed, offset)
	if p, ok, err := c.s.Translate(offset, 0); ok && err == nil {
		c.flushed = min(c.flushed, p.BaseOffset)
	}
	_, err := c.s.TruncateTo(offset)
	must(c.t, err)
	c.next, err = c.s.NextOffset()
	must(c.t, err)
}

// checkCrash recovers what a crash leaves.
func (c *crashModel) checkCrash(at string) {
	if !c.created {
		return
	}
	after := c.m.CrashClone(c.rng)
	s, err := Open(after, testDir, 0, smallConfig())
	if err != nil {
		c.t.Errorf("crash at %s: %v", at, err)
		return
	}
	if _, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil); err != nil {
		c.t.Errorf("crash at %s: recover: %v", at, err)
	}
	if err := s.Check(); err != nil {
		c.t.Errorf("crash at %s: check: %v", at, err)
	}
	next, err := s.NextOffset()
	if err != nil || next < c.flushed {
		c.t.Errorf("crash at %s: next offset %d, %v, but %d was flushed", at, next, err, c.flushed)
	}
	if err := s.Append(batch(c.t, next, 1, t0, 10)); err != nil {
		c.t.Errorf("crash at %s: append: %v", at, err)
	}
	if err := errors.Join(s.Check(), s.Close()); err != nil {
		c.t.Errorf("crash at %s: %v", at, err)
	}
}

// TestCrashAfterClose: a segment that was closed opens as it was, whatever crashes then.
func TestCrashAfterClose(t *testing.T) {
	for seed := range uint64(20) {
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		fill(t, s, 30)
		must(t, s.AppendAborted(AbortedTxn{1, 2, 9, 10}))
		if seed%2 == 0 {
			_, err := s.TruncateTo(20)
			must(t, err)
		}
		must(t, s.Close())
		after := m.CrashClone(rand.New(rand.NewPCG(seed, 1)))
		again := open(t, after, 0, smallConfig())
		checkLookups(t, again)
		if again.Size() != s.Size() || again.idx.Load().built {
			t.Errorf("seed %d: size %d, want %d; index built %v", seed, again.Size(), s.Size(), again.idx.Load().built)
		}
		if list, _, err := again.Aborted(0, 100); len(list) != 1 || err != nil {
			t.Errorf("seed %d: aborted %v, %v", seed, list, err)
		}
	}
}

// TestFlushFails: an error of a sync is passed on, and the next Flush syncs again.
func TestFlushFails(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 10)
	broken := errors.New("io error")
	for _, kind := range []vfs.OpKind{vfs.OpSync, vfs.OpSyncDir} {
		syncs := 0
		m.SetHook(func(op vfs.Op) error {
			if op.Kind == kind {
				syncs++
				return broken
			}
			return nil
		})
		for range 2 {
			if err := s.Flush(); !errors.Is(err, broken) {
				t.Errorf("%v: got %v", kind, err)
			}
		}
		if syncs != 2 {
			t.Errorf("%v: tried %d times, want 2", kind, syncs)
		}
	}
	m.SetHook(nil)
	must(t, s.Flush())
}

// TestFlushOfActiveSyncsTheLogOnly: with a writer a flush is one sync, and none without news.
func TestFlushOfActiveSyncsTheLogOnly(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	must(t, s.Flush())
	fill(t, s, 10)
	var ops []string
	m.SetHook(func(op vfs.Op) error {
		if op.Kind.Changes() {
			ops = append(ops, op.String())
		}
		return nil
	})
	must(t, s.Flush())
	must(t, s.Flush())
	if want := "sync " + s.Path(LogFile); len(ops) != 1 || ops[0] != want {
		t.Errorf("got %v, want [%s]", ops, want)
	}
}

// TestReadBesideAppend has readers that take every size they load at its word.
func TestReadBesideAppend(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Indexes = NewIndexCache(1)
	s := create(t, m, 0, cfg)
	other := create(t, m, 1_000_000, cfg)
	must(t, other.Append(batch(t, 1_000_000, 1, t0, 10)))
	const records = 4000
	var next struct {
		sync.Mutex
		offset int64
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 5))
			for {
				next.Lock()
				end := next.offset
				next.Unlock()
				select {
				case <-done:
					return
				default:
				}
				if end > 0 {
					if err := readOne(s, rng.Int64N(end)); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := other.NextOffset(); err != nil { // takes the descriptor away
					t.Error(err)
				}
			}
		})
	}
	for o := int64(0); o < records; o += 2 {
		must(t, s.Append(batch(t, o, 2, t0+o, 50)))
		next.Lock()
		next.offset = o + 2
		next.Unlock()
		switch {
		case o%1000 == 998:
			must(t, s.Seal())
		case o%100 == 0:
			must(t, s.Flush())
		}
	}
	close(done)
	wg.Wait()
}

func readOne(s *Segment, offset int64) error {
	sl, err := s.Read(offset, 500, s.Size(), WholeFirst)
	if err != nil {
		return err
	}
	defer sl.Release()
	b := make([]byte, sl.First().Size)
	if _, err := sl.ReadAt(b, 0); err != nil {
		return err
	}
	batch := record.Batch(b)
	if err := batch.Verify(); err != nil {
		return err
	}
	if batch.BaseOffset() > offset || batch.LastOffset() < offset {
		return fmt.Errorf("read %d: got batch %d-%d", offset, batch.BaseOffset(), batch.LastOffset())
	}
	r, ok, err := s.OffsetByTimestamp(t0+offset, 0)
	if err != nil || !ok || r.Offset != offset {
		return fmt.Errorf("time of %d: got %+v, %v, %w", offset, r, ok, err)
	}
	return nil
}

// TestNoAllocations: the hot paths, on the real file system and in memory.
func TestNoAllocations(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"mem": newFS(t), "os": vfs.OS} {
		dir := testDir
		if name == "os" {
			dir = t.TempDir()
		}
		s, err := Create(fsys, dir, 0, Config{IndexIntervalBytes: 100}, time.Now())
		must(t, err)
		fill(t, s, 2000)
		rng := rand.New(rand.NewPCG(1, 1))
		end := s.Size()
		f := func(what string, call func()) {
			t.Helper()
			if n := testing.AllocsPerRun(200, call); n != 0 {
				t.Errorf("%s: %s: %v allocations", name, what, n)
			}
		}
		f("Read", func() {
			sl, err := s.Read(rng.Int64N(2000), 1<<20, end, WholeFirst)
			if err != nil {
				t.Error(err)
			}
			sl.Release()
		})
		f("Translate", func() {
			if _, ok, err := s.Translate(rng.Int64N(2000), 0); !ok || err != nil {
				t.Error(ok, err)
			}
		})
		f("UpperBound", func() { s.UpperBound(rng.Int64N(end), 1000) })
		f("Aborted", func() {
			if _, _, err := s.Aborted(0, 100); err != nil {
				t.Error(err)
			}
		})
		if name == "os" { // a write to memory allocates
			b := record.Batch(batch(t, 2000, 1, t0, 20))
			next := int64(2000)
			f("Append", func() {
				b.SetBaseOffset(next)
				next++
				must(t, s.Append(b))
			})
		}
		must(t, s.Close())
	}
}
