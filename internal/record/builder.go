package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A Producer is the identity of an idempotent producer in a batch.
type Producer struct {
	ID           int64
	Epoch        int16
	BaseSequence int32 // of the first record; -1 in a transaction marker
}

// BuilderOptions say what goes into the header of a v2 batch. The zero value is an
// uncompressed batch without a producer that starts at offset 0.
type BuilderOptions struct {
	Codec         Codec
	Level         int // of the codec; 0 is its default
	BaseOffset    int64
	LeaderEpoch   *int32    // nil: none, -1, as a producer sends it
	Producer      *Producer // nil: the producer is not idempotent
	Transactional bool
	Control       bool

	// With LogAppendTime, AppendTime becomes the batch's maximum timestamp, and with
	// that every record's.
	TimestampType TimestampType
	AppendTime    int64

	// DeleteHorizon, in ms, replaces the base timestamp. 0 sets none.
	DeleteHorizon int64
}

// batchSizeMax is the largest size that a batch may have before it is compressed. With a
// codec that cannot make it smaller it still fits the length field.
const batchSizeMax = 1<<31 - 64<<20

// A Builder makes one v2 batch, and after Reset another. It is for one goroutine.
type Builder struct {
	opts          BuilderOptions
	plain         []byte // the header's room, then the records
	sizeHint      int    // of the batch before
	count         int
	lastOffset    int64
	baseTimestamp int64
	maxTimestamp  int64
}

// NewBuilder returns a Builder for a batch with these options.
func NewBuilder(o BuilderOptions) *Builder {
	b := new(Builder)
	b.Reset(o)
	return b
}

// Reset starts another batch. What Build returned before stays valid.
func (b *Builder) Reset(o BuilderOptions) {
	*b = Builder{opts: o, plain: b.plain[:0], sizeHint: b.sizeHint, lastOffset: o.BaseOffset - 1, baseTimestamp: -1, maxTimestamp: -1}
}

// Append adds a copy of a record. Its offset must be above the one before and not below
// the base offset; gaps are what compaction leaves. TimestampType, Sequence and Attributes
// of the record are not looked at: the batch has them.
func (b *Builder) Append(r Record) error {
	if r.Offset <= b.lastOffset || r.Offset-b.opts.BaseOffset > math.MaxInt32 {
		return fmt.Errorf("offset %d does not fit in a batch with base offset %d after offset %d",
			r.Offset, b.opts.BaseOffset, b.lastOffset)
	}
	if b.count == 0 {
		b.baseTimestamp = r.Timestamp
		if b.opts.DeleteHorizon > 0 {
			b.baseTimestamp = b.opts.DeleteHorizon
		}
	}
	timestampDelta, offsetDelta := r.Timestamp-b.baseTimestamp, r.Offset-b.opts.BaseOffset
	size := recordSize(&r, timestampDelta, offsetDelta)
	if size > batchSizeMax-binary.MaxVarintLen32-len(b.plain) {
		return fmt.Errorf("record of %d bytes does not fit in a batch of %d", size, len(b.plain))
	}
	if b.count == 0 {
		b.plain = slices.Grow(b.plain, max(HeaderSize+binary.MaxVarintLen32+size, b.sizeHint))[:HeaderSize]
	}
	b.plain = appendRecord(b.plain, &r, size, timestampDelta, offsetDelta)
	b.count++
	b.lastOffset = r.Offset
	b.maxTimestamp = max(b.maxTimestamp, r.Timestamp)
	return nil
}

// Count returns how many records have been appended.
func (b *Builder) Count() int { return b.count }

// Size returns the size of the batch so far, not compressed.
func (b *Builder) Size() int { return max(len(b.plain), HeaderSize) }

// SetLastOffset makes the batch end at an offset above its last record, as a batch does
// whose last records were compacted away.
func (b *Builder) SetLastOffset(offset int64) { b.lastOffset = max(b.lastOffset, offset) }

// Build returns the batch, or nil when nothing was appended. The bytes are the caller's.
// The Builder has to be Reset before it is used again.
func (b *Builder) Build() []byte {
	if b.count == 0 {
		return nil
	}
	batch := b.plain
	if b.opts.Codec == None {
		b.plain, b.sizeHint = nil, len(b.plain) // it is the caller's now
	} else {
		batch = make([]byte, HeaderSize, HeaderSize+len(b.plain)/2)
		batch = compress(batch, b.plain[HeaderSize:], b.opts.Codec, b.opts.Level, 2)
	}
	b.putHeader(batch)
	return batch
}

func (b *Builder) putHeader(batch Batch) {
	o, attributes := &b.opts, byte(b.opts.Codec)
	maxTimestamp := b.maxTimestamp
	if o.TimestampType == LogAppendTime {
		attributes |= attrLogAppendTime
		maxTimestamp = o.AppendTime
	}
	if o.Transactional {
		attributes |= attrTransactional
	}
	if o.Control {
		attributes |= attrControl
	}
	if o.DeleteHorizon > 0 {
		attributes |= attrDeleteHorizon
	}
	producer := Producer{ID: -1, Epoch: -1, BaseSequence: -1}
	if o.Producer != nil {
		producer = *o.Producer
	}
	leaderEpoch := int32(-1)
	if o.LeaderEpoch != nil {
		leaderEpoch = *o.LeaderEpoch
	}
	be := binary.BigEndian
	be.PutUint64(batch[posOffset:], uint64(o.BaseOffset))
	be.PutUint32(batch[posLength:], uint32(len(batch)-LogOverhead))
	be.PutUint32(batch[posLeaderEpoch:], uint32(leaderEpoch))
	batch[posMagic] = 2
	be.PutUint16(batch[posAttributes:], uint16(attributes))
	be.PutUint32(batch[posLastOffsetDelta:], uint32(b.lastOffset-o.BaseOffset))
	be.PutUint64(batch[posBaseTimestamp:], uint64(b.baseTimestamp))
	be.PutUint64(batch[posMaxTimestamp:], uint64(maxTimestamp))
	be.PutUint64(batch[posProducerID:], uint64(producer.ID))
	be.PutUint16(batch[posProducerEpoch:], uint16(producer.Epoch))
	be.PutUint32(batch[posBaseSequence:], uint32(producer.BaseSequence))
	be.PutUint32(batch[posCount:], uint32(b.count))
	batch.setCRC()
}

// EmptyBatch returns what compaction leaves of a v2 batch that lost all records but has to
// remember its offsets and the sequence of its producer: the header, with no record, no
// codec and no base timestamp.
func EmptyBatch(b Batch) []byte {
	empty := append(Batch(nil), b[:HeaderSize]...)
	be := binary.BigEndian
	be.PutUint32(empty[posLength:], HeaderSize-LogOverhead)
	be.PutUint16(empty[posAttributes:], uint16(b.attr(attrLogAppendTime|attrTransactional|attrControl)))
	be.PutUint64(empty[posBaseTimestamp:], math.MaxUint64)
	be.PutUint32(empty[posCount:], 0)
	empty.setCRC()
	return empty
}
