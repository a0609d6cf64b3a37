package record

import (
	"errors"
	"fmt"
)

var (
	// ErrShort says that the bytes end before the batch does: a torn tail, or a fetch
	// answer cut at its byte limit. It is not corruption.
	ErrShort = errors.New("incomplete batch")

	// ErrCorrupt matches every error that means that the bytes are not what was written.
	ErrCorrupt = errors.New("corrupt")

	// ErrInvalidRecord matches every refusal of bytes that arrived as they were sent, but
	// that no broker may store or no reader can understand.
	ErrInvalidRecord = errors.New("invalid record")

	// ErrInvalidTimestamp matches a refusal because of the timestamp of a record.
	ErrInvalidTimestamp = errors.New("invalid timestamp")

	// ErrUnsupportedCompression says that a codec is unknown, or not allowed in the format.
	ErrUnsupportedCompression = errors.New("unsupported compression type")

	// ErrUnsupportedForFormat says that the format of the log has no place for what a batch
	// is: transactional, or of an idempotent producer.
	ErrUnsupportedForFormat = errors.New("unsupported for the message format")

	// ErrTooLarge says that a batch is larger than max.message.bytes.
	ErrTooLarge = errors.New("batch too large")

	// ErrDecompressedTooLarge says that a payload grows beyond the limit when decompressed.
	ErrDecompressedTooLarge = errors.New("decompressed records too large")
)

// A CorruptError says where bytes stop being a batch. It matches ErrCorrupt.
type CorruptError struct {
	Position int    // of the batch in the bytes that were given
	Offset   int64  // what the batch has in its offset field, or -1
	Reason   string // what is wrong
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("batch at byte %d (offset %d): %s", e.Position, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// An InvalidRecordError refuses a batch whose checksum is right and whose contents are not.
// It matches ErrInvalidTimestamp if Timestamp is set, and ErrInvalidRecord if not.
type InvalidRecordError struct {
	Reason    string        // what is wrong with the batch as a whole
	Records   []RecordError // the records to blame, if it is not the batch as a whole
	Timestamp bool          // at least one record has an invalid timestamp
	Err       error         // the cause, or nil
}

// A RecordError blames one record of a batch.
type RecordError struct {
	Index   int32 // 0 is the first record of the batch
	Message string
}

func (e *InvalidRecordError) Error() string {
	msg := e.Reason
	if len(e.Records) > 0 {
		msg += fmt.Sprintf(": record %d: %s", e.Records[0].Index, e.Records[0].Message)
	}
	if more := len(e.Records) - 1; more > 0 {
		msg += fmt.Sprintf(" (and %d more)", more)
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Is makes errors.Is true for ErrInvalidTimestamp or ErrInvalidRecord.
func (e *InvalidRecordError) Is(target error) bool {
	if e.Timestamp {
		return target == ErrInvalidTimestamp
	}
	return target == ErrInvalidRecord
}

func (e *InvalidRecordError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error {
	return &InvalidRecordError{Reason: fmt.Sprintf(format, args...)}
}

// A TooLargeError is a batch larger than max.message.bytes. It matches ErrTooLarge.
type TooLargeError struct {
	Size int // of the batch, header included
	Max  int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("batch of %d bytes is larger than max.message.bytes %d", e.Size, e.Max)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
