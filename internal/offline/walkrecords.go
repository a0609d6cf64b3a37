package offline

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/record"
)

var errFields = errors.New("fields do not fit")

// varint reads a zigzag number of at most ten bytes at pos. next is 0 if there is none. The
// short forms, which are nearly all there are, come first.
func varint(b []byte, pos int) (v, next int) {
	if pos+1 < len(b) {
		c := b[pos]
		if c < 0x80 {
			return int(c>>1) ^ -int(c&1), pos + 1
		}
		if d := b[pos+1]; d < 0x80 {
			u := uint(c&0x7f) | uint(d)<<7
			return int(u>>1) ^ -int(u&1), pos + 2
		}
	}
	return longVarint(b, pos)
}

func longVarint(b []byte, pos int) (v, next int) {
	var u uint64
	for i := 0; i < 10 && pos < len(b); i++ {
		c := b[pos]
		pos++
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int(u>>1) ^ -int(u&1), pos
		}
	}
	return 0, 0
}

// walkRecords checks the records of an uncompressed v2 batch: each fits exactly, there are as
// many as the header says, and offsets ascend within the batch. It looks at lengths only, so
// it costs as much as there are records, whatever their size.
func walkRecords(b record.Batch) error {
	before, last := -1, int(b.LastOffsetDelta())
	pos, count := record.HeaderSize, b.Count()
	for i := range count {
		size, body := varint(b, pos)
		if body == 0 || size < 0 || size > len(b)-body {
			return fmt.Errorf("record %d of %d does not fit in its batch", i, count)
		}
		pos = body + size
		delta, ok := walkRecord(b[:pos], body)
		if !ok {
			return fmt.Errorf("record %d of %d: %w", i, count, errFields)
		}
		if delta <= before || delta > last {
			return fmt.Errorf("record %d has offset delta %d, behind %d, of at most %d", i, delta, before, last)
		}
		before = delta
	}
	if pos != len(b) {
		return fmt.Errorf("%d bytes behind the last record", len(b)-pos)
	}
	return nil
}

// walkRecord steps over the fields of a record that ends with b.
func walkRecord(b []byte, pos int) (delta int, ok bool) {
	pos++ // attributes
	if _, pos = varint(b, pos); pos == 0 {
		return 0, false
	}
	if delta, pos = varint(b, pos); pos == 0 {
		return 0, false
	}
	if pos = skip(b, pos); pos == 0 { // key
		return 0, false
	}
	if pos = skip(b, pos); pos == 0 { // value
		return 0, false
	}
	if pos == len(b)-1 && b[pos] == 0 { // no headers
		return delta, true
	}
	return delta, walkHeaders(b, pos)
}

// skip steps over a length and as many bytes; a negative length is null. It returns 0 if they
// are not there.
func skip(b []byte, pos int) int {
	n, pos := varint(b, pos)
	if n <= 0 {
		return pos
	}
	if pos == 0 || n > len(b)-pos {
		return 0
	}
	return pos + n
}

func walkHeaders(b []byte, pos int) bool {
	n, pos := varint(b, pos)
	if pos == 0 || n < 0 || n > len(b)-pos {
		return false
	}
	for range n {
		size, next := varint(b, pos)
		if next == 0 || size < 0 {
			return false
		}
		if pos = skip(b, pos); pos == 0 {
			return false
		}
		if pos = skip(b, pos); pos == 0 {
			return false
		}
	}
	return pos == len(b)
}
