package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"
)

// A memFile is an open file of a Mem. It lives on when its name is renamed or removed.
type memFile struct {
	m        *Mem
	n        *memNode
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *memFile) Name() string        { return f.name }
func (f *memFile) Fd() (uintptr, bool) { return 0, false }

// before checks that the file is open and calls the hook.
func (f *memFile) before(op Op) error {
	if f.closed.Load() {
		return &fs.PathError{Op: op.Kind.String(), Path: f.name, Err: fs.ErrClosed}
	}
	if !f.writable && (op.Kind == OpWrite || op.Kind == OpTruncate) {
		return &fs.PathError{Op: op.Kind.String(), Path: f.name, Err: syscall.EBADF}
	}
	op.Name = f.name
	return f.m.before(op)
}

func (f *memFile) length() int64 {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	return int64(len(f.n.data))
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.before(Op{Kind: OpRead, Offset: off, Size: int64(len(p))}); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	n := 0
	if off < int64(len(f.n.data)) {
		n = copy(p, f.n.data[off:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	failed := f.before(Op{Kind: OpWrite, Offset: off, Size: int64(len(p))})
	var short *ShortWrite
	if failed != nil && !errors.As(failed, &short) {
		return 0, failed
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: fs.ErrInvalid}
	}
	if short != nil {
		p = p[:min(short.N, len(p))]
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.changeLocked(fileChange{offset: off, data: append([]byte(nil), p...)})
	return len(p), failed
}

func (f *memFile) Truncate(size int64) error {
	if err := f.before(Op{Kind: OpTruncate, Size: size}); err != nil {
		return err
	}
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fs.ErrInvalid}
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.changeLocked(fileChange{offset: size, truncate: true})
	return nil
}

func (f *memFile) Sync() error {
	if err := f.before(Op{Kind: OpSync}); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.syncLocked()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.before(Op{Kind: OpStat}); err != nil {
		return 0, err
	}
	return f.length(), nil
}

func (f *memFile) ModTime() (time.Time, error) {
	if err := f.before(Op{Kind: OpStat}); err != nil {
		return time.Time{}, err
	}
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	return f.n.modTime, nil
}

func (f *memFile) Close() error {
	if err := f.before(Op{Kind: OpClose}); err != nil {
		return err
	}
	f.closed.Store(true)
	return nil
}
