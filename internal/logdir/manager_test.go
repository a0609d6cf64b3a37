package logdir

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestCreate(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b", "/c"))
	dirs := m.Dirs()
	dirOf := func(p topic.Partition) string {
		e, _ := m.places.entry(p)
		return e.dir.path
	}
	// The fewest logs first, ties in the order of the configuration.
	for i, want := range []string{"/a", "/b", "/c", "/a"} {
		p := topic.Partition{Topic: "t", Partition: int32(i)}
		mustCreate(t, m, p)
		if got := dirOf(p); got != want {
			t.Errorf("%v: in %s, want %s", p, got, want)
		}
	}
	// A directory by its id; an id that stands for none chooses.
	l, err := m.Create(orders0, ordersID, commitlog.DefaultConfig(), dirs[0].ID, true)
	if err != nil || dirOf(orders0) != "/a" {
		t.Errorf("by id: in %s, %v, want /a", dirOf(orders0), err)
	}
	if _, err := m.Create(orders1, ordersID, commitlog.DefaultConfig(), uuid.Lost, true); err != nil || dirOf(orders1) != "/b" {
		t.Errorf("lost directory: in %s, %v, want /b", dirOf(orders1), err)
	}
	_, err = m.Create(orders2, ordersID, commitlog.DefaultConfig(), uuid.UUID{5: 5}, true)
	logtest.WantError(t, err, ErrNoDirectory, uuid.UUID{5: 5}.String())

	// What is there is returned, whatever the directory.
	again, err := m.Create(orders0, ordersID, commitlog.DefaultConfig(), dirs[2].ID, true)
	if err != nil || again != l {
		t.Errorf("created twice: got %p, %v, want %p", again, err, l)
	}
	_, err = m.Create(orders0, uuid.UUID{0: 9}, commitlog.DefaultConfig(), uuid.Zero, true)
	logtest.WantError(t, err, commitlog.ErrInconsistentTopicID, "orders-0")

	if m.Log(orders2) != nil {
		t.Error("a log that was not created is there")
	}
	if _, ok := m.HighWatermark(orders0); ok {
		t.Error("a new log has a high watermark from before")
	}
	for _, l := range m.Logs() {
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	crashed := fsys.CrashClone(nil)
	for p := range m.Logs() {
		if !exists(t, crashed, dirOf(p)+"/"+p.String()) {
			t.Errorf("%v: not there after a crash", p)
		}
	}
	mustClose(t, m)
	_, err = m.Create(orders2, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
	logtest.WantError(t, err, ErrClosed)
	logtest.WantError(t, m.Delete(orders0), ErrClosed)
}

func TestSetConfig(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a"))
	mustCreate(t, m, orders0)
	mustCreate(t, m, orders1)
	mustCreate(t, m, topic.Partition{Topic: "other"})
	c := commitlog.DefaultConfig()
	c.RetentionMs = 5
	m.SetConfig("orders", 2, c)
	for p, l := range m.Logs() {
		if got, want := l.Config().RetentionMs == 5, p.Topic == "orders"; got != want {
			t.Errorf("%v: configuration changed: %v, want %v", p, got, want)
		}
	}
	mustClose(t, m)
}

func TestDelete(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	c.FileDeleteDelay = time.Minute
	m := mustLoad(t, c)
	for _, p := range []topic.Partition{orders0, orders1, orders2} {
		mustAppend(t, mustCreate(t, m, p), 10)
	}
	for k := range checkpointKinds {
		m.checkpointAll(k)
	}
	now := time.Now()
	logtest.WantError(t, m.Delete(orders0, topic.Partition{Topic: "no"}, orders1), ErrUnknownPartition, "no-0")
	wantLogs(t, m, orders2)
	if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "1, orders 2 0" {
		t.Errorf("recovery points: got %q", got)
	}
	list := names(t, fsys.CrashClone(nil), "/a")
	if !slices.Contains(list, "orders-0.ID-delete") || !slices.Contains(list, "orders-1.ID-delete") || slices.Contains(list, "orders-0") {
		t.Errorf("after a crash: got %v", list)
	}
	// The name is free, and a new log inherits nothing, not from the checkpoints either.
	l, err := m.Create(orders0, uuid.UUID{0: 2}, commitlog.DefaultConfig(), uuid.Zero, true)
	if err != nil || state(l) != [3]int64{} {
		t.Fatalf("created again: %v, %v, want an empty log", state(l), err)
	}
	m.deletions.removeDue(now.Add(59 * time.Second))
	if !slices.Contains(names(t, fsys, "/a"), "orders-0.ID-delete") {
		t.Error("removed before its time")
	}
	m.deletions.removeDue(time.Now().Add(time.Minute))
	if list := names(t, fsys, "/a"); slices.Contains(list, "orders-0.ID-delete") || !slices.Contains(list, "orders-0") {
		t.Errorf("after the delay: got %v", list)
	}
	mustClose(t, m)
	m = mustLoad(t, c)
	wantState(t, m, orders0, [3]int64{})
	wantState(t, m, orders2, [3]int64{0, 10, 10})
	mustClose(t, m)
}

// A recovery point on disk that is above what was truncated would keep a crash from being
// noticed in what is appended afterwards.
func TestTruncateWritesRecoveryPoint(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	l := mustCreate(t, m, orders0)
	for range 10 {
		mustAppend(t, l, 1)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	m.checkpointAll(recoveryPoints)
	if err := m.TruncateTo(orders0, 4); err != nil {
		t.Fatal(err)
	}
	if got := checkpointText(t, fsys.CrashClone(nil), "/a", recoveryPoints); got != "1, orders 0 4" {
		t.Errorf("recovery points after truncation: got %q", got)
	}
	if err := m.TruncateFullyAndStartAt(orders0, 100); err != nil {
		t.Fatal(err)
	}
	wantState(t, m, orders0, [3]int64{100, 100, 100})
	logtest.WantError(t, m.TruncateTo(orders1, 0), ErrUnknownPartition)
	mustClose(t, m)
}

// A checkpoint file is not written when it would be the same.
func TestCheckpointUnchanged(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 3)
	changes := 0
	m.checkpointAll(highWatermarks)
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind.Changes() {
			changes++
		}
		return nil
	})
	m.checkpointAll(highWatermarks)
	if changes != 0 {
		t.Errorf("%d changes of the disk, want none", changes)
	}
	mustAppend(t, l, 1)
	m.checkpointAll(highWatermarks)
	fsys.SetHook(nil)
	if got := checkpointText(t, fsys, "/a", highWatermarks); got != "1, orders 0 4" {
		t.Errorf("high watermarks: got %q", got)
	}
	mustClose(t, m)
}

// An operation that fails in one directory takes it offline; the others serve.
func TestDirectoryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		c := testConfig(fsys, "/a", "/b")
		var failures []string
		c.OnDirFailure = func(dir string, id uuid.UUID, err error) {
			failures = append(failures, fmt.Sprint(dir, id, err))
		}
		m := mustLoad(t, c)
		a, b := mustCreate(t, m, orders0), mustCreate(t, m, orders1)
		mustAppend(t, a, 1)
		mustAppend(t, b, 1)
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpWrite && op.Name == "/b/orders-1/00000000000000000000.log" {
				return errDisk
			}
			return nil
		})
		_, err := b.AppendAsLeader(batch(t, 1), 0, commitlog.AppendOptions{})
		logtest.WantError(t, err, commitlog.ErrStorage)
		synctest.Wait()

		wantLogs(t, m, orders0)
		dirs := m.Dirs()
		if dirs[1].Online || dirs[1].Err == nil || !dirs[0].Online {
			t.Errorf("got %+v, want /a online and /b not", dirs)
		}
		if len(failures) != 1 || exists(t, fsys, "/b/.lock") {
			t.Errorf("failures %v, lock there: %v, want one and no lock", failures, exists(t, fsys, "/b/.lock"))
		}
		mustAppend(t, a, 1)
		mustCreate(t, m, orders2)
		if e, _ := m.places.entry(orders2); e.dir.path != "/a" {
			t.Errorf("created in %s, want /a", e.dir.path)
		}
		_, err = m.Create(orders1, ordersID, commitlog.DefaultConfig(), dirs[1].ID, true)
		logtest.WantError(t, err, ErrNoDirectory)
		_, err = m.Create(orders1, ordersID, commitlog.DefaultConfig(), uuid.Zero, false)
		logtest.WantError(t, err, ErrMayExist, "/b")
		mustClose(t, m)
		if !hasMarker(t, fsys, "/a") || hasMarker(t, fsys, "/b") {
			t.Error("want the marker in /a and not in /b")
		}
	})
}

func TestFail(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a", "/b"))
	l := mustCreate(t, m, orders0)
	if err := m.Fail("/a/", errDisk); err != nil {
		t.Fatal(err)
	}
	wantLogs(t, m)
	if err := m.Dirs()[0].Err; err != errDisk {
		t.Errorf("got %v, want %v", err, errDisk)
	}
	_, err := l.AppendAsLeader(batch(t, 1), 0, commitlog.AppendOptions{})
	logtest.WantError(t, err, commitlog.ErrStorage)
	logtest.WantError(t, m.Fail("/c", errDisk), ErrNoDirectory)
	mustClose(t, m)
}

// A directory that fails while it is loaded.
func TestLoadDirectoryFails(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b"))
	mustCreate(t, m, orders0)
	mustCreate(t, m, orders1)
	mustClose(t, m)
	fsys.SetHook(func(op vfs.Op) error {
		if strings.HasPrefix(op.Name, "/b/orders-1") {
			return errDisk
		}
		return nil
	})
	m = mustLoad(t, testConfig(fsys, "/a", "/b"))
	wantLogs(t, m, orders0)
	if err := m.Dirs()[1].Err; err == nil {
		t.Error("/b is online")
	}
	mustClose(t, m)
	m = mustOpen(t, testConfig(fsys, "/b", "/a"))
	logtest.WantError(t, m.Load(context.Background(), LoadOptions{}), ErrNoDirectory, "/b")
	mustClose(t, m)
}

// No marker where a log could not be flushed, or the time ran out.
func TestCloseFails(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b"))
	mustAppend(t, mustCreate(t, m, orders0), 1)
	mustAppend(t, mustCreate(t, m, orders1), 1)
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && op.Name == "/a/orders-0/00000000000000000000.log" {
			return errDisk
		}
		return nil
	})
	logtest.WantError(t, m.Close(context.Background()), errDisk)
	fsys.SetHook(nil)
	if hasMarker(t, fsys, "/a") || !hasMarker(t, fsys, "/b") || exists(t, fsys, "/a/.lock") {
		t.Error("want the marker in /b and not in /a, and no lock")
	}

	m = mustLoad(t, testConfig(fsys, "/a", "/b"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	logtest.WantError(t, m.Close(ctx), context.Canceled)
	if hasMarker(t, fsys, "/a") || hasMarker(t, fsys, "/b") {
		t.Error("marker, although logs were not closed")
	}
}

func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		c := DefaultConfig()
		c.FS, c.Dirs, c.FlushInterval = fsys, []string{"/a"}, time.Second
		m := mustLoad(t, c)
		config := commitlog.DefaultConfig()
		config.RetentionMs, config.FlushMs = 40_000, 35_000
		l, err := m.Create(orders0, ordersID, config, uuid.Zero, true)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 3) // in the past: beyond retention.ms
		m.Start(context.Background())
		f := func(at time.Duration, k checkpointKind, want string) {
			t.Helper()
			path := "/a/" + checkpointNames[k]
			if want == "" {
				if exists(t, fsys, path) {
					t.Errorf("after %v: %s is there", at, path)
				}
				return
			}
			if got := checkpointText(t, fsys, "/a", k); got != want {
				t.Errorf("after %v: %s: got %q, want %q", at, path, got, want)
			}
		}
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		wait(29 * time.Second)
		f(29, highWatermarks, "")
		wait(2 * time.Second) // the initial delay is over
		f(31, highWatermarks, "1, orders 0 3")
		if o := l.Offsets(); o.LogStart != 3 {
			t.Errorf("retention: log start %d, want 3", o.LogStart)
		}
		mustAppend(t, l, 2)
		if l.RecoveryPoint() == 5 {
			t.Error("flushed before flush.ms")
		}
		before := m.FlushTimes().Count()
		wait(5 * time.Second)
		f(36, highWatermarks, "1, orders 0 5")
		wait(35 * time.Second)
		if l.RecoveryPoint() != 5 {
			t.Errorf("recovery point: got %d after flush.ms, want 5", l.RecoveryPoint())
		}
		if got := m.FlushTimes().Count(); got != before+1 {
			t.Errorf("%d syncs were counted, want one more than %d", got, before)
		}
		if err := m.Delete(orders0); err != nil {
			t.Fatal(err)
		}
		wait(59 * time.Second)
		if !slices.Contains(names(t, fsys, "/a"), "orders-0.ID-delete") {
			t.Error("partition removed before its delay")
		}
		wait(2 * time.Second)
		if slices.Contains(names(t, fsys, "/a"), "orders-0.ID-delete") {
			t.Error("partition not removed after its delay")
		}
		mustClose(t, m)
	})
}

func TestFlushIsDue(t *testing.T) {
	last := time.UnixMilli(1000)
	f := func(flushMs, now int64, want bool) {
		t.Helper()
		if got := flushIsDue(commitlog.Config{FlushMs: flushMs}, last, time.UnixMilli(now)); got != want {
			t.Errorf("flush.ms=%d at %d: got %v, want %v", flushMs, now, got, want)
		}
	}
	f(100, 1099, false)
	f(100, 1100, true)
	f(0, 1000, true)
	f(commitlog.DefaultConfig().FlushMs, 1<<60, false)
}

func TestDeletions(t *testing.T) {
	q := deletions{added: make(chan struct{}, 1)}
	start := time.UnixMilli(0)
	var order []int
	for _, at := range []int{5, 1, 3, 1} {
		q.add(start.Add(time.Duration(at)), func() { order = append(order, at) })
	}
	if next, ok := q.removeDue(start.Add(3)); !ok || !next.Equal(start.Add(5)) || !slices.Equal(order, []int{1, 1, 3}) {
		t.Errorf("got %v, next %v, %v, want [1 1 3], next 5", order, next, ok)
	}
	if _, ok := q.removeDue(start.Add(9)); ok || !slices.Equal(order, []int{1, 1, 3, 5}) {
		t.Errorf("got %v, %v, want all and nothing next", order, ok)
	}
}

func TestCommonEpoch(t *testing.T) {
	d := func(clean bool, epoch int64) *dir {
		d := newDir("/d", true)
		d.startedClean, d.brokerEpoch = clean, epoch
		return d
	}
	f := func(want int64, dirs ...*dir) {
		t.Helper()
		if got := commonEpoch(dirs); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	offline := d(true, 7)
	offline.setFailure(errDisk)
	f(7, d(true, 7), d(true, 7), newDir("/metadata", false))
	f(-1, d(true, 7), d(true, 8))
	f(-1, d(true, 7), d(false, -1))
	f(-1, d(true, 7), offline)
	f(-1, d(true, checkpoint.UnknownBrokerEpoch))
}

// A cordoned directory is not chosen, unless there is no other, and is no target of a move; ending a
// move is no move.
func TestCordonedDirectories(t *testing.T) {
	c := testConfig(vfs.NewMem(), "/a", "/b")
	c.Cordoned = []string{"/a/"}
	m := mustLoad(t, c)
	dirOf := func(p topic.Partition) string {
		e, _ := m.places.entry(p)
		return e.dir.path
	}
	for _, p := range []topic.Partition{orders0, orders1} {
		mustCreate(t, m, p)
		if got := dirOf(p); got != "/b" {
			t.Errorf("%v: in %s, want /b", p, got)
		}
	}
	logtest.WantError(t, m.Move(orders0, "/a"), ErrCordoned, "/a")
	logtest.WantError(t, m.Move(orders2, "/a"), ErrCordoned, "/a")
	if ids := m.CordonedIDs(); len(ids) != 1 || ids[0] != m.Dirs()[0].ID || !m.Dirs()[0].Cordoned || m.Dirs()[1].Cordoned {
		t.Errorf("cordoned are %v of %+v", ids, m.Dirs())
	}
	c.Cordoned = []string{"/a", "/b"}
	m.Reconfigure(c)
	mustCreate(t, m, orders2)
	if got := dirOf(orders2); got != "/a" {
		t.Errorf("all cordoned: in %s, want /a, which has fewer logs", got)
	}
	if err := m.Move(orders2, "/a"); err != nil {
		t.Errorf("to where it is: %v", err)
	}
	mustClose(t, m)
}
