package commitlog

import (
	"errors"
	"fmt"
	"math"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// AppendOptions say who appends.
type AppendOptions struct {
	Origin record.Origin // Client or Coordinator

	// TransactionVersion of a coordinator's marker: from 2 on, its producer epoch must be
	// above the last one seen (KIP-890).
	TransactionVersion int16

	// Commits says that no other replica has to have the set: the high watermark goes to its
	// end with it.
	Commits bool
}

// An AppendInfo says where a set went.
type AppendInfo struct {
	FirstOffset    int64
	LastOffset     int64
	MaxTimestamp   int64
	LogAppendTime  int64 // -1 unless the topic has message.timestamp.type=LogAppendTime
	LogStartOffset int64
	Count          int // of records

	// Duplicate says that an idempotent producer sent the set before: nothing was written,
	// and the offsets are those it has got.
	Duplicate bool

	// Converted says that the set came in another message format than the log's.
	Converted bool

	// FlushTo, when above 0, is what the caller must give to Log.FlushTo before it
	// acknowledges: flush.messages is reached.
	FlushTo int64
}

// A stampedSet is a set ready to be written.
type stampedSet struct {
	bytes        []byte
	first, last  int64
	maxTimestamp int64
	count        int
	hasProducer  bool
	commits      bool
}

// AppendAsLeader validates a set, gives it offsets and the leader epoch, in place, and
// appends it. After an error the log is as before, unless it is a *StorageError; one that does
// not match ErrStorage is the fault of the set. The set is the caller's again on return.
func (l *Log) AppendAsLeader(set []byte, leaderEpoch int32, o AppendOptions) (AppendInfo, error) {
	if err := l.prepare(); err != nil {
		return AppendInfo{}, err
	}
	if err := l.room(); err != nil {
		return AppendInfo{}, err
	}
	c := l.config.Load()
	vo := record.ValidateOptions{
		Magic:           c.MessageFormat,
		Now:             l.now().UnixMilli(),
		Origin:          o.Origin,
		TargetCodec:     c.Compression,
		Level:           c.Level(c.Compression),
		TimestampType:   c.TimestampType,
		BeforeMaxMs:     c.TimestampBeforeMaxMs,
		AfterMaxMs:      c.TimestampAfterMaxMs,
		Compacted:       c.Compact,
		MaxMessageBytes: c.MaxMessageBytes,
		MaxDecompressed: c.MaxDecompressedMessageBytes,
	}
	v, err := record.Validate(set, &vo)
	if err != nil {
		return AppendInfo{}, err
	}
	l.mu.Lock()
	info, err := l.appendValidLocked(&v, leaderEpoch, o, c)
	l.unlockRolled()
	if err != nil {
		return info, err
	}
	return info, l.syncEpochsSoon()
}

func (l *Log) appendValidLocked(v *record.Validated, leaderEpoch int32, o AppendOptions, c *Config) (AppendInfo, error) {
	if err := l.usableLocked(); err != nil {
		return AppendInfo{}, err
	}
	if v.Magic < 2 {
		return l.appendMessagesLocked(v, o, c)
	}
	if len(v.Set) > c.SegmentBytes {
		return AppendInfo{}, fmt.Errorf("%w: %d bytes, %d allowed", ErrRecordListTooLarge, len(v.Set), c.SegmentBytes)
	}
	batch := record.Batch(v.Set)
	if batch.ProducerID() >= 0 {
		if b, duplicate, err := l.admitLocked(batch, o); err != nil {
			return AppendInfo{}, err
		} else if duplicate {
			return l.duplicateLocked(b, c), nil
		}
	}
	first, err := l.firstOffsetOf(v)
	if err != nil {
		return AppendInfo{}, err
	}
	if err := v.Stamp(first, leaderEpoch); err != nil {
		return AppendInfo{}, err
	}
	s := stampedSet{
		bytes:        batch,
		first:        first,
		last:         batch.LastOffset(),
		maxTimestamp: v.MaxTimestamp,
		count:        v.Count,
		hasProducer:  batch.ProducerID() >= 0,
		commits:      o.Commits,
	}
	l.epochs.assign(leaderEpoch, s.first)
	info, err := l.writeLocked(&s, c)
	info.LogAppendTime, info.Converted = v.LogAppendTime, v.Converted
	return info, err
}

// admitLocked says why a batch with a producer id must be refused, and returns the one that it repeats, if
// that can be read. One that cannot is written again: a client may rely on what was acknowledged. That
// goes where no other batch of the producer, and no end of its transaction, has come behind.
func (l *Log) admitLocked(batch record.Batch, o AppendOptions) (b producerBatch, duplicate bool, err error) {
	producers := l.mu.producers
	if o.Origin == record.Client {
		b, duplicate = producers.duplicate(batch)
	}
	if !duplicate {
		return b, false, producers.check(batch, parseEndTxn(batch), o)
	}
	lost, err := l.isLost(b, producers.newest(batch) == b)
	switch {
	case err != nil:
		return b, false, &StepError{l.partition, "append", err}
	case !lost:
		return b, true, nil
	case !producers.endsWith(batch, b):
		return b, false, fmt.Errorf("%v: %w: the batch at offset %d, which is sent again, cannot be read", l.partition, record.ErrCorrupt, b.firstOffset())
	}
	l.logger.Warn("batch that cannot be read is sent again, and written again", "partition", l.partition, "offset", b.firstOffset(), "producer", batch.ProducerID())
	return b, false, nil
}

// isLost reports whether a batch of a producer cannot be read: it is in quarantine, or it is not there and compaction has
// not taken it, which leaves the newest one of each producer, at least its header.
func (l *Log) isLost(b producerBatch, newest bool) (bool, error) {
	o := l.offsets.Load()
	i := floorSegment(o.segments, b.lastOffset)
	if i < 0 || b.lastOffset < o.LogStart {
		return false, nil
	}
	s := o.segments[i]
	slice, err := s.Read(b.lastOffset, 1, s.Size(), segment.WholeFirst)
	switch {
	case errors.Is(err, record.ErrCorrupt):
		return true, nil
	case errors.Is(err, segment.ErrNotFound):
		return newest, nil
	case err != nil:
		return false, err
	}
	found := slice.First().BaseOffset <= b.lastOffset
	slice.Release()
	return newest && !found, nil
}

// firstOffsetOf returns the offset that a set gets. The one behind its last must exist as well:
// it is the log end then.
func (l *Log) firstOffsetOf(v *record.Validated) (int64, error) {
	end := l.offsets.Load().End
	if int64(v.LastOffsetDelta) >= math.MaxInt64-end {
		return 0, &StepError{l.partition, "append", fmt.Errorf("%w: the log ends at %d", ErrNoOffsets, end)}
	}
	return end, nil
}

func (l *Log) duplicateLocked(b producerBatch, c *Config) AppendInfo {
	o := l.offsets.Load()
	return AppendInfo{
		FirstOffset:    b.firstOffset(),
		LastOffset:     b.lastOffset,
		MaxTimestamp:   b.timestamp,
		LogAppendTime:  -1,
		LogStartOffset: o.LogStart,
		Count:          int(b.offsetDelta) + 1,
		Duplicate:      true,
		FlushTo:        l.flushTarget(b.lastOffset+1, c),
	}
}

// AppendAsFollower appends what a leader sent, offsets as they are; gaps are compaction's.
// Batches of an epoch above maxEpoch, the one of the fetch, are left out with all behind
// them (KAFKA-18723), and so is an incomplete tail. A set that begins below the log end is
// refused with an *UnexpectedOffsetError. An empty set is none.
func (l *Log) AppendAsFollower(set []byte, maxEpoch int32) (AppendInfo, error) {
	if err := l.prepare(); err != nil {
		return AppendInfo{}, err
	}
	if err := l.room(); err != nil {
		return AppendInfo{}, err
	}
	s, err := inspect(set, maxEpoch)
	if err != nil {
		return AppendInfo{}, fmt.Errorf("%v: %w", l.partition, err)
	}
	if len(s.bytes) == 0 {
		o := l.offsets.Load()
		return AppendInfo{FirstOffset: -1, LastOffset: o.End - 1, MaxTimestamp: -1, LogAppendTime: -1, LogStartOffset: o.LogStart}, nil
	}
	l.mu.Lock()
	info, err := l.appendSentLocked(&s)
	l.unlockRolled()
	if err != nil {
		return info, err
	}
	return info, l.syncEpochsSoon()
}

// inspect verifies the batches of a leader's answer.
func inspect(set []byte, maxEpoch int32) (stampedSet, error) {
	s := stampedSet{first: -1, last: -1, maxTimestamp: -1}
	size := 0
	for size < len(set) {
		b, err := record.First(set[size:])
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			return s, err
		}
		if b.LeaderEpoch() > maxEpoch {
			break
		}
		first, err := b.FirstOffset()
		if err != nil {
			return s, err
		}
		if first <= s.last || b.LastOffset() < first {
			return s, fmt.Errorf("%w: %d to %d after %d", ErrOffsetsOutOfOrder, first, b.LastOffset(), s.last)
		}
		if size == 0 {
			s.first = first
		}
		s.last = b.LastOffset()
		s.maxTimestamp = max(s.maxTimestamp, b.MaxTimestamp())
		s.count += int(b.Count())
		s.hasProducer = s.hasProducer || b.ProducerID() >= 0
		size += b.Size()
	}
	s.bytes = set[:size]
	return s, nil
}

func (l *Log) appendSentLocked(s *stampedSet) (AppendInfo, error) {
	if err := l.usableLocked(); err != nil {
		return AppendInfo{}, err
	}
	c := l.config.Load()
	if end := l.offsets.Load().End; s.first < end {
		return AppendInfo{}, fmt.Errorf("%v: %w", l.partition, &UnexpectedOffsetError{s.first, s.last, end})
	}
	if s.last == math.MaxInt64 {
		return AppendInfo{}, &StepError{l.partition, "append", ErrNoOffsets}
	}
	if len(s.bytes) > c.SegmentBytes {
		return AppendInfo{}, fmt.Errorf("%w: %d bytes, %d allowed", ErrRecordListTooLarge, len(s.bytes), c.SegmentBytes)
	}
	l.noteEpochs(s.bytes)
	info, err := l.writeLocked(s, c)
	info.LogAppendTime = -1
	return info, err
}

// noteEpochs takes the leader epochs of batches into the cache. Messages of old formats
// have none, and what the cache says would be wrong for them: it is cleared.
func (l *Log) noteEpochs(set []byte) {
	for b := range record.Batches(set) {
		if b.Magic() < 2 {
			l.epochs.clear()
		} else {
			l.epochs.assign(b.LeaderEpoch(), b.BaseOffset())
		}
	}
}

// writeLocked rolls if the set asks for it, writes, and publishes the new end.
func (l *Log) writeLocked(s *stampedSet, c *Config) (AppendInfo, error) {
	if err := l.maybeRollLocked(s, c); err != nil {
		return AppendInfo{}, err
	}
	o := l.offsets.Load()
	active := o.active()
	if s.hasProducer {
		if err := l.soundTxnsLocked(active); err != nil {
			return AppendInfo{}, l.spare("read aborted transactions", err)
		}
	}
	start := position{s.first, active, active.Size()}
	if err := active.Append(s.bytes); err != nil {
		return AppendInfo{}, l.appendFailed(err)
	}
	if s.hasProducer {
		if err := l.applyProducersLocked(s.bytes, start); err != nil {
			return AppendInfo{}, l.fail("append aborted transaction", err)
		}
	}
	l.mu.producers.end, l.offsets.data = s.last+1, s.last+1
	next := l.offsets.next()
	next.end = position{s.last + 1, active, active.Size()}
	l.offsets.recent.add(next.end)
	if s.commits {
		next.highWatermark = next.end
	}
	l.offsets.publish(next, l.mu.producers)
	return AppendInfo{
		FirstOffset:    s.first,
		LastOffset:     s.last,
		MaxTimestamp:   s.maxTimestamp,
		LogStartOffset: next.LogStart,
		Count:          s.count,
		FlushTo:        l.flushTarget(s.last+1, c),
	}, nil
}

// applyProducersLocked tells the producer state about batches that were written at start.
func (l *Log) applyProducersLocked(set []byte, at position) error {
	for len(set) > 0 {
		b, err := record.First(set)
		if err != nil {
			panic("BUG: written set is broken: " + err.Error())
		}
		if b.ProducerID() >= 0 {
			at.offset = b.BaseOffset()
			t, ended := l.mu.producers.apply(b, parseEndTxn(b), at)
			if ended && t.Aborted {
				err = at.segment.AppendAborted(l.mu.producers.aborted(t))
			}
			if err != nil {
				return err
			}
			if ended {
				l.mu.producers.complete(t)
			}
		}
		at.pos += int64(b.Size())
		set = set[b.Size():]
	}
	return nil
}

// flushTarget returns what an append up to end has to wait for under flush.messages.
func (l *Log) flushTarget(end int64, c *Config) int64 {
	if c.FlushMessages == math.MaxInt64 || end-l.offsets.recoveryPoint.Load() < c.FlushMessages {
		return 0
	}
	return end
}

// An endTxn is what the marker in a control batch says.
type endTxn struct {
	valid            bool // false: no marker of a transaction
	abort            bool
	coordinatorEpoch int32
}

// parseEndTxn reads the marker in a control batch. In what is no control batch of a
// transaction, and in one that compaction emptied, there is none.
func parseEndTxn(b record.Batch) endTxn {
	if !b.IsControl() {
		return endTxn{}
	}
	for r, err := range b.Records() {
		if err != nil {
			break
		}
		t, err := record.ParseControl(r.Key)
		if err != nil || t != record.ControlAbort && t != record.ControlCommit {
			break
		}
		epoch, err := record.ParseEndTxn(r.Value)
		return endTxn{err == nil, t == record.ControlAbort, epoch}
	}
	return endTxn{}
}
