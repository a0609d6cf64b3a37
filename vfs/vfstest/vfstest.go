// Package vfstest holds the rules that every vfs.FS keeps, as a test suite.
package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// Run tests a file system. The function makes one and names an empty directory in it.
func Run(t *testing.T, newFS func(t *testing.T) (fsys vfs.FS, dir string)) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, fsys vfs.FS, dir string)
	}{
		{"OpenFlags", testOpenFlags},
		{"ReadWrite", testReadWrite},
		{"Truncate", testTruncate},
		{"ReadOnly", testReadOnly},
		{"OpenFileSurvivesNameChanges", testOpenFileSurvivesNameChanges},
		{"Rename", testRename},
		{"RenameDir", testRenameDir},
		{"Remove", testRemove},
		{"ReadDir", testReadDir},
		{"StatAndModTime", testStatAndModTime},
		{"Lock", testLock},
		{"Space", testSpace},
		{"MkdirAllRemoveAll", testMkdirAllRemoveAll},
		{"ReadFileLimit", testReadFileLimit},
		{"WriteFileAtomic", testWriteFileAtomic},
		{"ConcurrentUse", testConcurrentUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, dir := newFS(t)
			c.test(t, fsys, dir)
		})
	}
}

func open(t *testing.T, fsys vfs.FS, name string, flag int) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	must(t, c.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr checks that an error is of a kind and names the path.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func write(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	f := open(t, fsys, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	defer mustClose(t, f)
	if n, err := f.WriteAt([]byte(content), 0); n != len(content) || err != nil {
		t.Fatalf("WriteAt: got %d, %v, want %d", n, err, len(content))
	}
}

func wantContent(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	got, err := vfs.ReadFile(fsys, name, 1<<20)
	if err != nil || string(got) != want {
		t.Fatalf("%s: got %q, %v, want %q", name, got, err, want)
	}
}

func wantMissing(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	_, err := fsys.Stat(name)
	wantErr(t, "stat "+name, err, fs.ErrNotExist)
}

func testOpenFlags(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	_, err := fsys.OpenFile(name, os.O_RDWR, 0)
	wantErr(t, "open a missing file", err, fs.ErrNotExist)
	_, err = fsys.OpenFile(filepath.Join(dir, "no", "f"), os.O_RDWR|os.O_CREATE, 0o644)
	wantErr(t, "create in a missing directory", err, fs.ErrNotExist)

	f := open(t, fsys, name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if f.Name() != name {
		t.Errorf("Name: got %q, want %q", f.Name(), name)
	}
	mustClose(t, f)
	_, err = fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	wantErr(t, "create an existing file", err, fs.ErrExist)

	write(t, fsys, name, "content")
	mustClose(t, open(t, fsys, name, os.O_RDWR|os.O_CREATE))
	wantContent(t, fsys, name, "content")
	mustClose(t, open(t, fsys, name, os.O_RDWR|os.O_TRUNC))
	wantContent(t, fsys, name, "")

	if _, err := fsys.OpenFile(dir, os.O_RDONLY, 0); err == nil {
		t.Error("a directory opened as a file")
	}
}

func testReadWrite(t *testing.T, fsys vfs.FS, dir string) {
	f := open(t, fsys, filepath.Join(dir, "f"), os.O_RDWR|os.O_CREATE)
	defer mustClose(t, f)
	for _, w := range []struct {
		data string
		off  int64
	}{{"hello", 0}, {"LO", 3}, {"end", 8}, {"", 100}} {
		if n, err := f.WriteAt([]byte(w.data), w.off); n != len(w.data) || err != nil {
			t.Fatalf("WriteAt(%q, %d): got %d, %v", w.data, w.off, n, err)
		}
	}
	if size, err := f.Size(); size != 11 || err != nil {
		t.Fatalf("Size: got %d, %v, want 11", size, err)
	}
	must(t, f.Sync())
	read := func(size int, off int64, want string, wantErr error) {
		t.Helper()
		p := make([]byte, size)
		n, err := f.ReadAt(p, off)
		if string(p[:n]) != want || !errors.Is(err, wantErr) {
			t.Errorf("ReadAt(%d bytes, %d): got %q, %v, want %q, %v", size, off, p[:n], err, want, wantErr)
		}
	}
	read(11, 0, "helLO\x00\x00\x00end", nil)
	read(2, 3, "LO", nil)
	read(9, 8, "end", io.EOF)
	read(1, 11, "", io.EOF)
	read(1, 500, "", io.EOF)
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("ReadAt(-1): got %v, want an error", err)
	}
	if _, err := f.WriteAt([]byte("x"), -1); err == nil {
		t.Error("WriteAt(-1): no error")
	}
}

func testTruncate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "0123456789")
	f := open(t, fsys, name, os.O_RDWR)
	defer mustClose(t, f)
	must(t, f.Truncate(4))
	wantContent(t, fsys, name, "0123")
	must(t, f.Truncate(6))
	wantContent(t, fsys, name, "0123\x00\x00")
	if f.Truncate(-1) == nil {
		t.Error("Truncate(-1): no error")
	}
}

func testReadOnly(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "x")
	f := open(t, fsys, name, os.O_RDONLY)
	defer mustClose(t, f)
	if _, err := f.WriteAt([]byte("y"), 0); err == nil {
		t.Error("wrote to a file opened for reading")
	}
	if f.Truncate(0) == nil {
		t.Error("truncated a file opened for reading")
	}
	wantContent(t, fsys, name, "x")
}

func testOpenFileSurvivesNameChanges(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "abc")
	f := open(t, fsys, name, os.O_RDWR)
	defer mustClose(t, f)
	must(t, fsys.Rename(name, name+".deleted"))
	if _, err := f.WriteAt([]byte("d"), 3); err != nil {
		t.Fatal(err)
	}
	wantContent(t, fsys, name+".deleted", "abcd")
	must(t, fsys.Remove(name+".deleted"))
	p := make([]byte, 4)
	if _, err := f.ReadAt(p, 0); err != nil || string(p) != "abcd" {
		t.Fatalf("ReadAt of a removed file: got %q, %v", p, err)
	}
}

func testRename(t *testing.T, fsys vfs.FS, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	wantErr(t, "rename a missing file", fsys.Rename(a, b), fs.ErrNotExist)
	write(t, fsys, a, "A")
	write(t, fsys, b, "B")
	must(t, fsys.Rename(a, b))
	wantContent(t, fsys, b, "A")
	wantMissing(t, fsys, a)
	must(t, fsys.Rename(b, b))
	wantContent(t, fsys, b, "A")
	must(t, fsys.SyncDir(dir))
}

func testRenameDir(t *testing.T, fsys vfs.FS, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, fsys.Mkdir(a, 0o755))
	write(t, fsys, filepath.Join(a, "f"), "content")
	must(t, fsys.Rename(a, b))
	wantContent(t, fsys, filepath.Join(b, "f"), "content")
	wantMissing(t, fsys, a)

	must(t, fsys.Mkdir(a, 0o755))
	if fsys.Rename(a, filepath.Join(a, "below")) == nil {
		t.Error("a directory moved into itself")
	}
	if fsys.Rename(a, b) == nil {
		t.Error("a directory replaced one that is not empty")
	}
	write(t, fsys, filepath.Join(dir, "file"), "")
	if fsys.Rename(a, filepath.Join(dir, "file")) == nil {
		t.Error("a directory replaced a file")
	}
}

func testRemove(t *testing.T, fsys vfs.FS, dir string) {
	sub := filepath.Join(dir, "sub")
	wantErr(t, "remove a missing file", fsys.Remove(sub), fs.ErrNotExist)
	must(t, fsys.Mkdir(sub, 0o755))
	wantErr(t, "make a directory twice", fsys.Mkdir(sub, 0o755), fs.ErrExist)
	write(t, fsys, filepath.Join(sub, "f"), "")
	if fsys.Remove(sub) == nil {
		t.Fatal("removed a directory that is not empty")
	}
	must(t, fsys.Remove(filepath.Join(sub, "f")))
	must(t, fsys.Remove(sub))
	wantMissing(t, fsys, sub)
	wantErr(t, "make a directory in a missing one", fsys.Mkdir(filepath.Join(sub, "x"), 0o755), fs.ErrNotExist)
}

func testReadDir(t *testing.T, fsys vfs.FS, dir string) {
	_, err := fsys.ReadDir(filepath.Join(dir, "none"))
	wantErr(t, "list a missing directory", err, fs.ErrNotExist)
	write(t, fsys, filepath.Join(dir, "b"), "")
	write(t, fsys, filepath.Join(dir, "c"), "")
	must(t, fsys.Mkdir(filepath.Join(dir, "a"), 0o755))
	write(t, fsys, filepath.Join(dir, "a", "not listed"), "")
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %v", e.Name(), e.IsDir()))
	}
	if want := []string{"a true", "b false", "c false"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := fsys.ReadDir(filepath.Join(dir, "b")); err == nil {
		t.Error("listed a file")
	}
}

func testStatAndModTime(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "123")
	info, err := fsys.Stat(name)
	must(t, err)
	if info.Name() != "f" || info.Size() != 3 || info.IsDir() || info.Mode().Perm() != 0o644 {
		t.Errorf("got %s, %d bytes, dir %v, mode %v", info.Name(), info.Size(), info.IsDir(), info.Mode())
	}
	if d, err := fsys.Stat(dir); err != nil || !d.IsDir() {
		t.Errorf("Stat of a directory: got %v, %v", d, err)
	}
	past := time.UnixMilli(1_600_000_000_123)
	must(t, fsys.SetModTime(name, past))
	f := open(t, fsys, name, os.O_RDWR)
	defer mustClose(t, f)
	if got, err := f.ModTime(); !got.Equal(past) || err != nil {
		t.Errorf("ModTime: got %v, %v, want %v", got, err, past)
	}
	_, err = f.WriteAt([]byte("x"), 0)
	must(t, err)
	if info, err := fsys.Stat(name); err != nil || !info.ModTime().After(past) {
		t.Errorf("a write left the modification time %v, %v", info.ModTime(), err)
	}
	wantErr(t, "set the time of a missing file", fsys.SetModTime(name+"x", past), fs.ErrNotExist)
}

func testLock(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, ".lock")
	l, err := fsys.Lock(name)
	must(t, err)
	_, err = fsys.Lock(name)
	wantErr(t, "lock twice", err, vfs.ErrLocked)
	mustClose(t, l)
	wantErr(t, "unlock twice", l.Close(), fs.ErrClosed)
	wantMissing(t, fsys, name)
	l, err = fsys.Lock(name)
	must(t, err)
	mustClose(t, l)
}

func testSpace(t *testing.T, fsys vfs.FS, dir string) {
	total, free, err := fsys.Space(dir)
	if err != nil || free <= 0 || total < free {
		t.Errorf("got total %d, free %d, %v", total, free, err)
	}
	_, _, err = fsys.Space(filepath.Join(dir, "none"))
	wantErr(t, "space of a missing directory", err, fs.ErrNotExist)
}

func testMkdirAllRemoveAll(t *testing.T, fsys vfs.FS, dir string) {
	top := filepath.Join(dir, "x")
	deep := filepath.Join(top, "y", "z")
	must(t, vfs.MkdirAll(fsys, deep, 0o755))
	must(t, vfs.MkdirAll(fsys, deep, 0o755))
	write(t, fsys, filepath.Join(deep, "f"), "1")
	write(t, fsys, filepath.Join(top, "g"), "2")
	if vfs.MkdirAll(fsys, filepath.Join(top, "g"), 0o755) == nil {
		t.Error("MkdirAll took a file for a directory")
	}
	must(t, vfs.RemoveAll(fsys, top))
	wantMissing(t, fsys, top)
	must(t, vfs.RemoveAll(fsys, top))
}

func testReadFileLimit(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "12345")
	if b, err := vfs.ReadFile(fsys, name, 5); err != nil || string(b) != "12345" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := vfs.ReadFile(fsys, name, 4); err == nil {
		t.Error("read more than the limit")
	}
}

func testWriteFileAtomic(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	must(t, vfs.WriteFileAtomic(fsys, name, []byte("a long first content")))
	must(t, vfs.WriteFileAtomic(fsys, name, []byte("second")))
	wantContent(t, fsys, name, "second")
	wantMissing(t, fsys, name+".tmp")
}

func testConcurrentUse(t *testing.T, fsys vfs.FS, dir string) {
	shared := open(t, fsys, filepath.Join(dir, "shared"), os.O_RDWR|os.O_CREATE)
	defer mustClose(t, shared)
	const workers, block = 8, 512
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			name := filepath.Join(dir, fmt.Sprint(w))
			data := bytes.Repeat([]byte{byte(w + 1)}, block)
			for range 20 {
				if err := vfs.WriteFileAtomic(fsys, name, data); err != nil {
					t.Error(err)
				}
				if _, err := shared.WriteAt(data, int64(w*block)); err != nil {
					t.Error(err)
				}
				if _, err := fsys.ReadDir(dir); err != nil {
					t.Error(err)
				}
				got := make([]byte, block)
				if _, err := shared.ReadAt(got, int64(w*block)); err != nil || !bytes.Equal(got, data) {
					t.Errorf("worker %d read back other bytes, %v", w, err)
				}
			}
		})
	}
	wg.Wait()
}
