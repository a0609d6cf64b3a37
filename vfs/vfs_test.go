package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
	"github.com/gregor-kafka/gregor/vfs/vfstest"
)

func TestOS(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS, t.TempDir() })
}

func TestMem(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewMem()
		if err := m.Mkdir("/data", 0o755); err != nil {
			t.Fatal(err)
		}
		return m, "/data"
	})
}

func TestFd(t *testing.T) {
	f, err := vfs.OS.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, ok := f.Fd()
	if n, err := syscall.Write(int(fd), []byte("x")); !ok || n != 1 || err != nil {
		t.Errorf("write to Fd %d, %v: got %d, %v", fd, ok, n, err)
	}
	g, err := vfs.NewMem().OpenFile("f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Fd(); ok {
		t.Error("a file in memory has a descriptor")
	}
}

// TestLockExcludesOtherProcess starts this test binary again, to hold the lock.
func TestLockExcludesOtherProcess(t *testing.T) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		holdLock(t, name)
		return
	}
	name := filepath.Join(t.TempDir(), ".lock")
	other := exec.Command(os.Args[0], "-test.run=^TestLockExcludesOtherProcess$")
	other.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the other process did not lock: %v", err)
	}
	if _, err := vfs.OS.Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	stdin.Close()
	io.Copy(io.Discard, stdout)
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	l, err := vfs.OS.Lock(name)
	if err != nil {
		t.Fatalf("after the other process ended: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func holdLock(t *testing.T, name string) {
	l, err := vfs.OS.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("L")
	io.Copy(io.Discard, os.Stdin)
	l.Close()
}

func TestRemoveAllKeepsLinkTargets(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(target, "keep"), 0o755),
		os.Mkdir(filepath.Join(dir, "gone"), 0o755),
		os.Symlink(target, filepath.Join(dir, "gone", "link")),
		os.Symlink("nowhere", filepath.Join(dir, "gone", "dangling")),
		vfs.RemoveAll(vfs.OS, filepath.Join(dir, "gone")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(target, "keep")); err != nil {
		t.Errorf("removed through a link: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}
