package record

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

const (
	// LogOverhead is the size of the offset and length fields in front of each batch.
	LogOverhead = 12

	// HeaderSize is the size of a v2 batch without records.
	HeaderSize = 61
)

// Where fields begin. Those above the blank line are the same in all formats.
const (
	posOffset = 0
	posLength = 8
	posMagic  = 16

	posLeaderEpoch     = 12
	posCRC             = 17
	posAttributes      = 21 // the CRC covers the batch from here
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
)

// The smallest batch of each format, and what has to be there to know the format.
const (
	minLength   = 14 // of what the length field counts
	minFrame    = posMagic + 1
	minMessage0 = LogOverhead + minLength
	minMessage1 = LogOverhead + 22
)

// Bits of the attributes.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// A TimestampType says who set the timestamps of a batch.
type TimestampType int8

// The producer, the broker, or nobody: a v0 message has no timestamp.
const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
	NoTimestamp   TimestampType = -1
)

func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	default:
		return "NoTimestampType"
	}
}

// A Batch is exactly one v2 batch, or one message of format v0 or v1, which may be a
// wrapper. It is a view of bytes that belong to somebody else, and valid as long as they
// are. First and Batches return only views that are long enough for their header; on other
// bytes the methods panic, except for Verify.
//
// A message is a batch of its own. It has no leader epoch, producer or sequence: these are
// -1. Methods may be called concurrently except for the Set methods.
type Batch []byte

// First returns the first batch of b. The error is ErrShort when b ends inside of it, and a
// *CorruptError when no batch begins like b. It looks at the frame only, not at the CRC.
func First(b []byte) (Batch, error) {
	if len(b) < LogOverhead {
		return nil, ErrShort
	}
	length := int(int32(binary.BigEndian.Uint32(b[posLength:])))
	if length < minLength {
		return nil, corrupt(b, "length %d is below %d", length, minLength)
	}
	if len(b) < minFrame {
		return nil, ErrShort
	}
	if magic := int8(b[posMagic]); magic < 0 || magic > 2 {
		return nil, corrupt(b, "unknown magic %d", magic)
	}
	size := LogOverhead + length
	if least := minSize(b[posMagic]); size < least {
		return nil, corrupt(b, "size %d is below %d", size, least)
	}
	if size > len(b) {
		return nil, ErrShort
	}
	return Batch(b[:size:size]), nil
}

// minSize returns the size of the smallest batch of a format.
func minSize(magic byte) int {
	switch magic {
	case 0:
		return minMessage0
	case 1:
		return minMessage1
	default:
		return HeaderSize
	}
}

// corrupt describes b, a batch that is at least LogOverhead long.
func corrupt(b []byte, format string, args ...any) error {
	return &CorruptError{Offset: int64(binary.BigEndian.Uint64(b)), Reason: fmt.Sprintf(format, args...)}
}

// Batches yields the batches of b from front to back. It stops silently at an incomplete
// tail, as every reader of a fetch answer must: compare the sizes with len(b) to learn of
// it. Other than that an error is a *CorruptError and the last thing yielded.
func Batches(b []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for position := 0; position < len(b); {
			batch, err := First(b[position:])
			if err == ErrShort {
				return
			}
			if err != nil {
				yield(nil, at(position, err))
				return
			}
			if !yield(batch, nil) {
				return
			}
			position += len(batch)
		}
	}
}

// at adds the position of a batch in a set to an error about it.
func at(position int, err error) error {
	if e, ok := err.(*CorruptError); ok {
		e.Position = position
	}
	return err
}

// Size returns the number of bytes, header included.
func (b Batch) Size() int { return len(b) }

// Magic returns the format: 0, 1 or 2.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// BaseOffset returns the offset field: the offset of the first record of a v2 batch or of
// an uncompressed message. A wrapper has the offset of its last record there; FirstOffset
// looks inside.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b[posOffset:])) }

// LastOffset returns the offset of the last record, or the one that compaction dropped.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// NextOffset returns LastOffset + 1.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// LastOffsetDelta returns LastOffset - BaseOffset. It is 0 for a message.
func (b Batch) LastOffsetDelta() int32 { return b.int32(posLastOffsetDelta, 0) }

// LeaderEpoch returns the epoch of the leader that appended the batch, or -1.
func (b Batch) LeaderEpoch() int32 { return b.int32(posLeaderEpoch, -1) }

// CRC returns the checksum field.
func (b Batch) CRC() uint32 {
	if b.isMessage() {
		return binary.BigEndian.Uint32(b[posMessageCRC:])
	}
	return binary.BigEndian.Uint32(b[posCRC:])
}

// Attributes returns the attributes as stored. Only the low byte has a meaning.
func (b Batch) Attributes() int16 {
	if b.isMessage() {
		return int16(b[posMessageAttributes])
	}
	return int16(binary.BigEndian.Uint16(b[posAttributes:]))
}

// Codec returns the compression of the records. It may be one that does not exist.
func (b Batch) Codec() Codec { return Codec(b.attr(attrCodec)) }

// TimestampType says what the timestamps of the records mean.
func (b Batch) TimestampType() TimestampType {
	switch {
	case b.Magic() == 0:
		return NoTimestamp
	case b.attr(attrLogAppendTime) != 0:
		return LogAppendTime
	default:
		return CreateTime
	}
}

// IsTransactional reports whether the batch, a marker included, is part of a transaction.
func (b Batch) IsTransactional() bool { return !b.isMessage() && b.attr(attrTransactional) != 0 }

// IsControl reports whether the records are control records, see ParseControl.
func (b Batch) IsControl() bool { return !b.isMessage() && b.attr(attrControl) != 0 }

// DeleteHorizon returns the time in ms from which on the cleaner may drop the tombstones or the
// marker in the batch. ok is false, and the time 0, while there is none (KIP-534).
func (b Batch) DeleteHorizon() (ms int64, ok bool) {
	if b.isMessage() || b.attr(attrDeleteHorizon) == 0 {
		return 0, false
	}
	return b.BaseTimestamp(), true
}

// BaseTimestamp returns what timestamp deltas are added to: the timestamp of the first
// record or the delete horizon, in ms; -1 if there is none. A message has its own.
func (b Batch) BaseTimestamp() int64 {
	switch b.Magic() {
	case 0:
		return -1
	case 1:
		return int64(binary.BigEndian.Uint64(b[posMessageTimestamp:]))
	default:
		return int64(binary.BigEndian.Uint64(b[posBaseTimestamp:]))
	}
}

// MaxTimestamp returns the largest timestamp of the records in ms, or the time of the
// append if the type is LogAppendTime, or -1.
func (b Batch) MaxTimestamp() int64 {
	if b.isMessage() {
		return b.BaseTimestamp()
	}
	return int64(binary.BigEndian.Uint64(b[posMaxTimestamp:]))
}

// ProducerID returns the id of the idempotent producer, or -1.
func (b Batch) ProducerID() int64 {
	if b.isMessage() {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b[posProducerID:]))
}

// ProducerEpoch returns the epoch of the idempotent producer, or -1.
func (b Batch) ProducerEpoch() int16 {
	if b.isMessage() {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b[posProducerEpoch:]))
}

// BaseSequence returns the sequence number of the first record, or -1.
func (b Batch) BaseSequence() int32 { return b.int32(posBaseSequence, -1) }

// LastSequence returns the sequence number of the last record, or -1.
func (b Batch) LastSequence() int32 { return sequence(b.BaseSequence(), b.LastOffsetDelta()) }

// sequence returns base + delta. After the largest int32 comes 0; -1 stays -1.
func sequence(base, delta int32) int32 {
	if base < 0 {
		return -1
	}
	return int32((int64(base) + int64(delta)) & math.MaxInt32)
}

// Count returns the number of records, as the header has it. It is 1 for a message and -1
// for a wrapper, which only tells when decompressed.
func (b Batch) Count() int32 {
	if b.isMessage() && b.Codec() != None {
		return -1
	}
	return b.int32(posCount, 1)
}

func (b Batch) isMessage() bool { return b[posMagic] < 2 }

// attr returns the bits of mask from the byte of the attributes that has a meaning.
func (b Batch) attr(mask byte) byte {
	if b.isMessage() {
		return b[posMessageAttributes] & mask
	}
	return b[posAttributes+1] & mask
}

// int32 returns a field of a v2 batch, or what stands for it in a message.
func (b Batch) int32(position int, message int32) int32 {
	if b.isMessage() {
		return message
	}
	return int32(binary.BigEndian.Uint32(b[position:]))
}

// SetBaseOffset sets the offset field, which no CRC covers. In a wrapper that is the offset
// of its last record.
func (b Batch) SetBaseOffset(offset int64) {
	binary.BigEndian.PutUint64(b[posOffset:], uint64(offset))
}

// SetLeaderEpoch sets the leader epoch, which no CRC covers. A message has none.
func (b Batch) SetLeaderEpoch(epoch int32) {
	if !b.isMessage() {
		binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(epoch))
	}
}

// SetMaxTimestamp stamps the batch with a timestamp type and a time, and computes its CRC
// anew if that changes anything. A v0 message has no place for it and stays as it is.
func (b Batch) SetMaxTimestamp(t TimestampType, ms int64) {
	if b.Magic() == 0 || b.TimestampType() == t && b.MaxTimestamp() == ms {
		return
	}
	attributes, timestamp := posAttributes+1, posMaxTimestamp
	if b.isMessage() {
		attributes, timestamp = posMessageAttributes, posMessageTimestamp
	}
	b[attributes] &^= attrLogAppendTime
	if t == LogAppendTime {
		b[attributes] |= attrLogAppendTime
	}
	binary.BigEndian.PutUint64(b[timestamp:], uint64(ms))
	b.setCRC()
}
