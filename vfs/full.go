package vfs

import (
	"errors"
	"syscall"
)

// IsFull reports whether an operation failed because the file system, or a quota, has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
