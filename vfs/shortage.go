//go:build unix

package vfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// A relief gives back descriptors that are not needed this moment; nil has none.
type relief struct{ giveBack func() }

// OnShortage returns fsys for a user who can give descriptors back: OS calls giveBack when there are
// none left for an open, before it tries again, by many goroutines at once and with any lock held. A
// file system that takes none is returned as it is.
func OnShortage(fsys FS, giveBack func()) FS {
	if _, ok := fsys.(osFS); ok {
		return osFS{&relief{giveBack}}
	}
	return fsys
}

// shortageRetries is how often an open is tried again, after pauses of 1, 2, 4 ... ms: about a second
// in all. Descriptors for single operations come back in that time.
const shortageRetries = 10

// withDescriptor runs open until it does not fail for want of descriptors. Whoever holds locks meanwhile
// keeps others waiting, which is better than to fail.
func (r *relief) withDescriptor(open func() error) error {
	for pause, tries := time.Millisecond, 0; ; pause, tries = 2*pause, tries+1 {
		err := ignoringEINTR(open)
		if err != unix.EMFILE && err != unix.ENFILE || tries == shortageRetries {
			return err
		}
		if r != nil {
			r.giveBack()
		}
		if tries > 0 {
			time.Sleep(pause)
		}
	}
}
