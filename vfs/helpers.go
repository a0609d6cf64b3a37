package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errTooLong says that a file has more bytes than anybody would have written to it.
var errTooLong = errors.New("file is too long")

// MkdirAll creates a directory and its missing parents, and makes each new name durable.
func MkdirAll(fsys FS, name string, perm fs.FileMode) error {
	name = filepath.Clean(name)
	if info, err := fsys.Stat(name); err == nil {
		if info.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: errNotDir}
	}
	parent := filepath.Dir(name)
	if parent != name {
		if err := MkdirAll(fsys, parent, perm); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}

// RemoveAll removes a file, or a directory with what is in it. A missing name is no error.
func RemoveAll(fsys FS, name string) error {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return removeMissing(fsys, name) // a dangling link has no Stat
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := fsys.ReadDir(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if err := removeEntry(fsys, filepath.Join(name, e.Name()), e); err != nil {
				return err
			}
		}
	}
	return removeMissing(fsys, name)
}

// removeEntry removes what a directory lists. It goes into directories, not through links.
func removeEntry(fsys FS, name string, e fs.DirEntry) error {
	if e.IsDir() {
		return RemoveAll(fsys, name)
	}
	return removeMissing(fsys, name)
}

func removeMissing(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadFile returns the content of a file that has at most limit bytes; a longer one is an
// error.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: %d bytes, at most %d are read", errTooLong, size, limit)}
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

// WriteFileAtomic replaces the content of a file: name.tmp is written and synced, renamed,
// and the directory synced. After a crash the file has the old content or the new.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := writeFile(fsys, tmp, data); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

func writeFile(fsys FS, name string, data []byte) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}
