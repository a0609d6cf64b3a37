package record

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// SetOptions say how a message set of format v0 or v1 is made.
type SetOptions struct {
	Magic int8 // 0 or 1
	Codec Codec
	Level int // of the codec; 0 is its default

	// With LogAppendTime, which v0 does not have, AppendTime becomes every timestamp.
	TimestampType TimestampType
	AppendTime    int64
}

// A SetBuilder makes a message set: one message per record, or one wrapper around all of
// them if there is a codec. It is for one goroutine.
type SetBuilder struct {
	opts         SetOptions
	set          []byte
	count        int
	firstOffset  int64
	lastOffset   int64
	maxTimestamp int64
}

// NewSetBuilder returns a SetBuilder. Formats other than v0 and v1, and codecs that these
// cannot have (zstd), are refused with ErrUnsupportedCompression or an error.
func NewSetBuilder(o SetOptions) (*SetBuilder, error) {
	if o.Magic != 0 && o.Magic != 1 {
		return nil, fmt.Errorf("message set of format v%d", o.Magic)
	}
	if o.Codec < None || o.Codec > LZ4 {
		return nil, fmt.Errorf("%w: %v in format v%d", ErrUnsupportedCompression, o.Codec, o.Magic)
	}
	return &SetBuilder{opts: o, maxTimestamp: -1, lastOffset: -1}, nil
}

// Append adds a copy of a record. Its offset must be above the one before. Headers and
// Sequence are left out, as the formats have no place for them.
func (b *SetBuilder) Append(r Record) error {
	if r.Offset <= b.lastOffset {
		return fmt.Errorf("offset %d does not come after offset %d", r.Offset, b.lastOffset)
	}
	if size := minMessage1 + len(r.Key) + len(r.Value); size > batchSizeMax-len(b.set) {
		return fmt.Errorf("record of %d bytes does not fit in a set of %d", size, len(b.set))
	}
	if b.count == 0 {
		b.firstOffset = r.Offset
	}
	offset, timestamp := r.Offset, r.Timestamp
	if b.opts.Codec != None && b.opts.Magic == 1 {
		offset -= b.firstOffset
	}
	if b.opts.TimestampType == LogAppendTime && b.opts.Codec == None {
		timestamp = b.opts.AppendTime
	}
	b.set = b.appendMessage(b.set, offset, timestamp, None, r.Key, r.Value)
	b.count++
	b.lastOffset = r.Offset
	b.maxTimestamp = max(b.maxTimestamp, r.Timestamp)
	return nil
}

// Build returns the set, or nil when nothing was appended. The SetBuilder is used up.
func (b *SetBuilder) Build() []byte {
	if b.count == 0 || b.opts.Codec == None {
		return b.set
	}
	return b.appendTo(nil)
}

// appendTo appends the wrapper of what was appended before.
func (b *SetBuilder) appendTo(dst []byte) []byte {
	timestamp := b.maxTimestamp
	if b.opts.TimestampType == LogAppendTime {
		timestamp = b.opts.AppendTime
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	s.buf = compress(s.buf[:0], b.set, b.opts.Codec, b.opts.Level, b.opts.Magic)
	return b.appendMessage(dst, b.lastOffset, timestamp, b.opts.Codec, nil, s.buf)
}

// appendMessage appends one message to p, which may have room for it or not.
func (b *SetBuilder) appendMessage(p []byte, offset, timestamp int64, codec Codec, key, value []byte) []byte {
	attributes := byte(codec)
	if b.opts.Magic == 1 && b.opts.TimestampType == LogAppendTime && (codec != None || b.opts.Codec == None) {
		attributes |= attrLogAppendTime
	}
	keyAt := posMessageKey0
	if b.opts.Magic == 1 {
		keyAt = posMessageKey1
	}
	size := keyAt + 8 + len(key) + len(value)
	p = slices.Grow(p, size)
	m := Batch(p[len(p) : len(p)+size])
	be := binary.BigEndian
	be.PutUint64(m[posOffset:], uint64(offset))
	be.PutUint32(m[posLength:], uint32(size-LogOverhead))
	m[posMagic], m[posMessageAttributes] = byte(b.opts.Magic), attributes
	if b.opts.Magic == 1 {
		be.PutUint64(m[posMessageTimestamp:], uint64(timestamp))
	}
	putField(m[putField(m[keyAt:], key)+keyAt:], value)
	m.setCRC()
	return p[:len(p)+size]
}

// putField writes a field behind its length and returns the size of both.
func putField(p, field []byte) int {
	size := uint32(len(field))
	if field == nil {
		size = 1<<32 - 1
	}
	binary.BigEndian.PutUint32(p, size)
	return 4 + copy(p[4:], field)
}
