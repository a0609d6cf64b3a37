package record

import "github.com/gregor-kafka/gregor/internal/record"

var (
	// ErrShort says that the bytes end before the batch does: a torn tail, or a fetch answer cut at its byte limit. It is
	// not corruption.
	ErrShort = record.ErrShort

	// ErrCorrupt matches every error that means that bytes are not what was written, those of package segment too.
	ErrCorrupt = record.ErrCorrupt

	// ErrInvalidRecord matches every error about a batch whose checksum is right and whose contents are not.
	ErrInvalidRecord = record.ErrInvalidRecord

	// ErrUnsupportedCompression says that a codec is unknown, or not allowed in the format.
	ErrUnsupportedCompression = record.ErrUnsupportedCompression

	// ErrDecompressedTooLarge says that a payload grows beyond the limit when decompressed.
	ErrDecompressedTooLarge = record.ErrDecompressedTooLarge
)

// A CorruptError says where bytes stop being a batch. It matches ErrCorrupt.
type CorruptError = record.CorruptError
