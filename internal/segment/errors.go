package segment

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/record"
)

// ErrCorrupt matches every error that means the bytes are wrong, not the disk.
var ErrCorrupt = record.ErrCorrupt

var (
	// ErrNotFound says that a segment has no batch at or after an offset. The reader goes
	// on with the next segment.
	ErrNotFound = errors.New("offset not in segment")

	// ErrOffsetOverflow says that an offset is more than 2^31-1 above the base offset, or
	// below it, so that no index of this segment can have it.
	ErrOffsetOverflow = errors.New("offset does not fit the segment")

	// ErrFull says that a segment would grow beyond 2^31-1 bytes.
	ErrFull = errors.New("segment full")

	// ErrTorn says that a write has failed and that nobody knows what the file has behind the
	// last batch. Recover cuts it.
	ErrTorn = errors.New("write is torn")

	// ErrReadOnly refuses a change of a segment opened with Config.ReadOnly.
	ErrReadOnly = errors.New("segment is read only")
)

// errTorn says that a file ends inside of a batch.
var errTorn = errors.New("batch goes beyond the end")

// A CorruptError says where a file stops making sense. It matches ErrCorrupt.
type CorruptError struct {
	Path     string // the file
	Position int64  // first byte that is not part of a valid batch or entry
	Offset   int64  // offset found or expected there, or -1
	Err      error  // what is wrong

	// End is, for offsets that are in quarantine, the first one behind them that is not; else 0.
	End int64
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: byte %d (offset %d): %v", e.Path, e.Position, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
