package record

import (
	"encoding/binary"
	"errors"
)

// What can be wrong with the bytes of a v2 record.
var (
	errRecordLength = errors.New("length of a record does not fit the batch")
	errRecordField  = errors.New("field of a record does not fit its length")
	errRecordTail   = errors.New("record has bytes after its last field")
	errHeaderCount  = errors.New("number of headers does not fit the record")
	errHeaderKey    = errors.New("header has no key")
)

// A layout is a v2 record as it lies in memory, before the batch's fields are added to its
// deltas. It has positions in place of slices, because storing these costs more.
type layout struct {
	timestampDelta int64
	offsetDelta    int32
	attributes     int8
	headerCount    int
	key, value     span
	headers        span // checked, not decoded
}

// nowhere is the position behind a field that does not fit.
const nowhere = -1

// A span is a field, [start, end) of the bytes that it was read from. It is null if start
// is nowhere.
type span struct{ start, end int }

func (s span) isNull() bool { return s.start == nowhere }

func (s span) of(p []byte) []byte {
	if s.isNull() {
		return nil
	}
	return p[s.start:s.end:s.end]
}

// parseRecord reads the record at p[at] and returns where the next one begins. Everything
// is checked: lengths, header by header, and that the fields fill the record.
func parseRecord(p []byte, at int, r *layout) (next int, err error) {
	length, i := varint(p, at)
	if i == nowhere || length < 0 || length > int64(len(p)-i) {
		return 0, errRecordLength
	}
	if length == 0 {
		return 0, errRecordField
	}
	p = p[:i+int(length)]
	r.attributes = int8(p[i])
	i++
	if c := byteAt(p, i); c < 0x80 {
		r.timestampDelta, i = zigzag(c), i+1
	} else {
		r.timestampDelta, i = varint(p, i)
	}
	var delta int64
	if c := byteAt(p, i); c < 0x80 {
		delta, i = zigzag(c), i+1
	} else if delta, i = varint(p, i); i == nowhere || delta != int64(int32(delta)) {
		return 0, errRecordField
	}
	r.offsetDelta = int32(delta)
	r.key, i = cutSpan(p, i)
	if r.value, i = cutSpan(p, i); i == nowhere {
		return 0, errRecordField
	}
	// Each header takes two bytes or more, so the count is bounded by what is there.
	var count int64
	if c := byteAt(p, i); c < 0x80 {
		count, i = zigzag(c), i+1
	} else {
		count, i = varint(p, i)
	}
	if i == nowhere || count < 0 || count > int64(len(p)-i)/2 {
		return 0, errHeaderCount
	}
	r.headerCount, r.headers = int(count), span{i, len(p)}
	if i == len(p) {
		return len(p), nil
	}
	return len(p), checkHeaders(p, i, int(count))
}

// checkHeaders checks that count headers fill p from i on.
func checkHeaders(p []byte, i, count int) error {
	for range count {
		var key span
		key, i = cutSpan(p, i)
		if i != nowhere && key.isNull() {
			return errHeaderKey
		}
		if _, i = cutSpan(p, i); i == nowhere {
			return errRecordField
		}
	}
	if i < len(p) {
		return errRecordTail
	}
	return nil
}

// appendHeaders decodes headers that parseRecord has found good in p.
func appendHeaders(dst []Header, p []byte, r *layout) []Header {
	i := r.headers.start
	for range r.headerCount {
		var key, value span
		key, i = cutSpan(p, i)
		value, i = cutSpan(p, i)
		dst = append(dst, Header{Key: string(key.of(p)), Value: value.of(p)})
	}
	return dst
}

// cutSpan returns the field whose varint length is at p[i], and where the next one begins,
// or nowhere when it does not fit or i is nowhere. A negative length is null.
func cutSpan(p []byte, i int) (field span, next int) {
	var length int64
	if c := byteAt(p, i); c < 0x80 {
		length, i = zigzag(c), i+1
	} else {
		length, i = varint(p, i)
	}
	switch {
	case i == nowhere || length > int64(len(p)-i):
		return span{nowhere, nowhere}, nowhere
	case length < 0:
		return span{nowhere, nowhere}, i
	}
	next = i + int(length)
	return span{i, next}, next
}

// varint reads the zigzag varint at p[i] and returns where the next field begins, or nowhere
// when p ends too early, the number does not fit in 64 bits, or i is nowhere: several reads may
// go by before that is looked at.
//
// Most numbers have one byte. The innermost loop of every produce request saves a third of its
// time by not calling varint for these; that is what byteAt and zigzag are for.
func varint(p []byte, i int) (v int64, next int) {
	if i == nowhere {
		return 0, nowhere
	}
	if i+1 < len(p) && p[i+1] < 0x80 && p[i]&0x80 != 0 {
		u := uint64(p[i]&0x7f) | uint64(p[i+1])<<7
		return int64(u>>1) ^ -int64(u&1), i + 2
	}
	v, n := binary.Varint(p[min(i, len(p)):])
	if n <= 0 {
		return 0, nowhere
	}
	return v, i + n
}

// byteAt returns p[i], or 0x80, which no varint ends with, if there is no such byte.
func byteAt(p []byte, i int) byte {
	if uint(i) < uint(len(p)) {
		return p[i]
	}
	return 0x80
}

// zigzag decodes a varint of one byte.
func zigzag(c byte) int64 { return int64(c>>1) ^ -int64(c&1) }

// recordSize returns what the length field of a record will say.
func recordSize(r *Record, timestampDelta, offsetDelta int64) int {
	size := 1 + varintSize(timestampDelta) + varintSize(offsetDelta) +
		bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		size += varintSize(int64(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
	}
	return size
}

func appendRecord(p []byte, r *Record, size int, timestampDelta, offsetDelta int64) []byte {
	p = binary.AppendVarint(p, int64(size))
	p = append(p, 0)
	p = binary.AppendVarint(p, timestampDelta)
	p = binary.AppendVarint(p, offsetDelta)
	p = appendBytes(p, r.Key)
	p = appendBytes(p, r.Value)
	p = binary.AppendVarint(p, int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		p = binary.AppendVarint(p, int64(len(h.Key)))
		p = append(p, h.Key...)
		p = appendBytes(p, h.Value)
	}
	return p
}

func appendBytes(p, field []byte) []byte {
	if field == nil {
		return binary.AppendVarint(p, -1)
	}
	p = binary.AppendVarint(p, int64(len(field)))
	return append(p, field...)
}

func bytesSize(field []byte) int {
	if field == nil {
		return 1
	}
	return varintSize(int64(len(field))) + len(field)
}

func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
