package logdir

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A slowDisk keeps operations waiting until it is released.
type slowDisk struct {
	meets    func(vfs.Op) bool
	waiting  atomic.Int64
	released chan struct{}
	release  func()
}

func newSlowDisk(fsys *vfs.Mem, meets func(vfs.Op) bool) *slowDisk {
	d := &slowDisk{meets: meets, released: make(chan struct{})}
	d.release = sync.OnceFunc(func() { close(d.released) })
	fsys.SetHook(func(op vfs.Op) error {
		if d.meets(op) {
			d.waiting.Add(1)
			<-d.released
		}
		return nil
	})
	return d
}

// A stop does not wait for a disk that does not answer, whatever it hangs at: it is not clean, and the
// next start has what was there.
func TestCloseDoesNotWaitForTheDisk(t *testing.T) {
	f := func(name string, meets func(vfs.Op) bool, before func(*Manager)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			fsys := vfs.NewMem()
			m, err := Open(testConfig(fsys, "/a", "/b"))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Load(t.Context(), LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			m.Start(context.Background())
			for _, p := range []topic.Partition{orders0, orders1} {
				l := mustCreate(t, m, p)
				mustAppend(t, l, 3)
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				mustAppend(t, l, 1)
			}
			disk := newSlowDisk(fsys, meets)
			if before != nil {
				go before(m)
				synctest.Wait()
			}
			const limit = 5 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			err = m.Close(ctx)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > limit+closeGrace {
				t.Errorf("%s: got %v after %v", name, err, took)
			}
			if disk.waiting.Load() == 0 {
				t.Errorf("%s: the disk was not asked", name)
			}
			after := fsys.CrashClone(nil)
			if hasMarker(t, after, "/a") && hasMarker(t, after, "/b") {
				t.Errorf("%s: both directories are marked clean", name)
			}
			again := mustLoad(t, testConfig(after, "/a", "/b"))
			for _, p := range []topic.Partition{orders0, orders1} {
				if l := again.Log(p); l == nil || l.Offsets().End < 3 {
					t.Errorf("%s: %v is not what it was", name, p)
				}
			}
			mustClose(t, again)
			disk.release()
			synctest.Wait()
		})
	}
	on := func(kind vfs.OpKind, part string) func(vfs.Op) bool {
		return func(op vfs.Op) bool { return op.Kind == kind && strings.Contains(op.Name, part) }
	}
	f("sync of a log", on(vfs.OpSync, "/a/orders-"), nil)
	f("all syncs", on(vfs.OpSync, ""), nil)
	f("names of the directory", on(vfs.OpSyncDir, "/a"), nil)
	f("checkpoint", on(vfs.OpWrite, "recovery-point"), nil)
	f("task", on(vfs.OpSync, "replication-offset"), func(m *Manager) { m.background(func() { m.checkpointAll(highWatermarks) }) })
}

// The same for a creation that hangs, which holds a mutex: in real time.
func TestCloseDoesNotWaitForCreation(t *testing.T) {
	fsys := vfs.NewMem()
	m, err := Open(testConfig(fsys, "/a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(t.Context(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	disk := newSlowDisk(fsys, func(op vfs.Op) bool {
		if op.Kind == vfs.OpMkdir {
			close(asked)
		}
		return op.Kind == vfs.OpMkdir
	})
	created := make(chan error)
	go func() {
		_, err := m.Create(orders0, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
		created <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	logtest.WantError(t, m.Close(ctx), context.DeadlineExceeded)
	disk.release()
	if err := <-created; err != nil {
		t.Error(err)
	}
	mustClose(t, m) // waits for the one that was left behind
}

// What takes long ends when the stop begins, before the logs are closed.
func TestHalt(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	l := mustCreate(t, m, orders0)
	m.Halt()
	_, err := m.Create(orders1, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
	logtest.WantError(t, err, ErrClosed)
	if got, err := m.Create(orders0, ordersID, commitlog.DefaultConfig(), uuid.Zero, true); got != nil && got != l {
		t.Errorf("got another log, %v", err)
	}
	mustAppend(t, l, 1) // who is not stopped yet goes on
	mustClose(t, m)
	if !hasMarker(t, fsys, "/a") || exists(t, fsys, "/a/orders-1") {
		t.Error("the stop was not clean, or a log was created")
	}
}

// A start that is told to end does so in the middle of a log, and leaves everything to the next one.
func TestLoadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a"))
		for _, p := range []topic.Partition{orders0, orders1} {
			for range 50 {
				mustAppend(t, mustCreate(t, m, p), 1)
			}
			if err := m.Log(p).Flush(); err != nil {
				t.Fatal(err)
			}
		}
		clone := fsys.CrashClone(nil)
		ctx, cancel := context.WithCancel(t.Context())
		clone.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, ".log") {
				cancel()
				synctest.Wait() // until everybody knows
			}
			return nil
		})
		c := testConfig(clone, "/a")
		c.RecoveryThreads = 1
		starting, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		logtest.WantError(t, starting.Load(ctx, LoadOptions{}), context.Canceled)
		if n := len(starting.places.entries()); n != 0 {
			t.Errorf("%d logs were loaded", n)
		}
		clone.SetHook(nil)
		if err := starting.Close(t.Context()); err != nil {
			t.Error(err)
		}
		again := mustLoad(t, testConfig(clone, "/a"))
		for _, p := range []topic.Partition{orders0, orders1} {
			if l := again.Log(p); l == nil || l.Offsets().End != 50 {
				t.Errorf("%v is not what it was", p)
			}
		}
		mustClose(t, again)
	})
}

// A start on a disk that does not answer ends when it is told to.
func TestLoadDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a"))
		mustAppend(t, mustCreate(t, m, orders0), 5)
		if err := m.Log(orders0).Flush(); err != nil {
			t.Fatal(err)
		}
		clone := fsys.CrashClone(nil)
		disk := newSlowDisk(clone, func(op vfs.Op) bool { return op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, ".log") })
		starting, err := Open(testConfig(clone, "/a"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		logtest.WantError(t, starting.Load(ctx, LoadOptions{}), context.DeadlineExceeded)
		if disk.waiting.Load() == 0 {
			t.Error("the disk was not asked")
		}
		disk.release()
		synctest.Wait()
		if err := starting.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
