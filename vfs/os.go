//go:build unix

package vfs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const errNotDir = unix.ENOTDIR

// OS is the file system of the host. Its files are bare descriptors, which open in a third
// of the time of an os.File and bring no poller.
var OS FS = osFS{}

type osFS struct{ relief *relief }

func (o osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
	if err == unix.EINTR || err == unix.EMFILE || err == unix.ENFILE {
		err = o.relief.withDescriptor(func() (err error) {
			fd, err = unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
			return err
		})
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return newOSFile(name, flag, fd)
}

// newOSFile refuses directories, which open(2) gives to readers.
func newOSFile(name string, flag, fd int) (File, error) {
	f := &osFile{name: name, fd: fd}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return f, nil
	}
	st, err := f.stat("open")
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = &fs.PathError{Op: "open", Path: name, Err: unix.EISDIR}
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return f, nil
}

func (osFS) Remove(name string) error                     { return os.Remove(name) }
func (osFS) Rename(oldname, newname string) error         { return os.Rename(oldname, newname) }
func (osFS) Mkdir(name string, perm fs.FileMode) error    { return os.Mkdir(name, perm) }
func (o osFS) ReadDir(name string) ([]fs.DirEntry, error) { return o.readDir(name) }
func (osFS) SetModTime(name string, t time.Time) error    { return os.Chtimes(name, t, t) }
func (o osFS) SyncDir(name string) error                  { return o.syncDir(name) }

// Stat returns a third of what os.Stat would allocate: the start of a broker looks at tens of
// thousands of files.
func (osFS) Stat(name string) (fs.FileInfo, error) {
	var st unix.Stat_t
	if err := ignoringEINTR(func() error { return unix.Stat(name, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return fileInfo{name: filepath.Base(name), size: st.Size, mode: fileMode(uint32(st.Mode)), modTime: time.Unix(st.Mtim.Unix())}, nil
}

// fileMode translates the type, where it is one that we tell apart, and the permissions.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode) & fs.ModePerm
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	default:
		m |= fs.ModeIrregular
	}
	return m
}

func (osFS) Space(name string) (total, free int64, err error) {
	var st unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(name, &st) }); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	block := int64(st.Bsize) // its type differs between systems
	return int64(st.Blocks) * block, int64(st.Bavail) * block, nil
}

type osFile struct {
	name string
	fd   int
}

func (f *osFile) Name() string        { return f.name }
func (f *osFile) Fd() (uintptr, bool) { return uintptr(f.fd), true }

func (f *osFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, f.fail("read", err)
		case m == 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pwrite(f.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, f.fail("write", err)
		case m == 0:
			return n, f.fail("write", io.ErrShortWrite)
		default:
			n += m
		}
	}
	return n, nil
}

func (f *osFile) Close() error {
	fd := f.fd
	f.fd = -1
	// A close that is interrupted has closed: trying again could close another's descriptor.
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return f.fail("close", err)
	}
	return nil
}

func (f *osFile) Truncate(size int64) error {
	if err := ignoringEINTR(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
		return f.fail("truncate", err)
	}
	return nil
}

func (f *osFile) Sync() error {
	if err := ignoringEINTR(func() error { return syncData(f.fd) }); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

func (f *osFile) Size() (int64, error) {
	st, err := f.stat("stat")
	return st.Size, err
}

func (f *osFile) ModTime() (time.Time, error) {
	st, err := f.stat("stat")
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(st.Mtim.Unix()), nil
}

func (f *osFile) stat(op string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := ignoringEINTR(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return st, f.fail(op, err)
	}
	return st, nil
}

func (f *osFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
