package vfs

import (
	"errors"
	"os"
	"testing"
)

// A killed process changes nothing any more, wherever it was; the next one finds what it had written, and
// a crash later still takes what nobody synced.
func TestKill(t *testing.T) {
	fsys := NewMem()
	f, err := fsys.OpenFile("/log", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, off int64) error { _, err := f.WriteAt([]byte(text), off); return err }
	if err := errors.Join(write("synced", 0), f.Sync(), fsys.SyncDir("/"), write("written", 6)); err != nil {
		t.Fatal(err)
	}
	lock, err := fsys.Lock("/.lock")
	if err != nil {
		t.Fatal(err)
	}
	var next *Mem
	fsys.SetHook(func(op Op) error { // killed in the middle of a write
		if op.Kind == OpWrite {
			fsys.SetHook(nil)
			next = fsys.Kill()
		}
		return nil
	})
	for name, err := range map[string]error{
		"write": write("too late", 0), "sync": f.Sync(), "truncate": f.Truncate(0), "remove": fsys.Remove("/log"), "rename": fsys.Rename("/log", "/x"),
		"mkdir": fsys.Mkdir("/dir", 0o755), "sync of a directory": fsys.SyncDir("/"), "unlock": lock.Close(),
	} {
		if err == nil {
			t.Errorf("%s: a process that was killed did it", name)
		}
	}
	if _, err := fsys.Stat("/log"); !errors.Is(err, errKilled) {
		t.Errorf("stat: got %v, want %v", err, errKilled)
	}
	content := func(fsys *Mem, want string) {
		t.Helper()
		if b, err := ReadFile(fsys, "/log", 100); err != nil || string(b) != want {
			t.Errorf("got %q, %v, want %q", b, err, want)
		}
	}
	content(next, "syncedwritten")
	content(next.CrashClone(nil), "synced")
	if _, err := next.Lock("/.lock"); err != nil {
		t.Errorf("the lock of a process that is gone: %v", err)
	}
}
