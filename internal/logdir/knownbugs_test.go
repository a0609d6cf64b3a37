package logdir

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// Reports about Kafka's log directories as tests, by their numbers.

// logged makes the manager's messages readable.
func logged(c *Config) *bytes.Buffer {
	var text bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&text, nil))
	return &text
}

// What does not belong into a log directory is named, left alone, and keeps nobody from loading.
func TestKAFKA5118(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 3)
	mustClose(t, m)
	for _, name := range []string{"lost+found", "foo", "orders", "orders-x"} {
		mustMkdir(t, fsys, "/a/"+name)
	}
	mustWrite(t, fsys, "/a/.DS_Store", "x")
	mustWrite(t, fsys, "/a/orders-7", "a file")

	text := logged(&c)
	m = mustLoad(t, c)
	wantState(t, m, orders0, [3]int64{0, 3, 3})
	wantLogs(t, m, orders0)
	mustClose(t, m)
	for _, name := range []string{"lost+found", "foo", "orders", "orders-x"} {
		if !strings.Contains(text.String(), "dir=/a/"+name+"\n") || !exists(t, fsys, "/a/"+name) {
			t.Errorf("%s is not named, or gone:\n%s", name, text)
		}
	}
	for _, name := range []string{".DS_Store", "orders-7"} {
		if !exists(t, fsys, "/a/"+name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// A directory that cannot be used at start goes offline and is named; the others serve.
func TestKAFKA13773(t *testing.T) {
	f := func(name string, prepare func(*vfs.Mem)) {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			c := testConfig(fsys, "/a", "/b")
			m := mustLoad(t, c)
			mustAppend(t, mustCreate(t, m, orders0), 1) // in /a
			mustAppend(t, mustCreate(t, m, orders1), 1) // in /b
			mustClose(t, m)

			prepare(fsys)
			text := logged(&c)
			m = mustLoad(t, c)
			if d := m.Dirs(); !d[0].Online || d[1].Online || d[1].Err == nil {
				t.Errorf("got %+v, want /a online and /b not", d)
			}
			wantLogs(t, m, orders0)
			mustAppend(t, m.Log(orders0), 1)
			if l := mustCreate(t, m, orders2); !strings.HasPrefix(l.Dir(), "/a/") {
				t.Errorf("a new log is in %s", l.Dir())
			}
			if !strings.Contains(text.String(), "level=ERROR") || !strings.Contains(text.String(), "dir=/b") {
				t.Errorf("nobody names the directory:\n%s", text)
			}
			mustClose(t, m)
		})
	}
	fail := func(err error, kinds ...vfs.OpKind) func(*vfs.Mem) {
		return func(fsys *vfs.Mem) {
			fsys.SetHook(func(op vfs.Op) error {
				for _, kind := range kinds {
					if op.Kind == kind && (op.Name == "/b" || strings.HasPrefix(op.Name, "/b/")) {
						return err
					}
				}
				return nil
			})
		}
	}
	f("full, when logs must be recovered", func(fsys *vfs.Mem) {
		if err := fsys.Remove("/b/" + checkpoint.CleanShutdown); err != nil {
			t.Fatal(err)
		}
		fail(syscall.ENOSPC, vfs.OpCreate, vfs.OpWrite, vfs.OpMkdir)(fsys)
	})
	f("unreadable", fail(syscall.EACCES, vfs.OpOpen, vfs.OpCreate, vfs.OpRead, vfs.OpReadDir))
	f("a bad disk", fail(syscall.EIO, vfs.OpRead, vfs.OpReadDir))
	f("read only", fail(syscall.EROFS, vfs.OpCreate, vfs.OpWrite, vfs.OpRemove, vfs.OpRename, vfs.OpMkdir))
}

// One that is full and was stopped cleanly is of use: its logs are read, and written when there is
// room again.
func TestKAFKA13773Full(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a", "/b")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 1) // in /a
	mustAppend(t, mustCreate(t, m, orders1), 1) // in /b
	mustClose(t, m)
	fsys.SetHook(func(op vfs.Op) error {
		if strings.HasPrefix(op.Name, "/b/") && (op.Kind == vfs.OpCreate || op.Kind == vfs.OpWrite) {
			return syscall.ENOSPC
		}
		return nil
	})
	m = mustLoad(t, c)
	wantLogs(t, m, orders0, orders1)
	mustAppend(t, m.Log(orders0), 1)
	_, err := m.Log(orders1).AppendAsLeader(batch(t, 1), 0, commitlog.AppendOptions{})
	if _, full := errors.AsType[*commitlog.DiskFullError](err); !full {
		t.Errorf("append to the full directory: got %v", err)
	}
	if list := consume(t, m.Log(orders1), 0, commitlog.ReadUncommitted); len(list) != 1 {
		t.Errorf("read %v of the full directory", list)
	}
	fsys.SetHook(nil)
	mustAppend(t, m.Log(orders1), 1)
	mustClose(t, m)
}

// A start in the middle of deletions: long and dotted names parse, and the files go.
func TestKAFKA4893(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	long := topic.Partition{Topic: strings.Repeat("x", 249), Partition: 12345}
	dotted := topic.Partition{Topic: "with.dots-1.and-2", Partition: 3}
	for _, p := range []topic.Partition{long, dotted, orders0} {
		l, err := m.Create(p, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 1)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Delete(long, dotted); err != nil {
		t.Fatal(err)
	}
	crashed := fsys.CrashClone(nil)
	c.FS = crashed
	m = mustOpen(t, c)
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	wantLogs(t, m, orders0)
	m.deletions.removeDue(m.cfg.Now().Add(m.cfg.FileDeleteDelay))
	for _, name := range names(t, crashed, "/a") {
		if strings.HasSuffix(name, checkpoint.DeleteDirSuffix) || strings.HasPrefix(name, "x") || strings.HasPrefix(name, "with") {
			t.Errorf("%s is left", name)
		}
	}
	mustClose(t, m)
}
