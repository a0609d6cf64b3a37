package logdir

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A partition whose directory is missing, of which checkpoints and metadata know, is named, keeps
// its entries over starts in which nobody creates it, and then begins where it ended.
func TestMissingDirectory(t *testing.T) {
	for _, clean := range []bool{true, false} {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a", "/b"))
		mustAppend(t, mustCreate(t, m, orders0), 10)
		mustAppend(t, mustCreate(t, m, orders1), 5)
		mustClose(t, m)
		must(t, vfs.RemoveAll(fsys, "/a/orders-0"))
		if !clean {
			must(t, fsys.Remove("/a/"+checkpoint.CleanShutdown))
		}
		for range 2 {
			var report strings.Builder
			c := testConfig(fsys, "/a", "/b")
			c.Logger = slog.New(slog.NewTextHandler(&report, nil))
			m = mustLoad(t, c)
			wantLogs(t, m, orders1)
			if !strings.Contains(report.String(), "level=ERROR") || !strings.Contains(report.String(), "/a/orders-0") {
				t.Errorf("clean %v: nothing is said:\n%s", clean, report.String())
			}
			mustClose(t, m)
		}
		m = mustLoad(t, testConfig(fsys, "/a", "/b"))
		mustCreate(t, m, orders0)
		wantState(t, m, orders0, [3]int64{10, 10, 10})
		mustAppend(t, m.Log(orders0), 1)
		crashed := fsys.CrashClone(nil)
		mustClose(t, m)
		for _, fsys := range []*vfs.Mem{fsys, crashed} {
			m = mustLoad(t, testConfig(fsys, "/a", "/b"))
			if o := m.Log(orders0).Offsets(); o.LogStart != 10 || o.End < 10 {
				t.Errorf("clean %v, later: log [%d,%d), want it to begin at 10", clean, o.LogStart, o.End)
			}
			mustClose(t, m)
		}
	}
}

// Entries of a partition that is none any more are not inherited by one of the same name.
func TestEntriesAreNotInherited(t *testing.T) {
	stopped := func() *vfs.Mem {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a", "/b"))
		mustAppend(t, mustCreate(t, m, orders0), 10)
		mustAppend(t, mustCreate(t, m, orders1), 5)
		mustClose(t, m)
		return fsys
	}
	f := func(name string, fsys *vfs.Mem, o LoadOptions, then func(*Manager)) {
		t.Run(name, func(t *testing.T) {
			m := mustOpen(t, testConfig(fsys, "/a", "/b"))
			must(t, m.Load(context.Background(), o))
			then(m)
			if l := mustCreate(t, m, orders0); l.Offsets().End != 0 {
				t.Errorf("new log ends at %d", l.Offsets().End)
			}
			for k := range checkpointKinds {
				m.checkpointAll(k)
				if got := checkpointText(t, fsys, "/a", k); strings.Contains(got, "orders 0 10") {
					t.Errorf("%s: %s", checkpointNames[k], got)
				}
			}
			mustClose(t, m)
		})
	}
	nothing := func(*Manager) {}
	const id = ".0123456789abcdef0123456789abcdef"

	fsys := stopped()
	must(t, vfs.RemoveAll(fsys, "/a/orders-0"))
	f("deleted while the entries are known", fsys, LoadOptions{}, func(m *Manager) { must(t, m.Delete(orders0)) })

	fsys = stopped()
	must(t, vfs.RemoveAll(fsys, "/a/orders-0"))
	f("not in the metadata at start", fsys, LoadOptions{Belongs: func(p topic.Partition) bool { return p != orders0 }}, nothing)

	for _, suffix := range []string{checkpoint.DeleteDirSuffix, checkpoint.StrayDirSuffix} {
		fsys = stopped()
		must(t, fsys.Rename("/a/orders-0", "/a/orders-0"+id+suffix))
		f("put aside, crash before the checkpoints"+suffix, fsys, LoadOptions{}, nothing)
	}

	f("deleted, crash before the checkpoints of high watermarks", func() *vfs.Mem {
		fsys := stopped()
		m := mustLoad(t, testConfig(fsys, "/a", "/b"))
		must(t, m.Delete(orders0))
		return fsys.CrashClone(nil)
	}(), LoadOptions{}, nothing)
}

// A partition that lies in another directory is not missing where an old entry is.
func TestMovedIsNotMissing(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustClose(t, m)
	must(t, fsys.Rename("/a/orders-0", "/b/orders-0"))
	m = mustLoad(t, testConfig(fsys, "/a", "/b"))
	wantState(t, m, orders0, [3]int64{0, 0, 10})
	if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "0" {
		t.Errorf("recovery points of the old directory: %s", got)
	}
	mustClose(t, m)
}

// A high watermark that is not believed after a clean stop is not in the checkpoint for the next
// start, which may follow a kill and then has nothing to doubt it by.
func TestRefusedHighWatermarkIsCorrected(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustClose(t, m)
	must(t, checkpoint.WriteOffsets(fsys, "/a/"+checkpoint.HighWatermarks, map[topic.Partition]int64{orders0: 90}))
	m = mustLoad(t, testConfig(fsys, "/a"))
	wantState(t, m, orders0, [3]int64{0, 10, 10})
	killed := fsys.CrashClone(nil)
	m2 := mustLoad(t, testConfig(killed, "/a"))
	wantState(t, m2, orders0, [3]int64{0, 10, 10})
	mustClose(t, m2)
	mustClose(t, m)
}

func TestIsAsideOf(t *testing.T) {
	f := func(name string, p topic.Partition, want bool) {
		t.Helper()
		if got := isAsideOf(name, p); got != want {
			t.Errorf("isAsideOf(%q, %v) = %v", name, p, got)
		}
	}
	long := topic.Partition{Topic: strings.Repeat("x", 249), Partition: 3}
	f(asideName(random.Host("names"), orders0, checkpoint.DeleteDirSuffix), orders0, true)
	f(asideName(random.Host("names"), orders0, checkpoint.StrayDirSuffix), orders1, false)
	f(asideName(random.Host("names"), topic.Partition{Topic: "or.ders"}, checkpoint.DeleteDirSuffix), topic.Partition{Topic: "or.ders"}, true)
	f(asideName(random.Host("names"), topic.Partition{Topic: "or"}, checkpoint.DeleteDirSuffix), orders0, false)
	f(asideName(random.Host("names"), long, checkpoint.DeleteDirSuffix), long, true)
	f(asideName(random.Host("names"), long, checkpoint.DeleteDirSuffix), topic.Partition{Topic: long.Topic, Partition: 4}, false)
	f("orders-0", orders0, false)
}
