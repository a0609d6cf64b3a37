package commitlog

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options say which log to open and what surrounds it.
type Options struct {
	FS        vfs.FS
	Dir       string // the partition's directory; created if missing
	Partition topic.Partition
	TopicID   uuid.UUID // zero: whatever partition.metadata says
	// TopicIDRead says that TopicID was read from partition.metadata a moment ago.
	TopicIDRead bool
	Config      Config

	// RecoveryPoint, HighWatermark and LogStartOffset are what the checkpoints of the log
	// directory say, 0 if they say nothing. If Dir is missing the log begins behind them.
	RecoveryPoint  int64
	HighWatermark  int64
	LogStartOffset int64

	// Clean says that the directory was stopped cleanly: files are trusted and no data is
	// read. Otherwise everything from the recovery point on is checked.
	Clean bool
	// CleanState, if not nil, is what the log said of itself when it was closed.
	CleanState *CleanState

	ProducerIDExpiration time.Duration // producer.id.expiration.ms; 0 is never
	Now                  func() time.Time
	Logger               *slog.Logger

	// DeleteLater runs remove after the delay. It may drop it at shutdown: files to be
	// deleted are renamed already and the next Open removes them. It is called with locks of
	// the log held, and remove waits for a sync that runs, so it returns before remove has
	// run. Nil starts a goroutine at once, which Close waits for.
	DeleteLater func(delay time.Duration, remove func())

	// Background runs a task that a log wants done soon: syncing what a roll sealed. It is
	// called with locks of the log held, so it returns before the task has run. Nil starts a
	// goroutine, which Close waits for.
	Background func(task func())

	// Recovery, if not nil, counts what Open has to check.
	Recovery *RecoveryMeter

	// Disk says when there is no room for records. Nil is always room.
	Disk *Disk

	// OnFailure is called once, when a failed operation makes the log refuse writes; the error
	// is a *StorageError, and whether the disk has failed vfs.FaultOf tells. The caller may hold
	// locks of the log: OnFailure must not call it.
	OnFailure func(error)
}

// A Log is one partition's log. All methods are safe for concurrent use.
type Log struct {
	fs         vfs.FS
	partition  topic.Partition
	now        func() time.Time
	logger     *slog.Logger
	expiration atomic.Int64 // of producer ids, in nanoseconds

	deleteLater func(time.Duration, func())
	runLater    func(func())
	onFailure   func(error)
	background  sync.WaitGroup // tasks of the default runLater

	config  atomic.Pointer[Config]
	topicID atomic.Pointer[uuid.UUID]
	// newDir is set until the name of the directory is durable.
	newDir atomic.Bool
	// metadataPending is set until partition.metadata is on disk; no record goes before it.
	metadataPending atomic.Bool

	// files is held by what removes or moves files: retention, truncation, rename, close.
	// Lock order: files, then flush.mu, then mu, then the locks of the epoch cache and the
	// segments.
	files sync.Mutex

	// mu guards everything that changes the log: append, roll, truncation, retention, high
	// watermark. It is held across writes, and in rare places across a sync: truncation, a roll
	// when everything before it is on disk, and what is noted of lost records and transactions. The
	// examination of a damaged segment reads it under mu.
	mu struct {
		sync.Mutex
		closed bool
		bare   bool // the active segment has no index files yet; see unlockRolled
		// truncations counts what makes a sync that began earlier worthless.
		truncations uint32
		producers   *ProducerState
		snapshots   snapshots
		losses      *lossFile // nil for none
		created     time.Time // of the active segment, in this process
		jitterMs    int64     // of the active segment

		// unsynced has the sealed segments that were not synced since, ascending.
		unsynced []*segment.Segment
	}

	offsets offsets // readers load, who changes it holds mu

	// facts are what is known of transactions, beside the indexes of aborted ones; nil for nothing.
	// Who changes it holds mu.
	facts atomic.Pointer[factTable]
	// lost are transactions whose end is lost; nil until the file is read. Who changes it holds mu.
	lost atomic.Pointer[lostTxns]

	epochs *EpochCache
	flush  flusher
	pins   pins

	bytesCut atomic.Int64
	disk     *Disk

	// failure is set once, by the first failed operation or by Close.
	failure atomic.Pointer[StorageError]
}

// Dir returns the directory of the log.
func (l *Log) Dir() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirLocked()
}

func (l *Log) dirLocked() string { return l.mu.snapshots.dir }

// Partition returns which partition the log is of.
func (l *Log) Partition() topic.Partition { return l.partition }

// TopicID returns the id of the topic, zero if the directory has none and none was given.
func (l *Log) TopicID() uuid.UUID { return *l.topicID.Load() }

// Offsets returns the state of the log, an immutable snapshot.
func (l *Log) Offsets() *Offsets { return l.offsets.Load() }

// DataEnd returns the offset behind the last batch. It is below the log end after a truncation into
// a gap, or into a batch, which went as a whole.
func (l *Log) DataEnd() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offsets.dataEnd()
}

// Config returns the configuration in force.
func (l *Log) Config() Config { return *l.config.Load() }

// MinInsyncReplicas returns min.insync.replicas as it is in force: one number of Config, for every append.
func (l *Log) MinInsyncReplicas() int { return l.config.Load().MinInsyncReplicas }

// SetConfig puts a new configuration in force, preallocation from the next segment on.
func (l *Log) SetConfig(c Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config.Store(&c)
	l.offsets.Load().active().SetIndexLimits(c.indexInterval(), c.SegmentIndexBytes)
}

// Failed returns the *StorageError that makes the log refuse writes, or nil.
func (l *Log) Failed() error {
	if e := l.failure.Load(); e != nil {
		return e
	}
	return nil
}

// prepare is what comes before every change: is the log alive, and is its topic id on disk?
func (l *Log) prepare() error {
	if e := l.failure.Load(); e != nil {
		return e
	}
	if l.metadataPending.Load() {
		return l.syncMetadata()
	}
	return nil
}

// usableLocked refuses changes that waited for the mutex while the log failed or closed.
func (l *Log) usableLocked() error {
	if e := l.failure.Load(); e != nil {
		return e
	}
	return nil
}

// syncMetadata writes partition.metadata if it is not there.
func (l *Log) syncMetadata() error {
	l.epochs.file.Lock()
	defer l.epochs.file.Unlock()
	if !l.metadataPending.Load() {
		return nil
	}
	path := filepath.Join(filepath.Dir(l.epochs.path), checkpoint.PartitionMetadataFile)
	if err := checkpoint.WritePartitionMetadata(l.fs, path, l.TopicID()); err != nil {
		return l.spare("write partition.metadata", err)
	}
	l.metadataPending.Store(false)
	return nil
}

// loadMetadata compares the topic id on disk with the given one. (KAFKA-16814: logs of
// old brokers have none and get one.)
func (l *Log) loadMetadata(o *Options) error {
	id := o.TopicID
	if o.TopicIDRead {
		l.topicID.Store(&id)
		return nil
	}
	m, err := checkpoint.ReadPartitionMetadata(l.fs, filepath.Join(o.Dir, checkpoint.PartitionMetadataFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.metadataPending.Store(!id.IsZero())
	case errors.Is(err, checkpoint.ErrCorrupt):
		l.logger.Error("topic id of the directory cannot be read", "partition", l.partition, "id", id, "err", err)
		l.metadataPending.Store(!id.IsZero())
	case err != nil:
		return err
	case id.IsZero():
		id = m.TopicID
	case id != m.TopicID:
		return fmt.Errorf("%v: %w: %v in %s, want %v", l.partition, ErrInconsistentTopicID, m.TopicID, o.Dir, id)
	}
	l.topicID.Store(&id)
	return nil
}

// SetHighWatermark moves the high watermark, also back, to the nearest offset within the
// log, and returns it. Followers take their leader's with it.
func (l *Log) SetHighWatermark(offset int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	offset = min(max(offset, o.LogStart), o.End)
	if offset != o.HighWatermark {
		l.offsets.moveHighWatermark(offset, l.mu.producers)
	}
	return offset
}

// IncrementHighWatermark moves the high watermark forward, to the log end at most, and
// reports whether it moved.
func (l *Log) IncrementHighWatermark(offset int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	if offset = min(offset, o.End); offset <= o.HighWatermark {
		return false
	}
	l.offsets.moveHighWatermark(offset, l.mu.producers)
	return true
}

// Producers lists the producers that the log knows, by id.
func (l *Log) Producers() []ProducerInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.producers.infos()
}

// NumProducers returns how many producers the log knows.
func (l *Log) NumProducers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.producers.producers)
}

// ExpireProducers forgets producers that wrote nothing for producer.id.expiration.ms, and
// returns how many.
func (l *Log) ExpireProducers(now time.Time) int {
	expiration := time.Duration(l.expiration.Load())
	if expiration == unlimited {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.producers.expire(now, expiration)
}

// SetProducerIDExpiration changes Options.ProducerIDExpiration.
func (l *Log) SetProducerIDExpiration(d time.Duration) {
	if d <= 0 {
		d = unlimited
	}
	l.expiration.Store(int64(d))
}

// LatestEpoch returns the last leader epoch the log has seen, or -1.
func (l *Log) LatestEpoch() int32 { return l.provenEpochs().latestEpoch() }

// EpochForOffset returns the leader epoch in which offset was or will be written, or -1.
func (l *Log) EpochForOffset(offset int64) int32 {
	epoch, _ := l.provenEpochs().epochFor(offset, l.offsets.Load().End)
	return epoch
}

// EpochEndOffset answers OffsetForLeaderEpoch: the largest epoch up to the asked one and
// the offset where it ended; -1, -1 if the log cannot tell.
func (l *Log) EpochEndOffset(epoch int32) (int32, int64) {
	epochs := l.provenEpochs()
	return epochs.endOffset(epoch, l.offsets.Load().End)
}

// EnterEpoch notes that this broker leads in an epoch, which begins at the log end (Kafka's
// UnifiedLog.assignEpochStartOffset). Nothing is written: see EpochCache.
func (l *Log) EnterEpoch(epoch int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.enter(epoch, l.offsets.Load().End)
}

// IsCold reports whether an append in a leader epoch has to write and sync more than its records.
func (l *Log) IsCold(epoch int32) bool {
	if l.metadataPending.Load() {
		return true
	}
	e, ok := l.epochs.latest()
	return !ok || e.Epoch < epoch
}

func (l *Log) syncEpochs() error {
	if err := l.epochs.sync(); err != nil {
		return l.spare("write leader epochs", err)
	}
	return nil
}

// syncEpochsSoon is syncEpochs after an append. Where it cannot be done now, as on a full disk, the
// batches, which have the epochs too, must do until the next attempt.
func (l *Log) syncEpochsSoon() error {
	if err := l.syncEpochs(); l.Failed() != nil {
		return err
	}
	return nil
}

// A SegmentInfo describes a segment.
type SegmentInfo struct {
	BaseOffset int64
	Size       int64
}

// Segments describes the segments, oldest first.
func (l *Log) Segments() []SegmentInfo {
	o := l.offsets.Load()
	list := make([]SegmentInfo, len(o.segments))
	for i, s := range o.segments {
		list[i] = SegmentInfo{s.BaseOffset(), s.Size()}
	}
	return list
}

// NumSegments returns the number of segments, at least one.
func (l *Log) NumSegments() int { return len(l.offsets.Load().segments) }

// Size returns the size of all .log files in bytes.
func (l *Log) Size() int64 {
	var size int64
	for _, s := range l.offsets.Load().segments {
		size += s.Size()
	}
	return size
}

// startSegmentLocked notes what the rolling rules need about a new active segment.
func (l *Log) startSegmentLocked(base int64, c *Config) {
	l.mu.created = l.now()
	l.mu.jitterMs = 0
	if bound := min(c.SegmentJitterMs, c.SegmentMs); bound > 0 {
		l.mu.jitterMs = rollJitter(l.disk.RollSeed, l.partition, base, bound)
	}
}

// rollJitter is a random number below bound, for a segment.
func rollJitter(seed uint64, p topic.Partition, base, bound int64) int64 {
	name := fnv.New64a()
	fmt.Fprintf(name, "%v %d", p, base)
	return rand.New(rand.NewPCG(seed, name.Sum64())).Int64N(bound)
}

// RenameDir moves the log to another directory of the same parent: to the -delete name of
// a partition on its way out, or from a -future name to the live one.
func (l *Log) RenameDir(dir string) error {
	return l.syncOnce(func() error { return l.renameDir(dir) })
}

// renameDir runs as a sync does, so that none looks for files under the old name.
func (l *Log) renameDir(dir string) error {
	if err := l.syncEpochs(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.file.Lock()
	defer l.epochs.file.Unlock()
	if err := segment.RenameDir(l.fs, l.dirLocked(), dir, l.offsets.Load().segments); err != nil {
		return l.spare("rename", err)
	}
	l.mu.snapshots.dir = dir
	l.epochs.path = filepath.Join(dir, checkpoint.LeaderEpochs)
	return nil
}

// Close flushes the log, takes a producer snapshot and closes the files. After a nil error
// everything is on disk and the directory may be marked as cleanly stopped. Later changes
// fail with ErrClosed; reads must have ended.
func (l *Log) Close() error {
	l.background.Wait()
	err := l.prepare()
	if err == nil {
		err = l.snapshotAndFlush()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil
	}
	l.mu.closed = true
	l.failure.CompareAndSwap(nil, &StorageError{l.partition, "use", ErrClosed})
	for _, s := range l.offsets.Load().segments {
		err = errors.Join(err, s.Close())
	}
	return err
}

func (l *Log) snapshotAndFlush() error {
	l.mu.Lock()
	end := l.offsets.dataEnd()
	l.mu.producers.end = end
	if end < l.offsets.Load().End { // a gap that a truncation left is forgotten
		next := l.offsets.next()
		next.end.offset = end
		l.offsets.publish(next, l.mu.producers)
		l.epochs.truncateFromEnd(end)
	}
	err := l.mu.snapshots.write(l.mu.producers)
	l.mu.Unlock()
	if err != nil {
		return l.spare("write producer snapshot", err)
	}
	return l.Flush()
}

// Abandon closes the files of a log whose disk has failed: it writes and syncs nothing. Later
// changes fail with ErrClosed, unless the log has failed already.
func (l *Log) Abandon() {
	l.failure.CompareAndSwap(nil, &StorageError{l.partition, "use", ErrClosed})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	for _, s := range l.offsets.Load().segments {
		s.Abandon()
	}
}

// Delete closes the log without flushing it and removes its directory.
func (l *Log) Delete() error {
	l.failure.CompareAndSwap(nil, &StorageError{l.partition, "use", ErrClosed})
	l.background.Wait()
	l.flush.await() // one that runs has the files open
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	var err error
	for _, s := range l.offsets.Load().segments {
		err = errors.Join(err, s.Remove())
	}
	return errors.Join(err, vfs.RemoveAll(l.fs, l.dirLocked()))
}
