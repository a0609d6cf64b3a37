package offline

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/record"
)

var errVarint = errors.New("bad varint")

// A walker steps over the fields of records. It looks at lengths only, so it costs as much
// as there are records, whatever their size. The first error stays.
type walker struct {
	b   []byte
	pos int
	bad bool
}

// varint reads a zigzag number of at most five bytes, as all but timestamps are.
func (w *walker) varint() int {
	if w.pos < len(w.b) {
		if c := w.b[w.pos]; c < 0x80 {
			w.pos++
			return int(c>>1) ^ -int(c&1)
		}
	}
	return w.longVarint(5)
}

func (w *walker) longVarint(most int) int {
	var v uint64
	for i := range most {
		if w.pos >= len(w.b) {
			break
		}
		c := w.b[w.pos]
		w.pos++
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int(v>>1) ^ -int(v&1)
		}
	}
	w.bad = true
	return 0
}

// skip steps over n bytes; a negative n is null.
func (w *walker) skip(n int) {
	if n <= 0 {
		return
	}
	if n > len(w.b)-w.pos {
		w.bad = true
		return
	}
	w.pos += n
}

// walkRecords checks the records of an uncompressed v2 batch: each fits exactly, there are as
// many as the header says, and offsets ascend within the batch.
func walkRecords(b record.Batch) error {
	w := walker{b: b, pos: record.HeaderSize}
	before, last := -1, int(b.LastOffsetDelta())
	for i := range b.Count() {
		size := w.varint()
		end := w.pos + size
		if w.bad || size < 0 || end > len(b) {
			return fmt.Errorf("record %d of %d does not fit in its batch", i, b.Count())
		}
		w.pos++          // attributes
		w.longVarint(10) // timestamp
		delta := w.varint()
		w.skip(w.varint()) // key
		w.skip(w.varint()) // value
		w.headers()
		switch {
		case w.bad || w.pos != end:
			return fmt.Errorf("record %d of %d: fields do not fit: %w", i, b.Count(), errVarint)
		case delta <= before || delta > last:
			return fmt.Errorf("record %d has offset delta %d, behind %d, of at most %d", i, delta, before, last)
		}
		before = delta
	}
	if w.pos != len(b) {
		return fmt.Errorf("%d bytes behind the last record", len(b)-w.pos)
	}
	return nil
}

func (w *walker) headers() {
	n := w.varint()
	if n < 0 || n > len(w.b)-w.pos {
		w.bad = true
		return
	}
	for range n {
		if w.bad {
			return
		}
		size := w.varint()
		w.bad = w.bad || size < 0
		w.skip(size)
		w.skip(w.varint())
	}
}
