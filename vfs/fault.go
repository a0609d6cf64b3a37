package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A Fault says what is to blame for a failed operation, and with that how much has to stop for
// it. Larger ones are worse.
type Fault int

const (
	NoFault Fault = iota
	// ValueFault: what was asked for cannot be, or the bytes that were read make no sense. The
	// same request fails again; the disk is well.
	ValueFault
	// ProcessFault: this process or the machine is short of descriptors or memory, or the call
	// was interrupted. The same request may succeed later; the disk is well.
	ProcessFault
	// SpaceFault: the file system, or a quota, has no room.
	SpaceFault
	// FileFault: a file or directory is not there, or there is another thing of its name.
	FileFault
	// DiskFault: all else that the operating system reports. Nobody knows what it holds.
	DiskFault
)

var faultNames = [...]string{"none", "value", "process", "space", "file", "disk"}

func (f Fault) String() string { return faultNames[f] }

// faults has the errors of the operating system that are not the disk's.
var faults = map[syscall.Errno]Fault{
	syscall.EFBIG:        ValueFault,
	syscall.ENAMETOOLONG: ValueFault,
	syscall.EINVAL:       ValueFault,
	syscall.EOVERFLOW:    ValueFault,

	syscall.EMFILE:  ProcessFault,
	syscall.ENFILE:  ProcessFault,
	syscall.ENOMEM:  ProcessFault,
	syscall.ENOBUFS: ProcessFault,
	syscall.EINTR:   ProcessFault,
	syscall.EAGAIN:  ProcessFault,

	syscall.ENOSPC: SpaceFault,
	syscall.EDQUOT: SpaceFault,

	syscall.ENOENT:    FileFault,
	syscall.ENOTDIR:   FileFault,
	syscall.EISDIR:    FileFault,
	syscall.EEXIST:    FileFault,
	syscall.ENOTEMPTY: FileFault,
	syscall.ELOOP:     FileFault,
}

// FaultOf tells what is to blame for an error, of several that are joined the worst. It is the
// one place that decides whether a disk has failed.
func FaultOf(err error) Fault {
	switch e := err.(type) {
	case nil:
		return NoFault
	case syscall.Errno:
		return faultOfErrno(e)
	case *fs.PathError:
		return faultOfOperation(e.Op, e.Err)
	case *os.LinkError:
		return faultOfOperation(e.Op, e.Err)
	case *os.SyscallError:
		return faultOfOperation(e.Syscall, e.Err)
	case interface{ Unwrap() []error }:
		worst := ValueFault
		for _, joined := range e.Unwrap() {
			worst = max(worst, FaultOf(joined))
		}
		return worst
	}
	if inner := errors.Unwrap(err); inner != nil {
		return FaultOf(inner)
	}
	return ValueFault // no operation on a file has failed
}

func faultOfErrno(errno syscall.Errno) Fault {
	if fault, ok := faults[errno]; ok {
		return fault
	}
	return DiskFault
}

// faultOfOperation is what an operation says that has failed. After a sync that did, whatever
// the reason, the bytes must be taken for lost, unless they found no room.
func faultOfOperation(op string, err error) Fault {
	var errno syscall.Errno
	switch {
	case errors.Is(err, errTooLong), errors.Is(err, fs.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ValueFault
	case !errors.As(err, &errno):
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			return FileFault
		}
		return DiskFault
	}
	fault := faultOfErrno(errno)
	if op == "sync" && fault != SpaceFault {
		return DiskFault
	}
	return fault
}

// IsFull reports whether an operation failed because the file system, or a quota, has no room.
func IsFull(err error) bool { return FaultOf(err) == SpaceFault }
