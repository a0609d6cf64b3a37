package record

import (
	"encoding/binary"
	"slices"
)

// AppendRecords appends the records of a v2 batch to dst as they lie in memory, decompressed
// if need be, for a Scan. They may take up to limit bytes; 0 is DefaultMaxDecompressed. The
// error is an *InvalidRecordError.
func AppendRecords(dst []byte, b Batch, limit int) ([]byte, error) {
	codec := b.Codec()
	if codec == None || b.Count() == 0 {
		return append(dst, b[HeaderSize:]...), nil
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	if err := s.decompress(b[HeaderSize:], codec, 2, limit); err != nil {
		return dst, &InvalidRecordError{Reason: codec.String() + " records", Err: unexpectedEOF(err)}
	}
	return append(dst, s.buf...), nil
}

// A Scan goes over the records of a v2 batch without decoding more than it is asked for. It
// is what compaction reads with. Nothing is allocated.
type Scan struct {
	c     cursor
	start int // of the current record
}

// NewScan returns a Scan before the first record. records is what AppendRecords has appended, or
// of a batch without codec, b[HeaderSize:].
func NewScan(b Batch, records []byte) Scan {
	count := b.Count()
	s := Scan{c: cursor{records: records, count: count}}
	if count < 0 {
		s.c.count, s.c.err = 0, invalid("negative record count %d", count)
	}
	return s
}

// Next moves to the next record, all of whose fields it checks. After false, Err says why.
func (s *Scan) Next() bool {
	if s.c.err != nil {
		return false
	}
	s.start = s.c.pos
	return s.c.next()
}

// Err returns an *InvalidRecordError if the records are not what the header says, and nil
// while there are more, and at the end.
func (s *Scan) Err() error { return s.c.err }

// OffsetDelta returns the distance of the record from the base offset.
func (s *Scan) OffsetDelta() int32 { return s.c.offsetDelta }

// TimestampDelta returns the distance of the record from the base timestamp. With
// LogAppendTime it means nothing.
func (s *Scan) TimestampDelta() int64 { return s.c.timestampDelta }

// Key returns the key, a view of the records, and whether it is there: it may be null.
func (s *Scan) Key() (key []byte, ok bool) {
	return s.c.key.of(s.c.records), !s.c.key.isNull()
}

// IsTombstone reports whether the value is null.
func (s *Scan) IsTombstone() bool { return s.c.value.isNull() }

// Header returns the value of the last header with a name, a view of the records. ok is false
// if there is none.
func (s *Scan) Header(name string) (value []byte, ok bool) {
	p, i := s.c.records, s.c.headers.start
	for range s.c.headerCount {
		var k, v span
		k, i = cutSpan(p, i)
		v, i = cutSpan(p, i)
		if string(k.of(p)) == name {
			value, ok = v.of(p), true
		}
	}
	return value, ok
}

// RetainOptions say how a batch is rebuilt.
type RetainOptions struct {
	// DeleteHorizon, in ms, replaces the base timestamp; 0 sets none. One that the batch has
	// already stays.
	DeleteHorizon int64
	Level         int // of the codec; 0 is its default
}

// AppendRetained appends to dst what compaction leaves of a v2 batch: the records for which
// keep is true. records is what NewScan was given, and a Scan has found it good; keep has an
// element per record. Base offset, last offset delta, producer, sequence, epoch, codec and
// kind stay (see Rules). Without any record left, that is EmptyBatch. The batch is the caller's
// to append, dst may be larger for good.
func AppendRetained(dst []byte, b Batch, records []byte, keep []bool, o RetainOptions) ([]byte, error) {
	first := slices.Index(keep, true)
	if first < 0 {
		return append(dst, EmptyBatch(b)...), nil
	}
	r := retention{b: b, records: records, keep: keep, first: first}
	if horizon, ok := b.DeleteHorizon(); ok {
		o.DeleteHorizon = horizon
	}
	start := len(dst)
	codec := b.Codec()
	if codec == None {
		dst = append(dst, b[:HeaderSize]...)
		dst = r.append(dst, o.DeleteHorizon)
	} else {
		s := scratches.Get().(*scratch)
		defer s.release()
		s.buf = r.append(s.buf[:0], o.DeleteHorizon)
		dst = append(dst, b[:HeaderSize]...)
		dst = compress(dst, s.buf, codec, o.Level, 2)
	}
	if r.bad {
		return dst[:start], invalid("records of a batch do not match its header")
	}
	size := len(dst) - start
	if size > batchSizeMax {
		return dst[:start], invalid("batch of %d bytes", size)
	}
	r.putHeader(Batch(dst[start:]), o.DeleteHorizon > 0)
	return dst, nil
}

// A retention copies records from one batch to another.
type retention struct {
	b       Batch
	records []byte
	keep    []bool
	first   int // index of the first record kept

	count         int
	baseTimestamp int64
	maxTimestamp  int64
	bad           bool
}

// append copies the kept records. Only their first fields are written anew, and nothing at all
// while the base timestamp is the same: then runs of records are copied in one go.
func (r *retention) append(dst []byte, horizon int64) []byte {
	r.maxTimestamp = -1
	at, run := 0, 0 // records[run:at] wait to be copied
	for i, keep := range r.keep {
		head := r.headAt(at)
		if head.end == 0 {
			break // short, which the comparison below tells
		}
		if keep {
			timestamp := r.note(head.delta, i == r.first, horizon)
			if delta := timestamp - r.baseTimestamp; delta != head.delta {
				dst = append(dst, r.records[run:at]...)
				dst = appendRebased(dst, r.records[head.body], delta, r.records[head.rest:head.end])
				run = head.end
			}
		} else {
			dst = append(dst, r.records[run:at]...)
			run = head.end
		}
		at = head.end
	}
	r.bad = at != len(r.records)
	return append(dst, r.records[run:at]...)
}

// A recordHead says where the fields of a record are that a rebuilt batch has in another form.
type recordHead struct {
	body, rest, end int // the attributes, what follows the timestamp delta, the next record
	delta           int64
}

// headAt reads the head of the record at a position. Without a whole record there its end is 0.
func (r *retention) headAt(at int) (h recordHead) {
	length, body := varint(r.records, at)
	if body == nowhere || uint64(length) > uint64(len(r.records)-body) {
		return h
	}
	end := body + int(length)
	delta, rest := varint(r.records[:end], body+1)
	if rest == nowhere {
		return h
	}
	return recordHead{body, rest, end, delta}
}

// note counts a record that stays and returns its timestamp. The first one gives the batch its
// base, unless there is a horizon.
func (r *retention) note(delta int64, first bool, horizon int64) int64 {
	timestamp := r.b.BaseTimestamp() + delta
	if r.b.TimestampType() == LogAppendTime {
		timestamp = r.b.MaxTimestamp()
	}
	if first {
		r.baseTimestamp = timestamp
		if horizon > 0 {
			r.baseTimestamp = horizon
		}
	}
	r.count++
	r.maxTimestamp = max(r.maxTimestamp, timestamp)
	return timestamp
}

// appendRebased appends a record with another timestamp delta.
func appendRebased(dst []byte, attributes byte, delta int64, rest []byte) []byte {
	dst = binary.AppendVarint(dst, int64(1+varintSize(delta)+len(rest)))
	dst = append(dst, attributes)
	dst = binary.AppendVarint(dst, delta)
	return append(dst, rest...)
}

// putHeader turns the copy of the old header into that of the new batch.
func (r *retention) putHeader(batch Batch, horizon bool) {
	be := binary.BigEndian
	be.PutUint32(batch[posLength:], uint32(len(batch)-LogOverhead))
	batch[posAttributes] = 0
	if horizon {
		batch[posAttributes+1] |= attrDeleteHorizon
	}
	be.PutUint64(batch[posBaseTimestamp:], uint64(r.baseTimestamp))
	if batch.TimestampType() != LogAppendTime {
		be.PutUint64(batch[posMaxTimestamp:], uint64(r.maxTimestamp))
	}
	be.PutUint32(batch[posCount:], uint32(r.count))
	batch.setCRC()
}
