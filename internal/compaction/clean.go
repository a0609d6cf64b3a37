package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options are the settings of a Cleaner.
type Options struct {
	MapBytes    int64   // log.cleaner.dedupe.buffer.size, the share of this cleaner
	LoadFactor  float64 // log.cleaner.io.buffer.load.factor
	BufferBytes int     // log.cleaner.io.buffer.size, the share of this cleaner

	// MaxMessageBytes is message.max.bytes. Buffers grow for the batch that is to be read; one
	// beyond this and the topic's max.message.bytes is looked at twice before.
	MaxMessageBytes int

	Throttle *throttle.Throttler // nil is no limit
	Logger   *slog.Logger        // nil discards
	Now      func() time.Time    // nil is time.Now
	Random   io.Reader           // of secret keys; nil is the host's; never fails
}

// A Plan says what of a log to clean.
type Plan struct {
	// Offsets [FirstDirty, FirstUncleanable) were never cleaned. FirstUncleanable is the base
	// offset of a segment, and at most the last stable offset.
	FirstDirty, FirstUncleanable int64

	CleanedBytes, DirtyBytes int64 // sizes of the segments below FirstDirty, and of the others

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

// A Cleaner cleans logs, one at a time. The map and the buffers of a cleaning go back to the
// operating system behind it.
type Cleaner struct{ o Options }

// New returns a Cleaner.
func New(o Options) *Cleaner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = random.Host("keys")
	}
	return &Cleaner{o}
}

// A run is one cleaning.
type run struct {
	ctx      context.Context
	throttle *throttle.Throttler
	logger   *slog.Logger
	random   io.Reader
	log      *commitlog.Log
	config   commitlog.Config
	plan     Plan
	view     *commitlog.CleanView
	now      int64 // ms
	progress *Progress
	result   Result

	reading recordReader
	source  source
	window  window
	m       *offsetMap
	latest  int64 // last offset that the map covers

	txns          *transactions
	horizonOfOld  int64 // ms: see legacyHorizon
	oldTombstones bool  // those of format v0 and v1 in the segment stay
	keep          []bool
	out           output
	unreadable    bool
}

// Clean cleans a log once: it builds the offset map from what is dirty, as far as the map has
// room, and rewrites the segments up to there. When ctx is cancelled it ends with the
// context's error before the next chunk. What was swapped in stays in any case, and each
// group of segments is as good as before or better.
//
// Other errors: commitlog.ErrSegmentsChanged and *commitlog.DiskFullError mean that it is worth
// trying again later; those that match commitlog.ErrStorage are the log's; record.ErrCorrupt
// says that the log has damage that cannot be passed by; what else there is comes from the
// file system.
func (c *Cleaner) Clean(ctx context.Context, l *commitlog.Log, p Plan) (Result, error) {
	r := c.newRun(ctx, l, p)
	defer r.view.Release()
	err := r.clean(c.o.MapBytes, c.o.LoadFactor)
	if err != nil {
		err = r.explain(err)
	}
	return r.result, err
}

func (c *Cleaner) newRun(ctx context.Context, l *commitlog.Log, p Plan) *run {
	r := &run{
		ctx: ctx, throttle: c.o.Throttle, logger: c.o.Logger, random: c.o.Random, log: l, config: l.Config(), plan: p,
		view: l.CleanView(), now: c.o.Now().UnixMilli(), progress: p.Progress, txns: newTransactions(),
	}
	if r.progress == nil {
		r.progress = &Progress{}
	}
	r.source.size = max(c.o.BufferBytes/2, 1<<10)
	r.source.large = max(c.o.MaxMessageBytes, r.config.MaxMessageBytes)
	r.reading = recordReader{strategy: r.config.CompactionStrategy, header: r.config.CompactionHeader, maxDecompressed: r.config.MaxDecompressedMessageBytes}
	r.result.EndOffset = p.FirstDirty
	return r
}

func (r *run) clean(mapBytes int64, loadFactor float64) error {
	if err := r.checkPlan(); err != nil {
		return err
	}
	// A power failure must not take a record for which an older one goes now.
	if err := r.log.FlushTo(r.plan.FirstUncleanable); err != nil {
		return err
	}
	var err error
	if r.horizonOfOld, err = r.legacyHorizon(); err != nil {
		return err
	}
	began := time.Now()
	r.m, err = newOffsetMap(r.random, mapBytes, r.plan.FirstUncleanable-r.plan.FirstDirty, loadFactor, r.reading.strategy != commitlog.CompactByOffset)
	if err != nil {
		return err
	}
	defer r.m.close()
	r.reading.hasher = r.m.hasher
	if err := r.buildMap(); err != nil {
		return err
	}
	r.result.MapEntries, r.result.MapSlots = int64(r.m.count), mapBytes/slotSize
	mapped := time.Now()
	r.result.MapDuration = mapped.Sub(began)
	if err := r.rewrite(); err != nil {
		return err
	}
	r.result.RewriteDuration = time.Since(mapped)
	r.result.EndOffset = r.latest + 1
	return nil
}

// checkPlan refuses a plan that does not fit the log any more: since it was made, the log was
// truncated or its high watermark moved back.
func (r *run) checkPlan() error {
	for _, s := range r.view.Segments {
		if s.BaseOffset() == r.plan.FirstUncleanable && r.plan.FirstUncleanable <= r.view.LastStable && r.plan.FirstDirty < r.plan.FirstUncleanable {
			return nil
		}
	}
	return fmt.Errorf("%v: %w", r.log.Partition(), commitlog.ErrSegmentsChanged)
}

// use pays for bytes that were read, and is where a cleaning can be aborted.
func (r *run) use(bytes int) error { return r.throttle.Use(r.ctx, bytes) }

func (r *run) wrote(bytes int) error {
	r.result.BytesWritten += int64(bytes)
	r.progress.WrittenBytes.Add(int64(bytes))
	return r.use(bytes)
}

// explain makes of an error what it means for the log.
func (r *run) explain(err error) error {
	_, known := errors.AsType[*commitlog.DiskFullError](err)
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case r.view.Outdated():
		return errors.Join(commitlog.ErrSegmentsChanged, err)
	case vfs.IsFull(err) && !known:
		return &commitlog.DiskFullError{Partition: r.log.Partition(), Op: "clean", Err: err}
	}
	return err
}
