package offlinetest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/vfs"
)

// Unpack puts a golden set into a file system that fails on any write.
func Unpack(t testing.TB, set string) (ReadOnly, *vfs.Mem) {
	t.Helper()
	mem := vfs.NewMem()
	golden.Unpack(t, mem, "", set)
	return ReadOnly{mem}, mem
}

// MustWrite writes a file, in directories that it makes.
func MustWrite(t testing.TB, mem *vfs.Mem, name string, data []byte) {
	t.Helper()
	if err := vfs.MkdirAll(mem, filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := mem.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A ReadOnly file system has nothing but what reading needs.
type ReadOnly struct{ vfs.FS }

var errWrite = errors.New("somebody writes")

func (r ReadOnly) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag != os.O_RDONLY {
		return nil, errWrite
	}
	f, err := r.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return readOnlyFile{f}, nil
}

func (r ReadOnly) Remove(string) error             { return errWrite }
func (r ReadOnly) Rename(string, string) error     { return errWrite }
func (r ReadOnly) Mkdir(string, fs.FileMode) error { return errWrite }
func (r ReadOnly) SyncDir(string) error            { return errWrite }
func (r ReadOnly) Lock(string) (io.Closer, error)  { return nil, errWrite }

type readOnlyFile struct{ vfs.File }

func (readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, errWrite }
func (readOnlyFile) Truncate(int64) error               { return errWrite }
func (readOnlyFile) Sync() error                        { return errWrite }

// CleanDirs are the log directories that Kafka closed, by set.
var CleanDirs = func() map[string][]string {
	sets := map[string][]string{}
	for _, d := range golden.Dirs() {
		if d.Clean {
			sets[d.Set] = append(sets[d.Set], d.Name)
		}
	}
	return sets
}()
