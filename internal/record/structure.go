package record

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/gregor-kafka/gregor/internal/crc32c"
)

// CheckRecords checks the structure of the records of a v2 batch, decompressed if need be to
// limit bytes at most: each fits exactly, there are as many as the header says, and their
// offsets ascend up to the batch's last one. It decodes none of them, so that it costs a
// fraction of Records. The error is an *InvalidRecordError. The CRC is not looked at.
func CheckRecords(b Batch, limit int) error {
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

// pieceSize is how much is summed up before the records in it are gone over. They are in the first
// level cache then, where it takes half the time to hop from one to the next.
const pieceSize = 24 << 10

// More takes the bytes up to the end of b, which are those of the last call and more behind
// them. The first call has at least HeaderSize bytes, or the whole batch.
func (v *Verification) More(b Batch) {
	for v.summed < len(b) {
		v.piece(b[:min(len(b), v.summed+pieceSize)])
	}
}

func (v *Verification) piece(b Batch) {
	table, from := crc32c.Table, posAttributes
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
		return CheckRecords(b, limit)
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
	before int64 // offset delta of the last one, -1 before the first
}

// finish goes to the end of p, which has all records. lastDelta is the batch's.
func (w *structure) finish(p []byte, lastDelta int32) error {
	w.advance(p)
	if w.read < w.count {
		c := cursor{records: p, count: w.count, pos: w.pos, read: w.read}
		if !c.next() {
			return c.err
		}
		return invalid("record %d has offset delta %d, behind %d", w.read, c.offsetDelta, w.before)
	}
	if rest := len(p) - w.pos; rest > 0 {
		return invalid("%d bytes after the last of %d records", rest, w.count)
	}
	if w.before > int64(lastDelta) {
		return invalid("last record has offset delta %d, of at most %d", w.before, lastDelta)
	}
	return nil
}

// advance goes on over records that are good and whole in p. Of the one where it stops nothing
// is said.
func (w *structure) advance(p []byte) {
	for w.read < w.count {
		var r layout
		next, err := parseRecord(p, w.pos, &r)
		if err != nil || int64(r.offsetDelta) <= w.before {
			return
		}
		like := p[w.pos:]
		w.pos, w.read, w.before = next, w.read+1, int64(r.offsetDelta)
		w.row(p, like)
	}
}

// row goes on over records like the good one in front of them, which like begins with. Most
// often nearly all of a batch are.
func (w *structure) row(p, like []byte) {
	s, ok := shapeOf(like)
	if !ok {
		return
	}
	at, left, before := s.walk(p, w.pos, w.count-w.read, s.encode(w.before))
	w.pos, w.read, w.before = at, w.count-left, s.decode(before)
}

// A shape is what records in a row have in common: how many bytes the timestamp delta takes, and
// how many the offset delta.
type shape struct {
	size       int    // of both
	mask, bits uint64 // of the bytes of both: what is the same in all records, and what it is
	offset     uint64 // mask of the offset delta
	shift      int    // where that begins
}

// shapeOf returns the shape of the good record that p begins with; ok is false if that has 8 KiB
// and more, or numbers too large for a row.
func shapeOf(p []byte) (s shape, ok bool) {
	if len(p) < 16 {
		return s, false
	}
	length := varintBytes(binary.LittleEndian.Uint64(p))
	if length > 2 {
		return s, false
	}
	word := binary.LittleEndian.Uint64(p[length+1:])
	timestamp := varintBytes(word)
	s.size = timestamp + varintBytes(word>>(8*timestamp&63))
	if s.size > 8 || s.size-timestamp > 3 {
		return s, false
	}
	s.shift = 8 * timestamp
	s.offset = lowBytes(s.size) &^ lowBytes(timestamp)
	s.mask = moreBytes&lowBytes(s.size) | 1<<s.shift // no negative offset delta
	s.bits = moreBytes & lowBytes(s.size) & word
	return s, true
}

// walk goes on from the record at at over as many of the shape as there are, up to left, as far
// as p has them and their keys and values have less than 8 KiB. It returns where it stopped, how
// many are left, and the offset delta of the last one; that and before are encoded.
//
// This is the innermost loop of whoever checks a whole log, and next to the checksum, which
// costs 4 ns for 100 bytes, each nanosecond shows. So it has few enough variables for registers,
// takes several bytes with one read and compares without decoding: offset deltas because among
// those with as many bytes the greater one is the greater word; the length of the value with the
// only one with which the fields fill the record.
func (s *shape) walk(p []byte, at int, left int32, before uint64) (int, int32, uint64) {
	size := 0 // of the last record
	for left > 0 && at >= 0 && at < len(p)-16 {
		var i, end int
		word := binary.LittleEndian.Uint64(p[at:])
		switch { // the length, and a byte of attributes
		case word&0x81 == 0:
			i, end = at+2, at+1+int(word&0x7f>>1)
			word = binary.LittleEndian.Uint64(p[at+2:])
		case word&0x8081 == 0x80:
			i, end = at+3, at+2+int((word&0xffff+word&0x7f)>>2-0x20)
			word = binary.LittleEndian.Uint64(p[at+3:])
		default:
			return at, left, before
		}
		offset := word & s.offset
		if word&s.mask != s.bits || offset <= before {
			break
		}
		i += s.size
		key := int(p[i])
		switch {
		case key&0x81 == 0 || key == 1: // 1 is null
		case key&1 == 0 && p[i+1] < 0x80:
			i, key = i+1, key&0x7f|int(p[i+1])<<7
		default:
			return at, left, before
		}
		i += key >> 1 // the last byte in front of the value
		if i < 0 || i >= len(p)-9 || i >= end || end > len(p) {
			break
		}
		word = binary.LittleEndian.Uint64(p[i+1:])
		length := uint64(end-i-3) << 1 // without its own byte, and the one that says: no headers
		if word&0x80 == 0 {
			word &= 0xff
		} else {
			word &= 0xffff
			length -= 2
			length += length&^0x7f + 0x80
		}
		if word^length|uint64(p[end-1]) != 0 && !valueAndHeaders(p[:end:end], i+1) {
			break
		}
		if end-at == size { // the processor guesses that, and need not wait for the length
			at += size
		} else {
			at, size = end, end-at
		}
		before = offset
		left--
	}
	return at, left, before
}

// valueAndHeaders reports whether p has a value from i on, and up to 63 headers to its end.
func valueAndHeaders(p []byte, i int) bool {
	_, i = cutSpan(p, i)
	return i != nowhere && i < len(p) && p[i]&0x81 == 0 && checkHeaders(p, i+1, int(p[i]>>1)) == nil
}

// encode returns an offset delta, of a record of the shape, as it is in a word of deltas.
func (s *shape) encode(delta int64) uint64 {
	v := uint64(delta) << 1
	return (v&0x7f|v<<1&0x7f00|v<<2&0x7f0000)<<s.shift | s.bits&s.offset
}

// decode is the opposite of encode.
func (s *shape) decode(v uint64) int64 {
	v >>= s.shift
	return int64(v&0x7f|v>>1&0x3f80|v>>2&0x1fc000) >> 1
}

// lowBytes is a mask of the first n bytes of a word.
func lowBytes(n int) uint64 { return 1<<(8*n) - 1 }

// moreBytes has the bit of each byte of a varint that says that another one follows.
const moreBytes = 0x8080808080808080

// varintBytes returns how many bytes the varint has that a word begins with, 9 if it has more
// than the word.
func varintBytes(word uint64) int { return bits.TrailingZeros64(^word&moreBytes)>>3 + 1 }
