package logdir

import (
	"context"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func mustMeta(t testing.TB, fsys vfs.FS, dir string) checkpoint.MetaProperties {
	t.Helper()
	meta, err := checkpoint.ReadMetaProperties(fsys, dir+"/"+checkpoint.MetaPropertyFile)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func TestOpenFresh(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustOpen(t, Config{FS: fsys, Dirs: []string{"/a/logs", "/b/logs/"}, NodeID: -1})
	if _, err := uuid.Parse(m.ClusterID()); err != nil || m.NodeID() != 1 {
		t.Errorf("cluster %q, node %d, want a new id and node 1", m.ClusterID(), m.NodeID())
	}
	crashed := fsys.CrashClone(nil)
	for i, d := range m.Dirs() {
		if d.Path != []string{"/a/logs", "/b/logs"}[i] || !d.Online || d.Err != nil || d.ID.IsReserved() || len(d.Logs) != 0 {
			t.Errorf("directory %+v", d)
		}
		want := checkpoint.MetaProperties{Version: 1, ClusterID: m.ClusterID(), NodeID: 1, DirectoryID: d.ID}
		if got := mustMeta(t, crashed, d.Path); got != want {
			t.Errorf("%s after a crash: got %+v, want %+v", d.Path, got, want)
		}
		if total, free, err := d.Space(); err != nil || free > total {
			t.Errorf("%s: space %d of %d, %v", d.Path, free, total, err)
		}
	}
	id := m.ClusterID()
	mustClose(t, m)
	if exists(t, fsys, "/a/logs/.lock") {
		t.Error("the lock file is there after Close")
	}
	if m := mustOpen(t, Config{FS: fsys, Dirs: []string{"/a/logs", "/b/logs"}, NodeID: -1}); m.ClusterID() != id {
		t.Errorf("opened again: cluster %q, want %q", m.ClusterID(), id)
	}
}

func TestOpenLocked(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			mustOpen(t, testConfig(fsys, root+"/a"))
			_, err := Open(testConfig(fsys, root+"/b", root+"/a"))
			logtest.WantError(t, err, vfs.ErrLocked, root+"/a", "in use by another broker")
			mustOpen(t, testConfig(fsys, root+"/b")) // the failed one let go of it
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	const one, two = "AAAAAAAAAAEAAAAAAAAAAQ", "AAAAAAAAAAEAAAAAAAAAAg"
	f := func(a, b string, want error, parts ...string) {
		t.Helper()
		fsys := vfs.NewMem()
		mustWrite(t, fsys, "/a/meta.properties", a)
		mustWrite(t, fsys, "/b/meta.properties", b)
		_, err := Open(testConfig(fsys, "/a", "/b"))
		logtest.WantError(t, err, want, parts...)
		if got := readText(t, fsys, "/a/meta.properties"); got != a {
			t.Errorf("the file was written: %q", got)
		}
	}
	const good = "version=1\ncluster.id=cluster\nnode.id=1\n"
	f(good, "version=1\ncluster.id=other\nnode.id=1", ErrWrongDirectory, "/b/meta.properties: cluster.id=other, but this broker's is cluster")
	f("version=1\ncluster.id=cluster\nnode.id=2", good, ErrWrongDirectory, "/a/meta.properties: node.id=2, but this broker's is 1")
	f("version=0\nbroker.id=3", good, ErrWrongDirectory, "/a/meta.properties: node.id=3")
	f(good+"directory.id="+one, good+"directory.id="+one, ErrWrongDirectory, "/b/meta.properties: directory.id="+one, "/a/meta.properties")
	f(good+"directory.id=AAAAAAAAAAAAAAAAAAAAYw", good+"directory.id="+two, ErrWrongDirectory, "/a/meta.properties", "reserved")

	fsys := vfs.NewMem()
	mustWrite(t, fsys, "/a/meta.properties", "version=1\ncluster.id=x\nnode.id=7")
	mustWrite(t, fsys, "/b/meta.properties", "version=1\ncluster.id=y\nnode.id=8")
	_, err := Open(Config{FS: fsys, Dirs: []string{"/a", "/b"}, NodeID: -1})
	logtest.WantError(t, err, ErrWrongDirectory, "/b/meta.properties: cluster.id=y, but /a/meta.properties has x", "node.id=8")

	_, err = Open(testConfig(fsys, "/a", "/a/"))
	logtest.WantError(t, err, ErrDuplicate, "/a")
	_, err = Open(testConfig(fsys))
	logtest.WantError(t, err, ErrNoDirectory)
}

// What is not there is taken from the configuration or the other files, and written.
func TestOpenCompletesMeta(t *testing.T) {
	fsys := vfs.NewMem()
	mustWrite(t, fsys, "/a/meta.properties", "version=0\nbroker.id=7\ncluster.id=c\n")
	mustWrite(t, fsys, "/b/meta.properties", "")
	m := mustOpen(t, Config{FS: fsys, Dirs: []string{"/a", "/b"}, NodeID: -1, MetadataDir: "/m"})
	if got := mustMeta(t, fsys, "/a"); got.Version != 0 {
		t.Errorf("version %d before the metadata log begins, want 0", got.Version)
	}
	m.SettleMeta()
	for _, dir := range []string{"/a", "/b", "/m"} {
		got := mustMeta(t, fsys, dir)
		if got.ClusterID != "c" || got.NodeID != 7 || got.DirectoryID.IsZero() {
			t.Errorf("%s: got %+v", dir, got)
		}
	}
	if len(m.Dirs()) != 2 {
		t.Errorf("got %d directories for logs, want 2", len(m.Dirs()))
	}
	before := readText(t, fsys, "/a/meta.properties")
	mustClose(t, m)
	m = mustOpen(t, Config{FS: fsys, Dirs: []string{"/a", "/b"}, NodeID: -1, MetadataDir: "/m"})
	if got := readText(t, fsys, "/a/meta.properties"); got != before {
		t.Error("a complete file was written again")
	}
	mustClose(t, m)
}

// A directory that fails at start is offline; the others serve (KAFKA-13773).
func TestOpenDirectoryFails(t *testing.T) {
	f := func(prepare func(t *testing.T, fsys *vfs.Mem)) {
		t.Helper()
		fsys := vfs.NewMem()
		prepare(t, fsys)
		m := mustLoad(t, testConfig(fsys, "/a", "/b"))
		dirs := m.Dirs()
		if !dirs[0].Online || dirs[1].Online || dirs[1].Err == nil {
			t.Errorf("got %+v, want /a online and /b not", dirs)
		}
		mustCreate(t, m, orders0)
		if exists(t, fsys, "/b/.lock") {
			t.Error("the offline directory is locked")
		}
		_, err := m.Create(orders1, ordersID, m.Log(orders0).Config(), uuid.Zero, false)
		logtest.WantError(t, err, ErrMayExist, "/b")
		mustClose(t, m)

		_, err = Open(testConfig(fsys, "/b", "/a")) // the first one has the metadata
		logtest.WantError(t, err, ErrNoDirectory, "/b")
		_, err = Open(testConfig(fsys, "/b"))
		logtest.WantError(t, err, ErrNoDirectory, "/b")
	}
	f(func(t *testing.T, fsys *vfs.Mem) { mustWrite(t, fsys, "/b", "a file") })
	f(func(t *testing.T, fsys *vfs.Mem) { mustWrite(t, fsys, "/b/meta.properties", "version=9") })
	f(func(t *testing.T, fsys *vfs.Mem) {
		mustMkdir(t, fsys, "/b")
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpCreate && op.Name == "/b/meta.properties.tmp" {
				return errDisk
			}
			return nil
		})
	})
}

// Closed before it was loaded, a directory stays as it was.
func TestCloseWithoutLoad(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustCreate(t, m, orders0)
	mustClose(t, m)
	m = mustOpen(t, testConfig(fsys, "/a"))
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !hasMarker(t, fsys, "/a") || checkpointText(t, fsys, "/a", recoveryPoints) != "1, orders 0 0" {
		t.Error("the marker or a checkpoint was changed")
	}
}
