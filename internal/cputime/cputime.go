//go:build unix

// Package cputime tells how long a processor worked. Benchmarks compare figures in it: on a
// machine that has other work to do the time by the clock says more of that work. Only tests
// import it.
package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Used returns what the process has used so far, in user and in system mode, by all its threads.
func Used() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("BUG: getrusage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Of returns what work uses, and what runs beside it in this process.
func Of(work func()) time.Duration {
	before := Used()
	work()
	return Used() - before
}
