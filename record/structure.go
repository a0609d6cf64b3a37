package record

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
)

// CheckRecords checks the structure of the records of a v2 batch, decompressed if need be to
// limit bytes at most: each fits exactly, there are as many as the header says, and their
// offsets ascend up to the batch's last one. It decodes none of them, so that it costs a
// fraction of Records. The error is an *InvalidRecordError. The CRC is not looked at.
func (b Batch) CheckRecords(limit int) error {
	s := scratches.Get().(*scratch)
	defer s.release()
	c, err := b.open(s, limit)
	if err != nil {
		return err
	}
	w := structure{count: c.count, before: -1}
	return w.finish(c.records, b.LastOffsetDelta())
}

// A Verification is Verify and CheckRecords of one batch while its bytes are being read, so that
// they are looked at while the processor has them in its cache. The zero value is ready; to
// begin with the next batch set it to that.
type Verification struct {
	sum     uint32
	summed  int // bytes of the batch up to here are in sum, or before what it covers
	records structure
}

// More takes the bytes up to the end of b, which are those of the last call and more behind
// them. The first call has at least HeaderSize bytes, or the whole batch.
func (v *Verification) More(b Batch) {
	table, from := castagnoli, posAttributes
	if b.isMessage() {
		table, from = crc32.IEEETable, posMagic
	}
	v.sum = crc32.Update(v.sum, table, b[max(v.summed, from):])
	if !v.plain(b) {
		v.summed = len(b)
		return
	}
	if v.summed == 0 {
		v.records = structure{count: b.Count(), before: -1}
	}
	v.summed = len(b)
	v.records.advance(b[HeaderSize:])
}

// plain reports whether the records can be looked at before all of them are there.
func (v *Verification) plain(b Batch) bool { return !b.isMessage() && b.Codec() == None }

// CRC reports what Verify does of the whole batch, whose frame is right.
func (v *Verification) CRC(b Batch) error {
	if want := b.CRC(); v.sum != want {
		return corrupt(b, "crc %08x, want %08x", v.sum, want)
	}
	return nil
}

// Records reports what CheckRecords does of the whole v2 batch.
func (v *Verification) Records(b Batch, limit int) error {
	if !v.plain(b) {
		return b.CheckRecords(limit)
	}
	if b.Count() < 0 {
		return invalid("negative record count %d", b.Count())
	}
	return v.records.finish(b[HeaderSize:], b.LastOffsetDelta())
}

// A structure goes over the records of a v2 batch without decoding them.
type structure struct {
	pos    int   // of the next record
	read   int32 // records so far
	count  int32 // records that there are to be
	before int64 // offset delta of the last one, doubled; -1 before the first
}

// finish goes to the end of p, which has all records. lastDelta is the batch's.
func (w *structure) finish(p []byte, lastDelta int32) error {
	c := cursor{records: p, count: w.count}
	for w.advance(p); w.read < w.count; w.advance(p) {
		c.pos, c.read = w.pos, w.read
		if !c.next() {
			return c.err
		}
		delta := int64(c.offsetDelta)
		if delta<<1 <= w.before {
			return invalid("record %d has offset delta %d, behind %d", w.read, delta, w.before>>1)
		}
		w.pos, w.read, w.before = c.pos, c.read, delta<<1
	}
	if rest := len(p) - w.pos; rest > 0 {
		return invalid("%d bytes after the last of %d records", rest, w.count)
	}
	if w.before > int64(lastDelta)<<1 {
		return invalid("last record has offset delta %d, of at most %d", w.before>>1, lastDelta)
	}
	return nil
}

// advance goes on over records in p that are good and of the usual kind: with fields of less
// than 8 KiB, and not among the last bytes of p. Of the one where it stops nothing is said.
//
// This is the innermost loop of whoever checks a whole log, and next to the checksum, which
// costs 7 ns for 100 bytes, each nanosecond shows. So it reads words of eight bytes, the first
// of which most often has all that is in front of the key, and shifts the fields out. Which of
// them have one byte and which two is nearly always as in the record before, so the branches
// cost little, and the processor begins with the next record as soon as it has the length of
// this one.
func (w *structure) advance(p []byte) {
	at, read, before, limit := w.pos, w.read, w.before, len(p)-8
	size, alike := 0, 0 // of the last record, and how many before it had the same
walk:
	for read < w.count && at >= 0 && at < limit-8 {
		word := binary.LittleEndian.Uint64(p[at:])
		if word&1 != 0 {
			break
		}
		i, end := at, at
		switch { // the length, and a byte of attributes
		case word&0x80 == 0:
			i, end, word = i+2, end+1+int(word&0x7f)>>1, word>>16
		case word&0x8000 == 0:
			i, end, word = i+3, end+2+int(twoBytes(word))>>1, word>>24
		default:
			break walk
		}
		if end > limit {
			break
		}
		switch { // timestamp delta
		case word&0x80 == 0:
			i, word = i+1, word>>8
		case word&0x8000 == 0:
			i, word = i+2, word>>16
		default:
			if i += varintBytes(binary.LittleEndian.Uint64(p[i:])); i > limit {
				break walk
			}
			word = binary.LittleEndian.Uint64(p[i:])
		}
		var delta int64
		switch { // offset delta
		case word&1 != 0:
			break walk
		case word&0x80 == 0:
			i, delta, word = i+1, int64(word&0x7f), word>>8
		case word&0x8000 == 0:
			i, delta, word = i+2, int64(twoBytes(word)), word>>16
		case word&0x800000 == 0:
			i, delta, word = i+3, int64(twoBytes(word)|word>>2&0x1fc000), word>>24
		default:
			break walk
		}
		if delta <= before {
			break
		}
		if i > at+6 { // the word may have only the first byte of a length of two
			if i > limit {
				break
			}
			word = binary.LittleEndian.Uint64(p[i:])
		}
		if i = skipField(word, i); i < 0 || i > limit { // key
			break
		}
		if i = skipField(binary.LittleEndian.Uint64(p[i:]), i); i < 0 || i >= end { // value
			break
		}
		headers := p[i]
		if (headers != 0 || i+1 != end) && (headers&0x81 != 0 || checkHeaders(p[:end], i+1, int(headers>>1)) != nil) {
			break
		}
		if alike++; end-at != size {
			size, alike = end-at, 0
		}
		at, before = end, delta
		read++
		if alike == 4 {
			w.pos, w.read, w.before = at, read, before
			w.row(p, size)
			at, read, before, alike = w.pos, w.read, w.before, 0
		}
	}
	w.pos, w.read, w.before = at, read, before
}

// row goes on over records that are laid out as the one of some size in front of them, which
// advance has found good: their lengths are the same, and there are no headers. Logs are full
// of these, and all there is to do for one is to compare two words and a byte.
func (w *structure) row(p []byte, size int) {
	s, ok := shapeOf(p[w.pos-size:], size)
	if !ok {
		return
	}
	at, read, before := w.pos, w.read, w.before
	for read < w.count && at >= 0 && at < len(p)-8-size {
		head := binary.LittleEndian.Uint64(p[at:])
		value := binary.LittleEndian.Uint64(p[at+s.valueAt:])
		if (head^s.head)&s.mask != 0 || (value^s.value)&s.valueMask != 0 || p[at+s.headersAt] != 0 {
			break
		}
		head >>= s.shift & 63
		delta := int64(head&0x7f | head>>1&s.second | head>>2&s.third)
		if delta&1 != 0 || delta <= before {
			break
		}
		at, before = at+size, delta
		read++
	}
	w.pos, w.read, w.before = at, read, before
}

// A shape is how a good record is laid out: what those with the same lengths have in common.
type shape struct {
	head, mask       uint64 // the first bytes, up to the length of the key
	valueAt          int    // where the length of the value is
	value, valueMask uint64 // that length
	headersAt        int    // where the number of headers is, which is 0

	shift         uint   // of the offset delta in head
	second, third uint64 // masks of the second and third byte of it
}

// shapeOf returns the shape of the good record that p begins with; ok is false if that has headers
// or its first fields take more than a word.
func shapeOf(p []byte, size int) (s shape, ok bool) {
	s.head = binary.LittleEndian.Uint64(p)
	length := varintBytes(s.head)
	offset := length + 1 + varintBytes(s.head>>(8*length+8))
	key := offset + varintBytes(s.head>>(8*offset))
	keyEnd := key + varintBytes(s.head>>(8*key))
	if keyEnd > 8 || key-offset > 3 {
		return s, false
	}
	s.mask = lowBytes(length) | moreBytes&lowBytes(key) | lowBytes(keyEnd)&^lowBytes(key)
	s.shift = uint(8 * offset)
	payload := uint64(1)<<(7*(key-offset)) - 1
	s.second, s.third = 0x3f80&payload, 0x1fc000&payload
	s.valueAt, s.headersAt = skipField(s.head>>(8*key), key), size-1
	s.value = binary.LittleEndian.Uint64(p[s.valueAt:])
	s.valueMask = lowBytes(varintBytes(s.value))
	return s, skipField(s.value, s.valueAt) == s.headersAt
}

// lowBytes is a mask of the first n bytes of a word.
func lowBytes(n int) uint64 { return 1<<(8*n) - 1 }

// moreBytes has the bit of each byte of a varint that says that another one follows.
const moreBytes = 0x8080808080808080

// varintBytes returns how many bytes the varint has that a word begins with, or more than there
// can be anywhere.
func varintBytes(word uint64) int {
	if word&moreBytes == moreBytes {
		return math.MaxInt32
	}
	return bits.TrailingZeros64(^word&moreBytes)>>3 + 1
}

// twoBytes is the varint of two bytes that a word begins with, still zigzag.
func twoBytes(word uint64) uint64 { return word&0x7f | word>>1&0x3f80 }

// skipField returns where the field ends whose length is at i, and begins the word; -1 if the
// length has more than two bytes. Null, whose length is negative, has none.
func skipField(word uint64, i int) int {
	n := word & 0x7f
	switch {
	case word&0x80 == 0:
		i++
	case word&0x8000 == 0:
		n, i = twoBytes(word), i+2
	default:
		return -1
	}
	if word&1 == 0 {
		i += int(n >> 1)
	}
	return i
}
