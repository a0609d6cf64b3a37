//go:build unix && !linux

package vfs

import "golang.org/x/sys/unix"

func syncData(fd int) error { return unix.Fsync(fd) }
