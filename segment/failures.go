package segment

import "github.com/gregor-kafka/gregor/internal/segment"

var (
	// ErrOffsetOverflow says that an offset is more than 2^31-1 above the base offset, or below it, so that no index of
	// this segment can have it.
	ErrOffsetOverflow = segment.ErrOffsetOverflow

	// ErrFull says that a segment would grow beyond 2^31-1 bytes.
	ErrFull = segment.ErrFull

	// ErrTorn says that a write has failed and that nobody knows what the file has behind the last batch. Recover cuts it.
	ErrTorn = segment.ErrTorn
)

// A CorruptError says where a file stops making sense. It matches record.ErrCorrupt.
type CorruptError = segment.CorruptError
