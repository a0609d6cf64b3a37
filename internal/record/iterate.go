package record

import (
	"fmt"
	"iter"
)

// Records yields the records of b in order, decompressed if need be, those of a wrapper
// too. The slices of a Record are valid until the next step; see Record.Clone. An error is
// the last thing yielded: an *InvalidRecordError, whose cause may be a decoder's error,
// ErrUnsupportedCompression or ErrDecompressedTooLarge with DefaultMaxDecompressed. The
// CRC is not looked at, except for those of messages in a wrapper.
func (b Batch) Records() iter.Seq2[Record, error] { return b.RecordsMax(DefaultMaxDecompressed) }

// RecordsMax is Records for records that may take up to limit bytes decompressed.
func (b Batch) RecordsMax(limit int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := b.each(limit, func(r Record) bool { return yield(r, nil) }); err != nil {
			yield(Record{}, err)
		}
	}
}

// each calls visit for the records of a batch of any format until it returns false.
func (b Batch) each(limit int, visit func(Record) bool) error {
	if b.isMessage() {
		return b.eachMessage(limit, visit)
	}
	return b.eachRecord(limit, visit)
}

// eachRecord calls visit for the records of a v2 batch until it returns false.
func (b Batch) eachRecord(limit int, visit func(Record) bool) error {
	s := scratches.Get().(*scratch)
	defer s.release()
	c, err := b.open(s, limit)
	if err != nil {
		return err
	}
	baseOffset, baseTimestamp, baseSequence := b.BaseOffset(), b.BaseTimestamp(), b.BaseSequence()
	r := Record{TimestampType: b.TimestampType()}
	for c.next() {
		r.Offset = baseOffset + int64(c.offsetDelta)
		r.Timestamp = baseTimestamp + c.timestampDelta
		if r.TimestampType == LogAppendTime {
			r.Timestamp = b.MaxTimestamp()
		}
		r.Attributes = c.attributes
		r.Sequence = sequence(baseSequence, c.offsetDelta)
		r.Key, r.Value = c.key.of(c.records), c.value.of(c.records)
		r.Headers = appendHeaders(r.Headers[:0], c.records, &c.layout)
		if !visit(r) {
			return nil
		}
	}
	return c.err
}

// A cursor goes over the records of a v2 batch as they lie in memory.
type cursor struct {
	layout         // where next has moved to
	records []byte // all of them
	pos     int    // in records, of what follows the layout
	read    int32
	count   int32
	err     error // why next returned false, or nil at the end
}

// open returns a cursor before the first record of a v2 batch. What it reads lies in s if
// the batch is compressed.
func (b Batch) open(s *scratch, limit int) (cursor, error) {
	c := cursor{records: b[HeaderSize:], count: b.Count()}
	if c.count < 0 {
		return c, invalid("negative record count %d", c.count)
	}
	if codec := b.Codec(); codec != None && c.count > 0 {
		if err := s.decompress(c.records, codec, 2, limit); err != nil {
			return c, &InvalidRecordError{Reason: codec.String() + " records", Err: unexpectedEOF(err)}
		}
		c.records = s.buf
	}
	return c, nil
}

// next moves to the next record. There have to be as many as the header says.
func (c *cursor) next() bool {
	if c.read == c.count {
		if rest := len(c.records) - c.pos; rest > 0 {
			c.err = invalid("%d bytes after the last of %d records", rest, c.count)
		}
		return false
	}
	next, err := parseRecord(c.records, c.pos, &c.layout)
	if err != nil {
		c.err = c.fault(err)
		return false
	}
	c.pos = next
	c.read++
	return true
}

func (c *cursor) fault(err error) error {
	if c.pos == len(c.records) {
		return invalid("%d records, the header says %d", c.read, c.count)
	}
	return &InvalidRecordError{Reason: fmt.Sprintf("record %d", c.read), Err: err}
}
