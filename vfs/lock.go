//go:build unix

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// locked holds the files that this process has locked: an fcntl lock does not exclude its own
// process, and closing any descriptor of a file drops the lock, so the check comes before open.
var locked struct {
	sync.Mutex
	files []os.FileInfo
}

func (osFS) Lock(name string) (io.Closer, error) {
	locked.Lock()
	defer locked.Unlock()
	for {
		l, err := tryLock(name)
		if err != errReplaced {
			return l, err
		}
	}
}

// errReplaced means that the holder before us removed the file after we had opened it.
var errReplaced = errors.New("lock file replaced")

func tryLock(name string) (io.Closer, error) {
	if info, err := os.Stat(name); err == nil && lockIndex(info) >= 0 {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrLocked}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := lockFile(f, name)
	if err != nil {
		f.Close()
		return nil, err
	}
	locked.files = append(locked.files, info)
	return &osLock{f: f, info: info}, nil
}

func lockFile(f *os.File, name string) (os.FileInfo, error) {
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := ignoringEINTR(func() error { return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &whole) })
	if err == unix.EAGAIN || err == unix.EACCES {
		err = ErrLocked
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Stat(name); err != nil || !os.SameFile(mine, there) {
		return nil, errReplaced
	}
	return mine, nil
}

func lockIndex(info os.FileInfo) int {
	for i, l := range locked.files {
		if os.SameFile(l, info) {
			return i
		}
	}
	return -1
}

type osLock struct {
	f    *os.File
	info os.FileInfo
}

// Close removes the file while it still has the lock, so that nobody locks a file that is
// about to lose its name.
func (l *osLock) Close() error {
	locked.Lock()
	defer locked.Unlock()
	i := lockIndex(l.info)
	if i < 0 {
		return &fs.PathError{Op: "unlock", Path: l.f.Name(), Err: fs.ErrClosed}
	}
	locked.files = append(locked.files[:i], locked.files[i+1:]...)
	err := os.Remove(l.f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.f.Close())
}
