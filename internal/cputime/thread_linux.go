package cputime

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// OfThread returns what work uses on the thread that runs it, without what runs beside it.
func OfThread(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := thread()
	work()
	return thread() - before
}

func thread() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		panic("BUG: getrusage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
