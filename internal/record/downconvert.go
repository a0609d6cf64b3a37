package record

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A DownConverter makes batches into what a reader of an older format understands. What
// that format has no place for is lost: headers, producers, transactions, and in v0
// timestamps. It is for one goroutine.
type DownConverter struct {
	Magic           int8  // newest format that the reader knows: 0 or 1
	Start           int64 // the offset that the reader asked for
	MaxDecompressed int   // of the records of a batch; 0 is DefaultMaxDecompressed

	Converted int // batches that were not just copied, those left out included
}

// Append appends to dst what the reader gets for b, which is perhaps nothing:
//
//   - A batch of a format that the reader knows is copied.
//   - Control records are left out.
//   - Uncompressed records become a message each; those below Start are left out
//     (KAFKA-5360).
//   - Compressed records become one wrapper with the same codec. All are kept, unless all
//     are below Start: a reader in the gap that compaction left at the end of a batch would
//     get that batch for ever.
//
// Once dst has limit bytes or more no further message is appended, so the last one may go
// beyond. The error is ErrUnsupportedCompression for zstd, which old formats do not have, an
// *InvalidRecordError, or a *CorruptError if the checksum is wrong.
func (d *DownConverter) Append(dst []byte, b Batch, limit int) ([]byte, error) {
	if b.Magic() <= d.Magic {
		return append(dst, b...), nil
	}
	d.Converted++
	if err := b.checkCRC(); err != nil {
		return dst, err // the new checksums would hide it
	}
	switch codec := b.Codec(); {
	case b.IsControl() || b.Count() == 0:
		return dst, nil
	case codec > LZ4:
		return dst, fmt.Errorf("%w: %v for readers of format v%d", ErrUnsupportedCompression, codec, d.Magic)
	case codec != None:
		return d.appendWrapper(dst, b)
	case b.isMessage():
		return d.appendOlder(dst, b)
	}
	return d.appendMessages(dst, b, limit)
}

// appendMessages appends the records of an uncompressed v2 batch, a message each.
func (d *DownConverter) appendMessages(dst []byte, b Batch, limit int) ([]byte, error) {
	c, err := b.open(nil, 0)
	if err != nil {
		return dst, err
	}
	set := SetBuilder{opts: d.options(b)}
	first := max(d.Start-b.BaseOffset(), 0)
	timestamp, baseTimestamp := b.MaxTimestamp(), b.BaseTimestamp()
	// A record takes seven bytes at least, and the most that it grows by is a message's overhead.
	count := min(int(c.count), len(c.records)/7+1)
	dst = slices.Grow(dst, min(len(c.records)+minMessage1*count, max(limit-len(dst), 0)))
	for len(dst) < limit && c.next() {
		if int64(c.offsetDelta) < first {
			continue
		}
		if set.opts.TimestampType != LogAppendTime {
			timestamp = baseTimestamp + c.timestampDelta
		}
		dst = set.appendMessage(dst, b.BaseOffset()+int64(c.offsetDelta), timestamp, None, c.key.of(c.records), c.value.of(c.records))
	}
	return dst, c.err
}

// appendOlder appends an uncompressed v1 message as one of format v0.
func (d *DownConverter) appendOlder(dst []byte, b Batch) ([]byte, error) {
	m, err := b.parseMessage()
	if err != nil || b.BaseOffset() < d.Start {
		return dst, err
	}
	set := SetBuilder{opts: d.options(b)}
	return set.appendMessage(dst, b.BaseOffset(), -1, None, m.key, m.value), nil
}

// appendWrapper appends a compressed batch as a wrapper.
func (d *DownConverter) appendWrapper(dst []byte, b Batch) ([]byte, error) {
	s := scratches.Get().(*scratch)
	defer s.release()
	set := SetBuilder{opts: d.options(b), set: s.buf[:0], maxTimestamp: -1, lastOffset: -1}
	var full error
	err := b.each(d.MaxDecompressed, func(r Record) bool {
		full = set.Append(r)
		return full == nil
	})
	s.buf = set.set
	switch {
	case err != nil:
		return dst, err
	case full != nil:
		return dst, &InvalidRecordError{Reason: "batch cannot be converted", Err: full}
	case set.count == 0 || set.lastOffset < d.Start:
		return dst, nil
	}
	return set.appendTo(dst), nil
}

func (d *DownConverter) options(b Batch) SetOptions {
	return SetOptions{Magic: d.Magic, Codec: b.Codec(), TimestampType: b.TimestampType(), AppendTime: b.MaxTimestamp()}
}

// Filler returns the head of what readers take for the beginning of a batch that was cut;
// zeros follow up to size. It fills an answer up to the size that was promised before its
// records were converted.
func Filler(size int) (head [LogOverhead]byte) {
	binary.BigEndian.PutUint64(head[posOffset:], 1<<64-1)
	binary.BigEndian.PutUint32(head[posLength:], uint32(max(size+1, HeaderSize)))
	return head
}
