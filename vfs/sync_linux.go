package vfs

import "golang.org/x/sys/unix"

// syncData is fdatasync: bytes and size, but not the modification time, become durable.
func syncData(fd int) error { return unix.Fdatasync(fd) }
