package faultdir

import (
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// A Tree is what lies below some directories at one moment. Trees share the bytes of files, which
// nobody changes.
type Tree struct {
	Files map[string]File
	Dirs  map[string]time.Time // when they were modified
}

// A File of a Tree.
type File struct {
	Data    []byte
	ModTime time.Time
}

// fileSizeMax bounds what ReadTree takes of one file.
const fileSizeMax = 64 << 20

// ReadTree copies what is in some directories of a file system. Lock files are left out.
func ReadTree(fsys vfs.FS, dirs ...string) (*Tree, error) {
	t := &Tree{Files: map[string]File{}, Dirs: map[string]time.Time{}}
	for _, dir := range dirs {
		if err := t.read(fsys, dir); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Tree) read(fsys vfs.FS, dir string) error {
	info, err := fsys.Stat(dir)
	if err != nil {
		return err
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	t.Dirs[dir] = info.ModTime()
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			err = t.read(fsys, name)
		} else if e.Name() != ".lock" {
			err = t.readFile(fsys, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) readFile(fsys vfs.FS, name string) error {
	data, err := vfs.ReadFile(fsys, name, fileSizeMax)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a running broker has removed it since
	}
	if err != nil {
		return err
	}
	info, err := fsys.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.Files[name] = File{data, info.ModTime()}
	return nil
}

// Clone returns a Tree that can be changed on its own.
func (t *Tree) Clone() *Tree { return &Tree{maps.Clone(t.Files), maps.Clone(t.Dirs)} }

// Mem makes a file system of the tree, with the times of files and directories.
func (t *Tree) Mem() (*vfs.Mem, error) {
	m := vfs.NewMem()
	for _, dir := range slices.Sorted(maps.Keys(t.Dirs)) {
		if err := vfs.MkdirAll(m, dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Files)) {
		if err := writeFile(m, name, t.Files[name]); err != nil {
			return nil, err
		}
	}
	for dir, modified := range t.Dirs {
		if err := errors.Join(m.SyncDir(dir), m.SetModTime(dir, modified)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func writeFile(fsys vfs.FS, name string, file File) error {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(file.Data, 0)
	return errors.Join(err, f.Sync(), f.Close(), fsys.SetModTime(name, file.ModTime))
}

// Remove takes a file, or a directory with all in it, out of the tree.
func (t *Tree) Remove(name string) {
	delete(t.Files, name)
	delete(t.Dirs, name)
	maps.DeleteFunc(t.Files, func(p string, _ File) bool { return strings.HasPrefix(p, name+"/") })
	maps.DeleteFunc(t.Dirs, func(p string, _ time.Time) bool { return strings.HasPrefix(p, name+"/") })
}

// Names lists the files in order.
func (t *Tree) Names() []string { return slices.Sorted(maps.Keys(t.Files)) }
