package logdir

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A diary is a Cleaner that notes what it is told.
type diary struct {
	mu     sync.Mutex
	paused map[topic.Partition]int
	told   []string
}

func (d *diary) note(format string, args ...any) {
	d.told = append(d.told, fmt.Sprintf(format, args...))
}

func (d *diary) Pause(p topic.Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused[p]++
}

func (d *diary) Resume(p topic.Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused[p]--; d.paused[p] < 0 {
		d.note("%v was not paused", p)
	}
}

func (d *diary) Abort(p topic.Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("abort %v", p)
}

func (d *diary) Truncated(dir string, p topic.Partition, offset int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("truncated %v in %s to %d, pauses %d", p, dir, offset, d.paused[p])
	return nil
}

func (d *diary) Carry(p topic.Partition, from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("carry %v from %s to %s, pauses %d", p, from, to, d.paused[p])
	return nil
}

func (d *diary) Forget(dir string, partitions ...topic.Partition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("forget %v in %s", partitions, dir)
	return nil
}

func (d *diary) DirFailed(dir string, partitions ...topic.Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("failed %s with %v", dir, partitions)
}

// want compares what was told since the last call, and the pauses that are left.
func (d *diary) want(t *testing.T, pauses int, told ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.told, told) {
		t.Errorf("told %q, want %q", d.told, told)
	}
	d.told = nil
	left := 0
	for _, n := range d.paused {
		left += n
	}
	if left != pauses {
		t.Errorf("%d pauses are left, want %d", left, pauses)
	}
}

// The cleaner is kept off a log while it is truncated, deleted or moved, and told about it.
func TestCleanerIsTold(t *testing.T) {
	c := testConfig(vfs.NewMem(), "/a", "/b")
	d := &diary{paused: make(map[topic.Partition]int)}
	c.Cleaner = d
	m := mustLoad(t, c)
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 40)
	mustAppend(t, l, 10)
	d.want(t, 0, "forget [orders-0] in /a")

	if err := m.TruncateTo(orders0, 40); err != nil {
		t.Fatal(err)
	}
	d.want(t, 0, "truncated orders-0 in /a to 40, pauses 1")
	if err := m.Move(orders0, "/b"); err != nil {
		t.Fatal(err)
	}
	d.want(t, 1)
	if err := m.Move(orders0, "/a"); err != nil { // where it is: the move ends
		t.Fatal(err)
	}
	d.want(t, 0)
	mustMove(t, m, orders0, "/b")
	d.want(t, 0, "carry orders-0 from /a to /b, pauses 1", "forget [orders-0] in /a")

	if err := m.Move(orders0, "/a"); err != nil {
		t.Fatal(err)
	}
	d.want(t, 1)
	mustClose(t, m)
	d = &diary{paused: make(map[topic.Partition]int)}
	c.Cleaner = d
	m = mustLoad(t, c) // the move goes on
	d.want(t, 1)
	if err := m.Fail("/a", errDisk); err != nil {
		t.Fatal(err)
	}
	d.want(t, 0, "failed /a with [orders-0]")
	if err := m.Delete(orders0); err != nil {
		t.Fatal(err)
	}
	d.want(t, 0, "forget [orders-0] in /b")
}

// Retention leaves compacted logs to the cleaner, and pauses it for the others; a topic that is
// not compacted any more has its cleaning aborted.
func TestRetentionLeavesCompactedLogsAlone(t *testing.T) {
	c := testConfig(vfs.NewMem(), "/a")
	d := &diary{paused: make(map[topic.Partition]int)}
	c.Cleaner = d
	m := mustLoad(t, c)
	short := commitlog.DefaultConfig()
	short.RetentionMs = 1
	l, err := m.Create(orders0, ordersID, short, uuid.Zero, true)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, 1)
	compacted := short
	compacted.Compact = true
	m.SetConfig("orders", 2, compacted)
	m.retain(time.Now())
	if start := l.Offsets().LogStart; start != 0 {
		t.Errorf("a compacted log begins at %d", start)
	}
	m.SetConfig("orders", 2, short)
	d.want(t, 0, "forget [orders-0] in /a", "abort orders-0")
	m.retain(time.Now())
	if start := l.Offsets().LogStart; start != 1 {
		t.Errorf("the log begins at %d, want 1", start)
	}
	d.want(t, 0)
}
