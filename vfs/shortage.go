//go:build unix

package vfs

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// relief gives back descriptors that are not needed this moment.
var relief atomic.Pointer[func()]

// OnShortage sets what OS does when there are no descriptors left for an open, before it tries
// again. It may be called by many goroutines at once, with any lock held.
func OnShortage(giveBack func()) { relief.Store(&giveBack) }

// shortageRetries is how often an open is tried again, after pauses of 1, 2, 4 ... ms: about a second
// in all. Descriptors for single operations come back in that time.
const shortageRetries = 10

// withDescriptor runs open until it does not fail for want of descriptors. Who holds locks meanwhile
// keeps others waiting, which is better than to fail.
func withDescriptor(open func() error) error {
	for pause, tries := time.Millisecond, 0; ; pause, tries = 2*pause, tries+1 {
		err := ignoringEINTR(open)
		if err != unix.EMFILE && err != unix.ENFILE || tries == shortageRetries {
			return err
		}
		if giveBack := relief.Load(); giveBack != nil {
			(*giveBack)()
		}
		if tries > 0 {
			time.Sleep(pause)
		}
	}
}
