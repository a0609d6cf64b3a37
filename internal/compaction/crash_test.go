package compaction

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// crashHistory is a log of several small segments, of which a cleaning makes two groups.
func crashHistory(t *testing.T, lazy bool) *ledger {
	g := newLedger(t, func(c *commitlog.Config) { c.SegmentBytes, c.IndexIntervalBytes = 600, 100 })
	g.lazy = lazy
	g.put(kind{producer: 1}, "a=1", "b=1")
	for range 3 {
		g.put(kind{producer: 2, txn: true}, "a=x", "q=x")
		g.end(2, 0, record.ControlAbort)
		g.put(kind{}, "a=2", "b=2", "c=2", "d=2")
		g.roll()
		g.put(kind{}, "a", "e=3")
		g.put(kind{producer: 1, codec: record.Snappy}, "f=1", "g=1")
		g.roll()
	}
	g.put(kind{}, "z=1")
	return g
}

// TestCleanCrash loses power at every operation of a cleaning, and lets different things reach
// the disk. Each time the last record of each key is there. Without a flush before that is so
// from the first output on: no record may be lost for which an older one has gone.
func TestCleanCrash(t *testing.T) {
	for _, flushed := range []bool{true, false} {
		for seed := range uint64(5) {
			g := crashHistory(t, !flushed)
			if flushed {
				must(t, g.log.Flush())
			}
			c := crashCheck{ledger: g, bound: g.plan().FirstUncleanable, sure: flushed}
			c.appended = consume(t, g.log, 0, commitlog.ReadCommitted)
			ops := 0
			g.fs.SetHook(func(op vfs.Op) error {
				if op.Kind.Changes() {
					ops++
					c.sure = c.sure || strings.HasSuffix(op.Name, segment.CleanedSuffix)
					if c.recoveryPoint = 0; ops%2 == 0 { // or the checkpoint is as new as can be
						c.recoveryPoint = g.log.RecoveryPoint()
					}
					if err := c.check(g.fs.CrashClone(rand.New(rand.NewPCG(seed, uint64(ops))))); err != nil {
						t.Errorf("flushed %v, seed %d, crash before %v: %v", flushed, seed, op, err)
						return err
					}
				}
				return nil
			})
			g.clean()
			g.fs.SetHook(nil)
			must(t, c.check(g.fs.CrashClone(nil)))
			if ops < 20 {
				t.Errorf("%d operations", ops)
			}
		}
	}
}

// A crashCheck knows what must survive.
type crashCheck struct {
	*ledger
	appended []seen // and not aborted
	bound    int64  // what is below is there
	sure     bool

	recoveryPoint int64
}

func (c *crashCheck) check(left *vfs.Mem) error {
	l, err := commitlog.Open(commitlog.Options{FS: left, Dir: c.dir, Partition: c.log.Partition(), Config: c.config, Now: c.options.Now, RecoveryPoint: c.recoveryPoint})
	if err != nil {
		return err
	}
	defer l.Close()
	l.SetHighWatermark(l.Offsets().End)
	if err := l.Check(); err != nil || !c.sure {
		return err
	}
	want, got := map[string]seen{}, map[string]seen{}
	for _, s := range c.appended {
		if s.offset < c.bound {
			want[s.key] = s
		}
	}
	for _, s := range consume(c.t, l, 0, commitlog.ReadCommitted) {
		if s.offset < c.bound {
			got[s.key] = s
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
		return fmt.Errorf("last records -want +got\n%s", diff)
	}
	entries, err := left.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segment.CleanedSuffix) || strings.HasSuffix(e.Name(), segment.SwapSuffix) {
			return fmt.Errorf("%s is left", e.Name())
		}
	}
	return err
}

// A cleaning that finds the disk full leaves the log and its directory as they were. The next
// one, with room, succeeds.
func TestCleanDiskFull(t *testing.T) {
	full := func(op vfs.Op) bool { return op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate }
	for at := 0; ; at++ {
		g := crashHistory(t, false)
		must(t, g.log.Flush())
		before, files := g.records(), g.files()
		n := at
		g.fs.SetHook(func(op vfs.Op) error {
			if full(op) && strings.Contains(op.Name, segment.CleanedSuffix) {
				if n--; n < 0 {
					return &vfs.ShortWrite{N: int(op.Size) / 2, Err: syscall.ENOSPC}
				}
			}
			return nil
		})
		_, err := g.tryClean(t.Context())
		g.fs.SetHook(nil)
		if err == nil {
			if at < 10 {
				t.Errorf("%d operations need room", at)
			}
			return
		}
		if _, ok := errors.AsType[*commitlog.DiskFullError](err); !ok {
			t.Fatalf("got %v, want a DiskFullError", err)
		}
		if g.log.Failed() != nil {
			t.Fatal("log is poisoned")
		}
		if got := g.files(); got != files && g.records() == before {
			t.Errorf("full at %d: files\n%s\nwant\n%s", at, got, files)
		}
		g.put(kind{}, "y=1")
		g.clean()
		if got := g.records(); !strings.Contains(got, "a ") || strings.Contains(got, "a=2") || !strings.Contains(got, "y=1") {
			t.Errorf("full at %d, then room: %s", at, got)
		}
	}
}

// files lists the directory without what is on its way out.
func (g *ledger) files() string {
	entries, err := g.fs.ReadDir(g.dir)
	must(g.t, err)
	var list []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) != segment.DeletedSuffix {
			list = append(list, e.Name())
		}
	}
	return strings.Join(list, "\n")
}
