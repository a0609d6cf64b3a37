package vfs

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// direntBuffers hold what getdents returns. A partition's directory fits many times.
var direntBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// readDir is os.ReadDir without the file object and the poller, which cost more than the
// listing of a small directory.
func (o osFS) readDir(name string) ([]fs.DirEntry, error) {
	fd, err := o.openDir(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := direntBuffers.Get().(*[16 << 10]byte)
	defer direntBuffers.Put(buf)
	var list []fs.DirEntry
	for {
		var n int
		err := ignoringEINTR(func() (err error) {
			n, err = unix.ReadDirent(fd, buf[:])
			return err
		})
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		if n <= 0 {
			break
		}
		list = appendDirents(list, name, buf[:n])
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func (o osFS) openDir(name string) (fd int, err error) {
	err = o.relief.withDescriptor(func() (err error) {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// appendDirents takes the entries out of what getdents64 returned: for each the inode, a
// position, its own length (at byte 16), the type and the name, which a zero ends.
func appendDirents(list []fs.DirEntry, dir string, b []byte) []fs.DirEntry {
	const nameStart = 19
	for len(b) >= nameStart {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < nameStart || size > len(b) {
			break
		}
		name, _, _ := bytes.Cut(b[nameStart:size], []byte{0})
		if s := string(name); s != "." && s != ".." {
			list = append(list, &dirEntry{dir: dir, name: s, kind: b[18]})
		}
		b = b[size:]
	}
	return list
}

// A dirEntry implements fs.DirEntry.
type dirEntry struct {
	dir, name string
	kind      uint8
}

func (e *dirEntry) Name() string               { return e.name }
func (e *dirEntry) IsDir() bool                { return e.Type().IsDir() }
func (e *dirEntry) Info() (fs.FileInfo, error) { return os.Lstat(filepath.Join(e.dir, e.name)) }
func (e *dirEntry) String() string             { return fs.FormatDirEntry(e) }

// Type asks the file itself where the file system does not tell.
func (e *dirEntry) Type() fs.FileMode {
	switch e.kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	}
	info, err := e.Info()
	if err != nil {
		return fs.ModeIrregular
	}
	return info.Mode().Type()
}

// syncDir opens the directory bare, as readDir does.
func (o osFS) syncDir(name string) error {
	fd, err := o.openDir(name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := ignoringEINTR(func() error { return unix.Fsync(fd) }); err != nil {
		return &fs.PathError{Op: "sync", Path: name, Err: err}
	}
	return nil
}
