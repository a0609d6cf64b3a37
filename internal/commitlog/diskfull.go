package commitlog

import (
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Disk says whether there is room for records where a log lies. The logs of a directory share
// one. While it is full, appends are refused with an error that matches ErrDiskFull; all that
// gives room back goes on.
type Disk struct{ full atomic.Bool }

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

// noRoom is fail for a step that has changed nothing that counts, or was undone: a full disk
// does not poison the log.
func (l *Log) noRoom(op string, err error) error {
	if vfs.IsFull(err) {
		return &DiskFullError{l.partition, op, err}
	}
	return l.fail(op, err)
}

// room refuses appends while the disk is full.
func (l *Log) room() error {
	if l.disk.full.Load() {
		return &DiskFullError{Partition: l.partition, Op: "append"}
	}
	return nil
}

// appendFailed undoes an append of which the file may have a part. If that fails, or if the disk
// is not what was full, nobody knows what the file has.
func (l *Log) appendFailed(active *segment.Segment, err error) error {
	if !vfs.IsFull(err) {
		return l.fail("append", err)
	}
	if undo := active.Discard(); undo != nil {
		return l.fail("undo an append that found the disk full", undo)
	}
	return &DiskFullError{l.partition, "append", err}
}
