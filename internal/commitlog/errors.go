package commitlog

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/record"
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

// ErrStorage matches every error of a log that can no longer be trusted with writes: a
// write, sync or file operation failed (the cause is wrapped), or the log is closed.
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

// A StorageError is what a poisoned log answers. It matches ErrStorage.
type StorageError struct {
	Partition topic.Partition
	Op        string // what failed: append, flush, roll ...
	Err       error
}

func (e *StorageError) Error() string { return fmt.Sprintf("%v: %s: %v", e.Partition, e.Op, e.Err) }

func (e *StorageError) Unwrap() error        { return e.Err }
func (e *StorageError) Is(target error) bool { return target == ErrStorage }
