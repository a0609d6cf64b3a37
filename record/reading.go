package record

import (
	"iter"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A Batch is exactly one v2 batch, or one message of format v0 or v1, which may be a wrapper of compressed ones. It is
// a view of bytes that belong to somebody else, and valid as long as they are. Its methods read the header's fields;
// Verify checks the checksum; Records yields what is in it.
type Batch = record.Batch

// A Record is one record, decoded. Its slices are views that the next step of an iteration overwrites; Clone keeps them.
type Record = record.Record

// A Header is one of the headers of a record. A key may occur more than once.
type Header = record.Header

// DefaultMaxDecompressed is how many bytes the records of one batch may take decompressed, if nothing else is asked for.
const DefaultMaxDecompressed = record.DefaultMaxDecompressed

// First returns the first batch of b. The error is ErrShort when b ends inside of it, and a *CorruptError when no batch
// begins like b. It looks at the frame only: see Batch.Verify.
func First(b []byte) (Batch, error) { return record.First(b) }

// Batches yields the batches of b from front to back. It stops silently at an incomplete tail, as every reader of a
// fetch's answer must. Other than that an error is a *CorruptError and the last thing yielded.
func Batches(b []byte) iter.Seq2[Batch, error] { return record.Batches(b) }

// A Codec is how the records of a batch are compressed.
type Codec = record.Codec

// The codecs by the number they have in the attributes of a batch.
const (
	None   = record.None
	Gzip   = record.Gzip
	Snappy = record.Snappy
	LZ4    = record.LZ4
	Zstd   = record.Zstd
)

// A TimestampType says who set the timestamps of a batch.
type TimestampType = record.TimestampType

// The producer, the broker, or nobody: a v0 message has no timestamp.
const (
	CreateTime    = record.CreateTime
	LogAppendTime = record.LogAppendTime
	NoTimestamp   = record.NoTimestamp
)
