package logdir

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
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

// mustMove moves a partition to its end, round by round.
func mustMove(t *testing.T, m *Manager, p topic.Partition, to string) {
	t.Helper()
	if err := m.Move(p, to); err != nil {
		t.Fatal(err)
	}
	finishMove(t, m, p)
	if got := dirOf(m, p); got != to {
		t.Fatalf("%v is in %s, want %s", p, got, to)
	}
}

func finishMove(t *testing.T, m *Manager, p topic.Partition) {
	t.Helper()
	for i := 0; m.Future(p) != nil; i++ {
		m.mover.round(t.Context(), p)
		if i > 100 {
			t.Fatalf("%v does not arrive: copy at %d of %d", p, m.Future(p).Offsets().End, m.Log(p).Offsets().End)
		}
	}
}

func dirOf(m *Manager, p topic.Partition) string {
	for _, d := range m.Dirs() {
		for _, l := range d.Logs {
			if l.Partition() == p {
				return d.Path
			}
		}
	}
	return ""
}

func TestMove(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a", "/b")
	var told []uuid.UUID
	c.OnMoved = func(p topic.Partition, topicID, dirID uuid.UUID) {
		if p != orders0 || topicID != ordersID {
			t.Errorf("moved: %v of %v", p, topicID)
		}
		told = append(told, dirID)
	}
	m := mustLoad(t, c)
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 50)
	if err := l.IncrementLogStart(7); err != nil {
		t.Fatal(err)
	}
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, 10)
	mustMove(t, m, orders0, "/b")
	if len(told) != 1 || told[0] != m.Dirs()[1].ID {
		t.Errorf("told of %v", told)
	}
	want := func(end int64) {
		t.Helper()
		if o := m.Log(orders0).Offsets(); o.LogStart != 7 || o.End != end || o.HighWatermark != end {
			t.Errorf("got %+v, want 7 to %d", o, end)
		}
	}
	want(60)
	_, err := l.AppendAsLeader(batch(t, 1), 0, commitlog.AppendOptions{})
	if err == nil {
		t.Log("the old log still takes records; nobody has it")
	}
	mustAppend(t, m.Log(orders0), 5)
	want(65)
	mustClose(t, m)
	m = mustLoad(t, c)
	want(65)
	if got := dirOf(m, orders0); got != "/b" {
		t.Errorf("after a restart it is in %s", got)
	}
	mustMove(t, m, orders0, "/a")
	want(65)
	mustClose(t, m)
}

func TestMoveRefused(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a", "/b"))
	mustCreate(t, m, orders0)
	logtest.WantError(t, m.Move(orders0, "/c"), ErrNoDirectory)
	logtest.WantError(t, m.Move(orders1, "/b"), ErrUnknownPartition)
	long := topic.Partition{Topic: strings.Repeat("x", 249)}
	mustCreate(t, m, long) // in /b, by the number of logs
	logtest.WantError(t, m.Move(long, "/a"), ErrNameTooLong)
	mustCreate(t, m, orders1)
	if got := dirOf(m, orders1); got != "/b" {
		t.Errorf("created in %s, want where it was asked for", got)
	}
	if err := m.Fail("/b", errDisk); err != nil {
		t.Fatal(err)
	}
	logtest.WantError(t, m.Move(orders0, "/b"), ErrNoDirectory)
	logtest.WantError(t, m.Move(orders1, "/a"), ErrMayExist)
	mustClose(t, m)
}

func TestMoveCancelled(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b", "/c"))
	mustAppend(t, mustCreate(t, m, orders0), 5)
	f := func(to string, wantFuture bool) {
		t.Helper()
		if err := m.Move(orders0, to); err != nil {
			t.Fatal(err)
		}
		if got := m.Future(orders0) != nil; got != wantFuture {
			t.Errorf("move to %s: copy %v, want %v", to, got, wantFuture)
		}
	}
	f("/a", false) // where it is
	f("/b", true)
	f("/b", true)
	f("/c", true)
	f("/a", false)
	f("/b", true)
	if err := m.Delete(orders0); err != nil {
		t.Fatal(err)
	}
	if m.Future(orders0) != nil {
		t.Error("the copy of a deleted partition stays")
	}
	m.deletions.removeDue(time.Now().Add(time.Hour))
	for _, dir := range []string{"/a", "/b", "/c"} {
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				t.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
	mustClose(t, m)
}

// The copy follows truncations, to what was written in place of what is gone.
func TestMoveTruncated(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a", "/b"))
	l := mustCreate(t, m, orders0)
	for range 10 {
		mustAppend(t, l, 1)
	}
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := copyLog(t.Context(), l, m.Future(orders0), 1<<20, m.mover.copyStep); err != nil {
		t.Fatal(err)
	}
	if err := m.TruncateTo(orders0, 4); err != nil {
		t.Fatal(err)
	}
	if got := m.Future(orders0).Offsets().End; got != 4 {
		t.Errorf("the copy ends at %d, want 4", got)
	}
	mustAppend(t, l, 2)
	finishMove(t, m, orders0)
	if got := m.Log(orders0).Offsets().End; got != 6 {
		t.Errorf("ends at %d, want 6", got)
	}
	mustClose(t, m)
}

// Retention and DeleteRecords beyond the end of the copy make it begin again.
func TestMoveFallsBehind(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a", "/b"))
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 5)
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := copyLog(t.Context(), l, m.Future(orders0), 1<<20, m.mover.copyStep); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, 20)
	if err := l.IncrementLogStart(20); err != nil {
		t.Fatal(err)
	}
	finishMove(t, m, orders0)
	if o := m.Log(orders0).Offsets(); o.LogStart != 20 || o.End != 25 {
		t.Errorf("got %+v, want 20 to 25", o)
	}
	mustClose(t, m)
}

// A move in the background, with appends beside it and the exchange kept from them.
func TestMoveWhileWritten(t *testing.T) {
	c := testConfig(vfs.NewMem(), "/a", "/b")
	moved := make(chan struct{})
	c.OnMoved = func(topic.Partition, uuid.UUID, uuid.UUID) { close(moved) }
	writing := make(chan struct{}, 1) // holds a token while somebody appends or exchanges
	c.ReplaceLog = func(_ topic.Partition, open func() (*commitlog.Log, error)) error {
		writing <- struct{}{}
		defer func() { <-writing }()
		_, err := open()
		return err
	}
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 100)
	m.Start(t.Context())
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	count := int64(100)
	for done := false; !done; {
		writing <- struct{}{}
		mustAppend(t, m.Log(orders0), 1)
		<-writing
		count++
		select {
		case <-moved:
			done = true
		default:
		}
	}
	mustAppend(t, m.Log(orders0), 1)
	if got := m.Log(orders0).Offsets().End; got != count+1 {
		t.Errorf("ends at %d, want %d", got, count+1)
	}
	if got := dirOf(m, orders0); got != "/b" {
		t.Errorf("is in %s", got)
	}
	mustClose(t, m)
}

// Moves keep to the rate, which may change under them.
func TestMoveRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testConfig(vfs.NewMem(), "/a", "/b")
		c.MoveRate = 100
		m := mustLoad(t, c)
		l := mustCreate(t, m, orders0)
		mustAppend(t, l, 100)
		size := time.Duration(l.Size())
		f := func(to string, want time.Duration) {
			t.Helper()
			began := time.Now()
			mustMove(t, m, orders0, to)
			if took := time.Since(began).Round(time.Millisecond); took != want {
				t.Errorf("%d bytes to %s took %v, want %v", size, to, took, want)
			}
		}
		f("/b", size*time.Second/100)
		time.AfterFunc(10*time.Second, func() {
			c.MoveRate = 0
			m.Reconfigure(c)
		})
		f("/a", 10*time.Second)
		f("/b", 0)
		mustClose(t, m)
	})
}

// A crash at any operation of a move loses nothing, and the next start can go on with it. With seed 3
// a copy once had a torn tail that a start kept, in quarantine, and never arrived.
func TestMoveCrash(t *testing.T) {
	for seed := range uint64(max(4, intFromEnv(t, "GREGOR_CRASH_POINTS", 0)/500)) {
		moveCrash(t, seed)
	}
}

func moveCrash(t *testing.T, seed uint64) {
	for point := 1; ; point++ {
		fsys := vfs.NewMem()
		c := testConfig(fsys, "/a", "/b")
		m := mustLoad(t, c)
		l := mustCreate(t, m, orders0)
		for range 5 {
			mustAppend(t, l, 3)
		}
		if err := l.IncrementLogStart(2); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Flush(), m.writeCheckpoints(m.dirs[0], recoveryPoints, logStarts, highWatermarks)); err != nil {
			t.Fatal(err)
		}
		ops := 0
		var crashed *vfs.Mem
		var at vfs.Op
		fsys.SetHook(func(op vfs.Op) error {
			if ops++; ops == point {
				at = op
				crashed = fsys.CrashClone(rand.New(rand.NewPCG(seed, uint64(point))))
			}
			return nil
		})
		mustMove(t, m, orders0, "/b")
		fsys.SetHook(nil)
		mustClose(t, m)
		if crashed == nil {
			if point < 30 {
				t.Errorf("only %d operations", point)
			}
			return
		}
		afterCrash(t, crashed, at)
	}
}

func afterCrash(t *testing.T, crashed *vfs.Mem, at vfs.Op) {
	t.Helper()
	m := mustLoad(t, testConfig(crashed, "/a", "/b"))
	l := m.Log(orders0)
	if l == nil {
		t.Fatalf("crash at %v %s: the partition is gone", at.Kind, at.Name)
	}
	if o := l.Offsets(); o.LogStart != 2 || o.End != 15 {
		t.Errorf("crash at %v %s: got %+v, want 2 to 15", at.Kind, at.Name, o)
	}
	finishMove(t, m, orders0)
	mustAppend(t, m.Log(orders0), 1)
	if dirOf(m, orders0) == "/a" {
		mustMove(t, m, orders0, "/b")
	}
	if got := m.Log(orders0).Offsets().End; got != 16 {
		t.Errorf("crash at %v %s: ends at %d, want 16", at.Kind, at.Name, got)
	}
	mustClose(t, m)
}

// The target fails in the middle of the exchange: the partition stays where it is, also
// after a restart, with what was written since.
func TestMoveTargetFails(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a", "/b")
	m := mustLoad(t, c)
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 5)
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	var named atomic.Bool
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRename && op.NewName == "/b/orders-0" {
			named.Store(true)
		}
		if named.Load() && op.Kind == vfs.OpSyncDir && op.Name == "/b" {
			return errDisk
		}
		return nil
	})
	m.mover.round(t.Context(), orders0)
	if !named.Load() {
		t.Fatal("no exchange")
	}
	fsys.SetHook(nil)
	mustAppend(t, m.Log(orders0), 4)
	if err := m.Log(orders0).Flush(); err != nil {
		t.Fatal(err)
	}
	_ = m.Close(context.Background())
	m = mustLoad(t, c)
	if got := m.Log(orders0).Offsets().End; got != 9 {
		t.Errorf("ends at %d, want 9", got)
	}
	finishMove(t, m, orders0)
	if got := m.Log(orders0).Offsets().End; got != 9 || dirOf(m, orders0) != "/b" {
		t.Errorf("ends at %d in %s, want 9 in /b", got, dirOf(m, orders0))
	}
	mustClose(t, m)
}
