package commitlog

import (
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Disk is what the logs of a directory share: caches, and whether there is room for records. While it is full, appends are refused with an error that matches ErrDiskFull; all that
// gives room back goes on.
type Disk struct {
	// Caches are those of the segments. Zero are those that the process shares.
	Caches segment.Caches

	// RollSeed is the randomness of segment.jitter.ms. A log and an offset are always given the same of it.
	RollSeed uint64

	full atomic.Bool
}

// SetFull stops appends, or lets them go on.
func (d *Disk) SetFull(full bool) { d.full.Store(full) }

// Full reports what SetFull said.
func (d *Disk) Full() bool { return d.full.Load() }

// A DiskFullError says that the disk has no room. It matches ErrStorage, but the log is as it
// was before and takes appends once there is room again.
type DiskFullError struct {
	Partition topic.Partition
	Op        string // what was refused or undone
	Err       error  // of the operating system; nil if it was not asked
}

func (e *DiskFullError) Error() string {
	s := e.Partition.String() + ": " + e.Op + ": no space left for records"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *DiskFullError) Unwrap() error { return e.Err }

// Is makes it a storage error.
func (e *DiskFullError) Is(target error) bool { return target == ErrStorage }

// room refuses appends while the disk is full.
func (l *Log) room() error {
	if l.disk.full.Load() {
		return &DiskFullError{Partition: l.partition, Op: "append"}
	}
	return nil
}
