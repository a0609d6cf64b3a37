package commitlog

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// Refusals. Errors of this package match them with errors.Is; those of package record
// (bad CRC, invalid records, an unknown codec) pass through as they are.
var (
	ErrOffsetOutOfRange             = errors.New("offset out of range")
	ErrRecordListTooLarge           = errors.New("batches are larger than segment.bytes")
	ErrOutOfOrderSequence           = errors.New("out of order sequence number")
	ErrInvalidProducerEpoch         = errors.New("invalid producer epoch")
	ErrInvalidTxnState              = errors.New("invalid transaction state")
	ErrTransactionCoordinatorFenced = errors.New("transaction coordinator fenced")
	ErrOffsetsOutOfOrder            = errors.New("offsets out of order")
	ErrUnexpectedOffset             = errors.New("append below the log end")
	ErrInconsistentTopicID          = errors.New("inconsistent topic id")
)

// ErrMessageTooLarge is record's: a batch is larger than max.message.bytes.
var ErrMessageTooLarge = record.ErrTooLarge

// ErrNoOffsets refuses records for which there is no offset below 2^63 - 1.
var ErrNoOffsets = errors.New("no offsets are left")

// ErrStorage matches every error that is no fault of the request: the log can no longer be trusted
// with changes, because a write, sync or file operation failed or it is closed (*StorageError); or
// it is as it was, and there is no room (*DiskFullError), no descriptor or memory (*StepError).
var ErrStorage = errors.New("storage error")

// ErrClosed is the cause of a storage error after Close.
var ErrClosed = errors.New("log is closed")

// An UnexpectedOffsetError refuses a follower's append that begins below the log end. It
// matches ErrUnexpectedOffset.
type UnexpectedOffsetError struct {
	FirstOffset, LastOffset int64 // of the refused set
	End                     int64 // of the log
}

func (e *UnexpectedOffsetError) Error() string {
	return fmt.Sprintf("%v: offsets %d to %d, log end %d", ErrUnexpectedOffset, e.FirstOffset, e.LastOffset, e.End)
}

func (e *UnexpectedOffsetError) Is(target error) bool { return target == ErrUnexpectedOffset }

// A StepError says that a step, such as an append, a roll or a flush, was not done, for what is
// neither the log's fault nor the disk's. The log is as it was before and takes the next.
type StepError struct {
	Partition topic.Partition
	Op        string // what was not done
	Err       error
}

func (e *StepError) Error() string { return fmt.Sprintf("%v: %s: %v", e.Partition, e.Op, e.Err) }

func (e *StepError) Unwrap() error { return e.Err }

// Is makes it a storage error, unless the values are to blame: trying again may help.
func (e *StepError) Is(target error) bool {
	return target == ErrStorage && vfs.FaultOf(e.Err) != vfs.ValueFault
}

// A StorageError is what a poisoned log answers. It matches ErrStorage.
type StorageError struct {
	Partition topic.Partition
	Op        string // what failed: append, flush, roll ...
	Err       error
}

func (e *StorageError) Error() string { return fmt.Sprintf("%v: %s: %v", e.Partition, e.Op, e.Err) }

func (e *StorageError) Unwrap() error        { return e.Err }
func (e *StorageError) Is(target error) bool { return target == ErrStorage }
