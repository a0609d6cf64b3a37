package vfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

func create(t *testing.T, m *vfs.Mem, name string) vfs.File {
	t.Helper()
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustAll(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeAt(t *testing.T, f vfs.File, data string, off int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(data), off); err != nil {
		t.Fatal(err)
	}
}

// content returns what a file holds, or "missing".
func content(t *testing.T, m *vfs.Mem, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(m, name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "missing"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outcomes counts what is found after crashes with many seeds.
func outcomes(m *vfs.Mem, look func(after *vfs.Mem) string) map[string]int {
	seen := make(map[string]int)
	for seed := range uint64(400) {
		seen[look(m.CrashClone(rand.New(rand.NewPCG(seed, 1))))]++
	}
	return seen
}

func wantOutcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if got[w] == 0 {
			t.Errorf("never saw %q; saw %v", w, got)
		}
		delete(got, w)
	}
	for w := range got {
		t.Errorf("must not happen: %q", w)
	}
}

func TestCrashNewFileNeedsSyncDir(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	writeAt(t, f, "data", 0)
	mustAll(t, f.Sync())
	look := func(after *vfs.Mem) string { return content(t, after, "f") }
	wantOutcomes(t, outcomes(m, look), "data", "missing")
	mustAll(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(m, look), "data")
}

func TestCrashBytesNeedSync(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	mustAll(t, m.SyncDir("/"))
	writeAt(t, f, "old", 0)
	mustAll(t, f.Sync())
	writeAt(t, f, "NW", 2)
	look := func(after *vfs.Mem) string { return content(t, after, "f") }
	wantOutcomes(t, outcomes(m, look),
		"old", "olNW", "olN", "old\x00", "olN\x00")
	if got := look(m.CrashClone(nil)); got != "old" {
		t.Errorf("without a seed: got %q, want only what was synced", got)
	}
	mustAll(t, f.Sync())
	wantOutcomes(t, outcomes(m, look), "olNW")
}

func TestCrashLaterWriteMaySurviveAlone(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	mustAll(t, m.SyncDir("/"))
	writeAt(t, f, "a", 0)
	writeAt(t, f, "b", 1)
	seen := outcomes(m, func(after *vfs.Mem) string { return content(t, after, "f") })
	wantOutcomes(t, seen, "", "a", "ab", "\x00b", "\x00", "a\x00", "\x00\x00")
}

func TestCrashTearsAtSectors(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	mustAll(t, m.SyncDir("/"))
	base := strings.Repeat(".", 1000)
	writeAt(t, f, base, 0)
	mustAll(t, f.Sync())
	writeAt(t, f, strings.Repeat("x", 8000), 1000)
	holes := 0
	for seed := range uint64(400) {
		got := []byte(content(t, m.CrashClone(rand.New(rand.NewPCG(seed, 2))), "f"))
		if !bytes.HasPrefix(got, []byte(base)) {
			t.Fatalf("seed %d: synced bytes are gone", seed)
		}
		if i := bytes.IndexByte(got, 0); i >= 0 && bytes.IndexByte(got[i:], 'x') >= 0 && i%512 == 0 {
			holes++
		}
	}
	if holes == 0 {
		t.Error("no clone had a missing sector before a present one")
	}
}

// The beginning of a write is missing up to the end of a sector, or not at all: the header of a batch is
// not there without the offset in front of it that its checksum does not cover.
func TestCrashKeepsSectorsWhole(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	mustAll(t, m.SyncDir("/"))
	writeAt(t, f, strings.Repeat("x", 1500), 100)
	seen := make(map[int]bool)
	for seed := range uint64(2000) {
		got := content(t, m.CrashClone(rand.New(rand.NewPCG(seed, 3))), "f")
		if i := strings.IndexByte(got, 'x'); i >= 0 {
			seen[i] = true
		}
	}
	for i := range seen {
		if i != 100 && i%512 != 0 {
			t.Errorf("a write at 100 has its first byte at %d", i)
		}
	}
	if len(seen) < 4 {
		t.Errorf("first bytes at %v only", seen)
	}
}

func TestCrashTruncate(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	mustAll(t, m.SyncDir("/"))
	writeAt(t, f, "1234", 0)
	mustAll(t, f.Sync(), f.Truncate(2))
	look := func(after *vfs.Mem) string { return content(t, after, "f") }
	wantOutcomes(t, outcomes(m, look), "12", "123", "1234")
	mustAll(t, f.Sync())
	wantOutcomes(t, outcomes(m, look), "12")
}

func TestCrashRenameIsAtomic(t *testing.T) {
	m := vfs.NewMem()
	mustAll(t, m.Mkdir("d", 0o755), m.Mkdir("e", 0o755), m.SyncDir("/"))
	f := create(t, m, "d/f")
	writeAt(t, f, "x", 0)
	mustAll(t, f.Sync(), m.SyncDir("d"), m.Rename("d/f", "e/g"))
	look := func(after *vfs.Mem) string { return content(t, after, "d/f") + " " + content(t, after, "e/g") }
	wantOutcomes(t, outcomes(m, look), "x missing", "missing x")
	mustAll(t, m.SyncDir("e"))
	wantOutcomes(t, outcomes(m, look), "missing x")
}

func TestCrashRemove(t *testing.T) {
	m := vfs.NewMem()
	create(t, m, "f")
	mustAll(t, m.SyncDir("/"), m.Remove("f"))
	look := func(after *vfs.Mem) string { return content(t, after, "f") }
	wantOutcomes(t, outcomes(m, look), "", "missing")
	mustAll(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(m, look), "missing")
}

func TestCrashWriteFileAtomic(t *testing.T) {
	m := vfs.NewMem()
	mustAll(t, m.Mkdir("d", 0o755), m.SyncDir("/"), vfs.WriteFileAtomic(m, "d/f", []byte("one")))
	look := func(after *vfs.Mem) string { return content(t, after, "d/f") }
	seen := make(map[string]int)
	m.SetHook(func(vfs.Op) error {
		for what := range outcomes(m, look) {
			seen[what]++
		}
		return nil
	})
	mustAll(t, vfs.WriteFileAtomic(m, "d/f", []byte("two")))
	wantOutcomes(t, seen, "one", "two")
	m.SetHook(nil)
	wantOutcomes(t, outcomes(m, look), "two")
}

func TestCrashCloneIsIndependent(t *testing.T) {
	m := vfs.NewMem()
	f := create(t, m, "f")
	writeAt(t, f, "x", 0)
	mustAll(t, f.Sync(), m.SyncDir("/"))
	after := m.CrashClone(nil)
	writeAt(t, create(t, after, "f"), "y", 0)
	writeAt(t, f, "z", 0)
	if a, b := content(t, m, "f"), content(t, after, "f"); a != "z" || b != "y" {
		t.Errorf("got %q and %q, want z and y", a, b)
	}
	if got := content(t, after.CrashClone(nil), "f"); got != "x" {
		t.Errorf("second crash: got %q, want x, which survived the first", got)
	}
}

// TestCrashModel compares single files and names with what was last synced, over random
// operations: what is durable must be there in every clone.
func TestCrashModel(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := vfs.NewMem()
		mustAll(t, m.Mkdir("d", 0o755), m.SyncDir("/"))
		f := create(t, m, "d/f")
		mustAll(t, m.SyncDir("d"))
		synced, size := "", 0
		for range 60 {
			switch rng.IntN(4) {
			case 0:
				mustAll(t, f.Sync())
				synced = content(t, m, "d/f")
			case 1, 2: // appends never touch what was there
				data := strings.Repeat(string(rune('a'+rng.IntN(26))), 1+rng.IntN(700))
				writeAt(t, f, data, int64(size))
				size += len(data)
			case 3:
				after := m.CrashClone(rng)
				if got := content(t, after, "d/f"); !strings.HasPrefix(got, synced) {
					t.Fatalf("seed %d: lost synced bytes", seed)
				}
			}
		}
	}
}

func TestHook(t *testing.T) {
	m := vfs.NewMem()
	full := errors.New("disk full")
	var ops []string
	fail := map[vfs.OpKind]error{}
	m.SetHook(func(op vfs.Op) error {
		ops = append(ops, op.String())
		return fail[op.Kind]
	})
	f := create(t, m, "f")
	writeAt(t, f, "abc", 0)
	fail[vfs.OpWrite] = full
	if n, err := f.WriteAt([]byte("x"), 0); n != 0 || !errors.Is(err, full) {
		t.Errorf("failing write: got %d, %v", n, err)
	}
	fail[vfs.OpWrite] = &vfs.ShortWrite{N: 2, Err: full}
	if n, err := f.WriteAt([]byte("12345"), 1); n != 2 || !errors.Is(err, full) {
		t.Errorf("short write: got %d, %v", n, err)
	}
	fail[vfs.OpSync] = full
	if err := f.Sync(); !errors.Is(err, full) {
		t.Errorf("sync: got %v", err)
	}
	mustAll(t, m.Rename("f", "g"))
	want := "create f; write f [0,3); write f [0,1); write f [1,6); sync f; rename f to g"
	if got := strings.Join(ops, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m.SetHook(nil)
	if got := content(t, m, "g"); got != "a12" {
		t.Errorf("got %q, want a12", got)
	}
	if got := m.CrashClone(nil); content(t, got, filepath.Join("/", "f")) != "missing" {
		t.Error("a failed sync made something durable")
	}
}
