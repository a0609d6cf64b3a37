package logdir

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// What an operation reports decides how much has to stop: nothing but the step itself, the log for
// a moment, or the directory.
func TestWhatFailsForWhat(t *testing.T) {
	f := func(err error, meets func(vfs.Op) bool, wantOffline bool) {
		t.Helper()
		name := fmt.Sprintf("%v", err)
		synctest.Test(t, func(t *testing.T) {
			fsys := vfs.NewMem()
			c := testConfig(fsys, "/a", "/b")
			m := mustLoad(t, c)
			m.Start(t.Context())
			l := mustCreate(t, m, orders0)
			mustAppend(t, l, 1)
			fsys.SetHook(func(op vfs.Op) error {
				if strings.HasPrefix(op.Name, "/a/") && meets(op) {
					return err
				}
				return nil
			})
			_, _ = l.AppendAsLeader(batch(t, 1), 1, commitlog.AppendOptions{}) // a new epoch, which goes to its file
			_ = l.Flush()
			m.checkpointAll(recoveryPoints)
			m.checkpointAll(highWatermarks)
			_, _ = m.Create(orders1, ordersID, commitlog.DefaultConfig(), m.Dirs()[0].ID, true)
			_ = m.Delete(orders1)
			synctest.Wait()
			fsys.SetHook(nil)
			if online := m.Dirs()[0].Online; online == wantOffline {
				t.Errorf("%s: directory online: %v", name, online)
			}
			if !m.Dirs()[1].Online {
				t.Errorf("%s: the other directory is offline", name)
			}
			if wantOffline {
				return
			}
			m.checkpointAll(highWatermarks)
			awaitUsable(t, m, orders0)
			mustAppend(t, m.Log(orders0), 1)
			mustClose(t, m)
			if !hasMarker(t, fsys, "/a") {
				t.Errorf("%s: the stop was not clean", name)
			}
		})
	}
	opens := func(op vfs.Op) bool {
		return op.Kind == vfs.OpOpen || op.Kind == vfs.OpCreate || op.Kind == vfs.OpSyncDir || op.Kind == vfs.OpReadDir
	}
	writes := func(op vfs.Op) bool { return op.Kind == vfs.OpWrite }
	names := func(op vfs.Op) bool {
		return op.Kind == vfs.OpCreate || op.Kind == vfs.OpMkdir || op.Kind == vfs.OpRename
	}
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR} {
		f(errno, opens, false)
	}
	for _, errno := range []error{syscall.ENOMEM, syscall.EFBIG, syscall.EINVAL, syscall.ENOSPC, syscall.EDQUOT, syscall.EAGAIN} {
		f(errno, writes, false)
	}
	f(syscall.ENAMETOOLONG, names, false)
	for _, errno := range []error{syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ESTALE, syscall.EACCES, errors.New("on fire")} {
		f(errno, writes, true)
		f(errno, opens, true)
	}
}

// awaitUsable waits until a log takes changes.
func awaitUsable(t *testing.T, m *Manager, p topic.Partition) {
	t.Helper()
	for range 100 {
		if l := m.Log(p); l != nil && l.Failed() == nil {
			return
		}
		synctest.Wait()
		<-afterPause()
	}
	t.Fatalf("%v takes no changes: %v", p, m.Log(p).Failed())
}

// A log that does not know what its file holds is opened again, with all that was acknowledged;
// the others of its directory never notice.
func TestLogIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a"))
		m.Start(t.Context())
		l, other := mustCreate(t, m, orders0), mustCreate(t, m, orders1)
		mustAppend(t, l, 3)
		fsys.SetHook(func(op vfs.Op) error {
			switch {
			case !strings.HasPrefix(op.Name, "/a/orders-0/0"):
			case op.Kind == vfs.OpWrite:
				return &vfs.ShortWrite{N: 20, Err: syscall.ENOMEM}
			case op.Kind == vfs.OpTruncate:
				return syscall.EFBIG // so that the write cannot be undone
			}
			return nil
		})
		_, err := l.AppendAsLeader(batch(t, 2), 0, commitlog.AppendOptions{})
		logtest.WantError(t, err, commitlog.ErrStorage)
		if l.Failed() == nil {
			t.Fatal("the log takes changes")
		}
		mustAppend(t, other, 1)
		fsys.SetHook(nil)
		awaitUsable(t, m, orders0)
		again := m.Log(orders0)
		if o := again.Offsets(); again == l || o.End != 3 || o.HighWatermark != 3 {
			t.Errorf("opened again: end %d, high watermark %d, want 3", o.End, o.HighWatermark)
		}
		mustAppend(t, again, 1)
		mustClose(t, m)
		if !hasMarker(t, fsys, "/a") {
			t.Error("the stop was not clean")
		}
	})
}

// A log whose directory was taken away is not begun anew: its offsets would be used twice.
func TestLogThatIsTakenAwayStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a"))
		m.Start(t.Context())
		l, other := mustCreate(t, m, orders0), mustCreate(t, m, orders1)
		mustAppend(t, l, 3)
		if err := fsys.Rename("/a/orders-0", "/elsewhere"); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(); !errors.Is(err, commitlog.ErrStorage) {
			t.Errorf("flush: got %v", err)
		}
		for range 20 {
			<-afterPause()
			synctest.Wait()
		}
		if m.Log(orders0).Failed() == nil || exists(t, fsys, "/a/orders-0") {
			t.Error("the log was begun anew")
		}
		mustAppend(t, other, 1)
		if err := fsys.Rename("/elsewhere", "/a/orders-0"); err != nil {
			t.Fatal(err)
		}
		awaitUsable(t, m, orders0)
		if end := m.Log(orders0).Offsets().End; end != 3 {
			t.Errorf("it is back with end %d, want 3", end)
		}
	})
}

// Out of descriptors at any step of a start: it fails, no directory goes offline, nothing is
// forgotten, and the next start has everything.
func TestStartOutOfDescriptors(t *testing.T) {
	for n := 0; ; n++ {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a", "/b"))
		for _, p := range []topic.Partition{orders0, orders1, orders2} {
			l := mustCreate(t, m, p)
			mustAppend(t, l, 5)
			if err := l.IncrementLogStart(2); err != nil {
				t.Fatal(err)
			}
		}
		if n%2 == 0 {
			m.checkpointAll(logStarts)
			fsys = fsys.CrashClone(nil)
		} else {
			mustClose(t, m)
		}
		var left atomic.Int64 // directories are opened side by side
		var met atomic.Bool
		left.Store(int64(n / 2))
		fsys.SetHook(func(op vfs.Op) error {
			switch op.Kind {
			case vfs.OpOpen, vfs.OpCreate, vfs.OpReadDir, vfs.OpSyncDir, vfs.OpLock:
				if left.Add(-1) < 0 {
					met.Store(true)
					return syscall.EMFILE
				}
			}
			return nil
		})
		c := testConfig(fsys, "/a", "/b")
		c.RecoveryThreads = 1
		c.OnDirFailure = func(dir string, _ uuid.UUID, err error) { t.Errorf("step %d: %s is offline: %v", n, dir, err) }
		if m, err := Open(c); err == nil {
			err = m.Load(context.Background(), LoadOptions{})
			if err == nil && len(m.places.entries()) < 3 {
				t.Errorf("step %d: started with %d logs of 3", n, len(m.places.entries()))
			}
			_ = m.Close(context.Background())
		}
		fsys.SetHook(nil)
		if n%2 == 1 { // a clean stop leaves all records
			again := mustLoad(t, testConfig(fsys, "/a", "/b"))
			for _, p := range []topic.Partition{orders0, orders1, orders2} {
				if l := again.Log(p); l == nil || l.Offsets().End != 5 || l.Offsets().LogStart != 2 {
					t.Fatalf("step %d: %v is not what it was: %v", n, p, l)
				}
			}
			mustClose(t, again)
		}
		if !met.Load() && n%2 == 1 {
			return
		}
	}
}

func afterPause() <-chan time.Time { return time.After(reopenPause) }
