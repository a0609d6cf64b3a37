package logdir

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// opened counts the files and directories below a partition that loading opens, and looks for
// marks of copies.
func opened(t *testing.T, fsys *vfs.Mem, c Config) (m *Manager, count int) {
	t.Helper()
	fsys.SetHook(func(op vfs.Op) error {
		if _, err := topic.ParsePartition(partitionOf(op.Name)); err == nil && (op.Kind == vfs.OpOpen || op.Kind == vfs.OpReadDir || op.Kind == vfs.OpStat && path.Base(op.Name) == checkpoint.CopyMarker) {
			count++
		}
		return nil
	})
	m = mustLoad(t, c)
	fsys.SetHook(nil)
	return m, count
}

// partitionOf returns the element of a path behind the log directory /a.
func partitionOf(name string) string {
	rest := name[min(len("/a/"), len(name)):]
	for i := range rest {
		if rest[i] == '/' {
			return rest[:i]
		}
	}
	return rest
}

// After a clean stop a log is known without opening anything of it, unless something was
// changed meanwhile.
func TestCleanState(t *testing.T) {
	f := func(what string, change func(fsys *vfs.Mem), wantOpened bool) {
		t.Helper()
		fsys := vfs.NewMem()
		c := testConfig(fsys, "/a")
		m := mustLoad(t, c)
		mustAppend(t, mustCreate(t, m, orders0), 5)
		l := m.Log(orders0)
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 3)
		l.SetHighWatermark(8)
		mustClose(t, m)
		change(fsys)
		m, count := opened(t, fsys, c)
		if (count > 0) != wantOpened {
			t.Errorf("%s: opened %d files", what, count)
		}
		l = m.Log(orders0)
		if got := l.Offsets(); got.End != 8 || got.HighWatermark != 8 || got.LogStart != 0 || l.NumSegments() != 2 {
			t.Errorf("%s: got %+v and %d segments, want 8 records in 2", what, got, l.NumSegments())
		}
		if got := l.TopicID(); got != ordersID {
			t.Errorf("%s: topic id %v", what, got)
		}
		if got := l.LatestEpoch(); got != 0 {
			t.Errorf("%s: leader epoch %d", what, got)
		}
		if err := l.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		mustAppend(t, l, 1)
		mustClose(t, m)
	}
	const partition = "/a/orders-0/"
	touch := func(name string) func(fsys *vfs.Mem) {
		return func(fsys *vfs.Mem) {
			if err := fsys.SetModTime(name, time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	f("untouched", func(*vfs.Mem) {}, false)
	f("active segment written", touch(partition+"00000000000000000005.log"), true)
	f("sealed segment written", touch(partition+"00000000000000000000.log"), true)
	f("epochs written", touch(partition+checkpoint.LeaderEpochs), true)
	f("snapshot written in place, which nobody does", touch(partition+"00000000000000000008.snapshot"), false)
	f("topic id written", touch(partition+checkpoint.PartitionMetadataFile), true)
	f("index removed", func(fsys *vfs.Mem) {
		if err := fsys.Remove(partition + "00000000000000000000.index"); err != nil {
			t.Fatal(err)
		}
	}, true)
	f("another broker was here", func(fsys *vfs.Mem) {
		if err := checkpoint.WriteCleanShutdown(fsys, "/a/"+checkpoint.CleanShutdown, 5); err != nil {
			t.Fatal(err)
		}
	}, true)
	f("file damaged", func(fsys *vfs.Mem) { logtest.Flip(t, fsys, "/a/"+checkpoint.CleanState, 40) }, true)
	f("file cut", func(fsys *vfs.Mem) {
		if err := writeHint(fsys, "/a/"+checkpoint.CleanState, []byte(cleanStateMagic)); err != nil {
			t.Fatal(err)
		}
	}, true)
	f("file removed", func(fsys *vfs.Mem) {
		if err := fsys.Remove("/a/" + checkpoint.CleanState); err != nil {
			t.Fatal(err)
		}
	}, true)
}

// After a kill a start looks at the files of a healthy partition, not for those that only damage makes.
func TestOpenedAfterKill(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 5)
	if err := m.dirs.unlock(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpOpen || op.Kind == vfs.OpReadDir {
			count[path.Base(op.Name)]++
		}
		return nil
	})
	mustLoad(t, c)
	fsys.SetHook(nil)
	for _, name := range []string{checkpoint.TransactionsFile, checkpoint.Losses, "00000000000000000000.txnindex"} {
		if count[name] > 0 {
			t.Errorf("%s is looked for %d times", name, count[name])
		}
	}
	for _, name := range []string{"orders-0", checkpoint.PartitionMetadataFile, checkpoint.LeaderEpochs, "00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"} {
		if count[name] != 1 {
			t.Errorf("%s is opened %d times, want 1", name, count[name])
		}
	}
}

// The file serves one start: after a crash it must not be found.
func TestCleanStateServesOnce(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 5)
	mustClose(t, m)
	mustLoad(t, c)
	if _, err := fsys.Stat("/a/" + checkpoint.CleanState); err == nil {
		t.Error("the file is still there")
	}
	m = mustLoad(t, testConfig(fsys.CrashClone(nil), "/a"))
	if got := m.Log(orders0).Offsets().End; got != 5 {
		t.Errorf("log end %d after a crash, want 5", got)
	}
}

// Entries of partitions that are gone or not ours are of no consequence.
func TestCleanStateOfOthers(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 5)
	mustCreate(t, m, orders1)
	mustClose(t, m)
	if err := vfs.RemoveAll(fsys, "/a/orders-1"); err != nil {
		t.Fatal(err)
	}
	m = mustOpen(t, c)
	err := m.Load(context.Background(), LoadOptions{Fate: func(FoundPartition) Decision { return keepIf(false) }})
	if err != nil {
		t.Fatal(err)
	}
	wantLogs(t, m)
	mustClose(t, m)
}

func FuzzDecodeCleanStates(f *testing.F) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(f, c)
	mustAppend(f, mustCreate(f, m, orders0), 5)
	mustClose(f, m)
	b, err := vfs.ReadFile(fsys, "/a/"+checkpoint.CleanState, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[cleanStateHeader:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, entries []byte) {
		b := append(make([]byte, cleanStateHeader), entries...)
		seal(b, 7)
		states, err := decodeCleanStates(b, 7)
		if err != nil {
			return
		}
		again, err := decodeCleanStates(encodeCleanStates(states, 7), 7)
		if err != nil || len(again) != len(states) {
			t.Errorf("%d entries, again %d: %v", len(states), len(again), err)
		}
	})
}
