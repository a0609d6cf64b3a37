package record

import (
	"encoding/binary"
	"fmt"
)

// Where the fields of a message, format v0 or v1, begin.
const (
	posMessageCRC        = 12
	posMessageAttributes = 17
	posMessageTimestamp  = 18 // v1 only
	posMessageKey0       = 18
	posMessageKey1       = 26
)

// A message is the key and the value of a Batch of format v0 or v1. The slices are views.
type message struct{ key, value []byte } // nil is null

// parseMessage reads key and value. Whatever a writer has put behind them is ignored.
func (b Batch) parseMessage() (message, error) {
	p := b[posMessageKey0:]
	if b.Magic() == 1 {
		p = b[posMessageKey1:]
	}
	key, p, ok := cutField(p)
	value, _, ok2 := cutField(p)
	if !ok || !ok2 {
		return message{}, invalid("message at offset %d: key or value does not fit in it", b.BaseOffset())
	}
	return message{key, value}, nil
}

// cutField splits p behind the i32 length and the bytes it starts with. A negative length
// is null, and then field is nil.
func cutField(p []byte) (field, rest []byte, ok bool) {
	if len(p) < 4 {
		return nil, nil, false
	}
	size := int(int32(binary.BigEndian.Uint32(p)))
	p = p[4:]
	if size > len(p) {
		return nil, nil, false
	}
	if size < 0 {
		return nil, p, true
	}
	return p[:size:size], p[size:], true
}

// record returns an uncompressed message as a Record with its own offset and timestamp.
func (b Batch) record() (Record, error) {
	m, err := b.parseMessage()
	return Record{
		Offset:        b.BaseOffset(),
		Timestamp:     b.MaxTimestamp(),
		TimestampType: b.TimestampType(),
		Sequence:      -1,
		Key:           m.key,
		Value:         m.value,
	}, err
}

// eachMessage calls visit for the records of a message or a wrapper until it returns false.
func (b Batch) eachMessage(limit int, visit func(Record) bool) error {
	if b.Codec() == None {
		r, err := b.record()
		if err == nil {
			visit(r)
		}
		return err
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	w, err := b.unwrap(s, limit)
	if err != nil {
		return err
	}
	for p := w.set; len(p) > 0; {
		inner, err := w.next(p)
		if err != nil {
			return err
		}
		p = p[len(inner):]
		if err := inner.checkInner(b.Magic()); err != nil {
			return err
		}
		r, err := inner.record()
		if err != nil {
			return err
		}
		r.Offset += w.shift
		if b.TimestampType() == LogAppendTime {
			r.Timestamp, r.TimestampType = b.MaxTimestamp(), LogAppendTime
		}
		if !visit(r) {
			return nil
		}
	}
	return nil
}

// checkInner checks what holds for messages in a wrapper of the given format.
func (b Batch) checkInner(magic int8) error {
	if b.Codec() != None {
		return invalid("message at offset %d in a wrapper is compressed itself", b.BaseOffset())
	}
	if b.Magic() != magic {
		return invalid("message of format v%d in a wrapper of format v%d", b.Magic(), magic)
	}
	return b.checkCRC()
}

// A wrapped set is what a wrapper contains.
type wrapped struct {
	set   []byte // messages, at least one
	count int
	shift int64 // what to add to the offset field of each
}

// unwrap decompresses a wrapper into s and finds out what its inner offsets mean.
func (b Batch) unwrap(s *scratch, limit int) (wrapped, error) {
	m, err := b.parseMessage()
	if err != nil {
		return wrapped{}, err
	}
	if m.value == nil {
		return wrapped{}, invalid("wrapper at offset %d has no value", b.BaseOffset())
	}
	codec := b.Codec()
	if codec == Zstd {
		return wrapped{}, &InvalidRecordError{
			Reason: fmt.Sprintf("wrapper of format v%d", b.Magic()),
			Err:    fmt.Errorf("%w: zstd", ErrUnsupportedCompression),
		}
	}
	if err := s.decompress(m.value, codec, b.Magic(), limit); err != nil {
		return wrapped{}, &InvalidRecordError{Reason: codec.String() + " messages", Err: unexpectedEOF(err)}
	}
	w := wrapped{set: s.buf}
	lastInner, err := w.scan()
	if err != nil || b.Magic() == 0 {
		return w, err
	}
	return w, w.setShift(b.BaseOffset(), lastInner)
}

// scan counts the messages and returns the offset field of the last.
func (w *wrapped) scan() (last int64, err error) {
	for p := w.set; len(p) > 0; {
		inner, err := w.next(p)
		if err != nil {
			return 0, err
		}
		p = p[len(inner):]
		last = inner.BaseOffset()
		w.count++
	}
	if w.count == 0 {
		return 0, invalid("wrapper is empty")
	}
	return last, nil
}

// next returns the message that the inner set p begins with.
func (w *wrapped) next(p []byte) (Batch, error) {
	inner, err := First(p)
	if err != nil {
		return nil, &InvalidRecordError{Reason: fmt.Sprintf("message %d bytes before the end of a wrapper", len(p)), Err: err}
	}
	if !inner.isMessage() {
		return nil, invalid("wrapper contains a batch of format v2")
	}
	return inner, nil
}

// setShift makes the offsets of a v1 wrapper absolute: they are relative to the first, and
// the wrapper has the last. A wrapper at 0 comes from a client that did not know (some
// releases of librdkafka); its inner offsets are meant as they are.
func (w *wrapped) setShift(wrapperOffset, lastInner int64) error {
	if wrapperOffset == 0 {
		return nil
	}
	if wrapperOffset < lastInner {
		return invalid("wrapper at offset %d contains offset %d", wrapperOffset, lastInner)
	}
	w.shift = wrapperOffset - lastInner
	return nil
}

// FirstOffset returns the offset of the first record of a batch of any format. For a
// wrapper that means to decompress it. What compaction dropped from the front of a v2 batch
// counts, what it dropped from a wrapper does not.
func (b Batch) FirstOffset() (int64, error) {
	if !b.isMessage() || b.Codec() == None {
		return b.BaseOffset(), nil
	}
	first := b.BaseOffset()
	err := b.eachMessage(DefaultMaxDecompressed, func(r Record) bool {
		first = r.Offset
		return false
	})
	return first, err
}
