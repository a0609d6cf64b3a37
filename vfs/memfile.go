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

// op completes an operation if the file is open for it.
func (f *memFile) op(op Op) (Op, error) {
	op.Name = f.name
	if f.closed.Load() {
		return op, op.fail(fs.ErrClosed)
	}
	if !f.writable && (op.Kind == OpWrite || op.Kind == OpTruncate) {
		return op, op.fail(syscall.EBADF)
	}
	return op, nil
}

// lock begins a change; see Mem.lock.
func (f *memFile) lock(op Op) error {
	op, err := f.op(op)
	if err != nil {
		return err
	}
	return f.m.lock(op)
}

// rlock begins a look; see Mem.rlock.
func (f *memFile) rlock(op Op) error {
	op, err := f.op(op)
	if err != nil {
		return err
	}
	return f.m.rlock(op)
}

func (f *memFile) length() int64 {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	return int64(len(f.n.data))
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.rlock(Op{Kind: OpRead, Offset: off, Size: int64(len(p))}); err != nil {
		return 0, err
	}
	defer f.m.mu.RUnlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
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
	op, err := f.op(Op{Kind: OpWrite, Offset: off, Size: int64(len(p))})
	if err != nil {
		return 0, err
	}
	failed := f.m.before(op)
	var short *ShortWrite
	if failed != nil && !errors.As(failed, &short) {
		return 0, failed
	}
	if off < 0 {
		return 0, op.fail(fs.ErrInvalid)
	}
	if short != nil {
		p = p[:min(short.N, len(p))]
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.killed {
		return 0, op.fail(errKilled)
	}
	f.n.changeLocked(fileChange{offset: off, data: append([]byte(nil), p...)})
	return len(p), failed
}

func (f *memFile) Truncate(size int64) error {
	if err := f.lock(Op{Kind: OpTruncate, Size: size}); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fs.ErrInvalid}
	}
	f.n.changeLocked(fileChange{offset: size, truncate: true})
	return nil
}

func (f *memFile) Sync() error {
	if err := f.lock(Op{Kind: OpSync}); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.n.syncLocked()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.rlock(Op{Kind: OpStat}); err != nil {
		return 0, err
	}
	defer f.m.mu.RUnlock()
	return int64(len(f.n.data)), nil
}

func (f *memFile) ModTime() (time.Time, error) {
	if err := f.rlock(Op{Kind: OpStat}); err != nil {
		return time.Time{}, err
	}
	defer f.m.mu.RUnlock()
	return f.n.modTime, nil
}

func (f *memFile) Close() error {
	if err := f.rlock(Op{Kind: OpClose}); err != nil {
		return err
	}
	defer f.m.mu.RUnlock()
	f.closed.Store(true)
	return nil
}
