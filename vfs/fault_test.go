package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFaultOf(t *testing.T) {
	f := func(err error, want Fault) {
		t.Helper()
		if got := FaultOf(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
		if err == nil {
			return
		}
		if got := FaultOf(fmt.Errorf("orders-0: append: %w", err)); got != want {
			t.Errorf("%v, wrapped: got %v, want %v", err, got, want)
		}
	}
	op := func(op string, err error) error { return &fs.PathError{Op: op, Path: "/a/t-0/0.log", Err: err} }
	f(nil, NoFault)
	f(errors.New("refused"), ValueFault)
	f(io.ErrUnexpectedEOF, ValueFault)

	for _, errno := range []syscall.Errno{syscall.EFBIG, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EOVERFLOW} {
		f(errno, ValueFault)
		f(op("write", errno), ValueFault)
	}
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN} {
		f(errno, ProcessFault)
		f(op("open", errno), ProcessFault)
		f(os.NewSyscallError("accept4", errno), ProcessFault)
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		f(op("write", errno), SpaceFault)
		f(op("sync", errno), SpaceFault)
		f(op("write", &ShortWrite{N: 3, Err: errno}), SpaceFault)
	}
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ENOTEMPTY, syscall.ELOOP} {
		f(op("open", errno), FileFault)
		f(&os.LinkError{Op: "rename", Old: "a", New: "b", Err: errno}, FileFault)
	}
	for _, errno := range []syscall.Errno{
		syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.EACCES, syscall.EPERM, syscall.EBADF, syscall.ETIMEDOUT,
	} {
		f(op("read", errno), DiskFault)
	}
	f(op("write", io.ErrShortWrite), DiskFault)
	f(op("write", errors.New("nobody knows")), DiskFault)
	f(op("read", fs.ErrNotExist), FileFault)
	f(op("read", fs.ErrClosed), ValueFault)
	f(op("read", io.ErrUnexpectedEOF), ValueFault)

	// What a failed sync leaves nobody knows, whatever it says.
	for _, errno := range []syscall.Errno{syscall.ENOMEM, syscall.EINVAL, syscall.EAGAIN, syscall.EIO} {
		f(op("sync", errno), DiskFault)
	}

	// Of several the worst counts.
	f(errors.Join(op("open", syscall.EMFILE), op("write", syscall.EIO)), DiskFault)
	f(errors.Join(nil, op("open", syscall.EMFILE), errors.New("refused")), ProcessFault)
	f(fmt.Errorf("%w (undo: %w)", op("write", syscall.EFBIG), op("truncate", syscall.EROFS)), DiskFault)
}

// The errors of the real file system are told apart, not only made ones.
func TestFaultOfRealErrors(t *testing.T) {
	dir := t.TempDir()
	f := func(err error, want Fault) {
		t.Helper()
		if got := FaultOf(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	_, err := OS.OpenFile(filepath.Join(dir, strings.Repeat("x", 300)), os.O_RDWR|os.O_CREATE, 0o644)
	f(err, ValueFault)
	f(OS.Mkdir(filepath.Join(dir, strings.Repeat("x", 300)), 0o755), ValueFault)
	f(OS.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")), FileFault)
	_, err = OS.Stat(filepath.Join(dir, "a"))
	f(err, FileFault)
	f(OS.SyncDir(filepath.Join(dir, "a")), FileFault)
	if err := writeFile(OS, filepath.Join(dir, "long"), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_, err = ReadFile(OS, filepath.Join(dir, "long"), 10)
	f(err, ValueFault)
}
