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
// deltas. The slices are views.
type layout struct {
	attributes     int8
	timestampDelta int64
	offsetDelta    int32
	key, value     []byte // nil is null
	headerCount    int
	headers        []byte // checked, not decoded
}

// parseRecord reads the record at the start of p and returns its size. Everything is
// checked: lengths, header by header, and that the fields fill the record.
func parseRecord(p []byte, r *layout) (int, error) {
	length, n := varint(p)
	if n <= 0 || length < 0 || length > int64(len(p)-n) {
		return 0, errRecordLength
	}
	size := n + int(length)
	p = p[n:size]
	if len(p) == 0 {
		return 0, errRecordField
	}
	r.attributes = int8(p[0])
	p = p[1:]
	if r.timestampDelta, n = varint(p); n <= 0 {
		return 0, errRecordField
	}
	p = p[n:]
	delta, n := varint(p)
	if n <= 0 || delta != int64(int32(delta)) {
		return 0, errRecordField
	}
	r.offsetDelta = int32(delta)
	p = p[n:]
	var ok bool
	if r.key, p, ok = cutBytes(p); !ok {
		return 0, errRecordField
	}
	if r.value, p, ok = cutBytes(p); !ok {
		return 0, errRecordField
	}
	// Each header takes two bytes or more, so the count is bounded by what is there.
	count, n := varint(p)
	if n <= 0 || count < 0 || count > int64(len(p)-n)/2 {
		return 0, errHeaderCount
	}
	r.headerCount, r.headers = int(count), p[n:]
	if count == 0 && n == len(p) {
		return size, nil
	}
	return size, checkHeaders(r.headers, int(count))
}

func checkHeaders(p []byte, count int) error {
	for range count {
		key, rest, ok := cutBytes(p)
		if !ok {
			return errRecordField
		}
		if key == nil {
			return errHeaderKey
		}
		if _, p, ok = cutBytes(rest); !ok {
			return errRecordField
		}
	}
	if len(p) > 0 {
		return errRecordTail
	}
	return nil
}

// appendHeaders decodes headers that parseRecord has checked.
func appendHeaders(dst []Header, r *layout) []Header {
	p := r.headers
	for range r.headerCount {
		key, rest, _ := cutBytes(p)
		value, rest, _ := cutBytes(rest)
		dst = append(dst, Header{Key: string(key), Value: value})
		p = rest
	}
	return dst
}

// cutBytes splits p behind the varint length and the bytes it starts with. A negative
// length is null, and then field is nil.
func cutBytes(p []byte) (field, rest []byte, ok bool) {
	length, n := varint(p)
	if n <= 0 || length > int64(len(p)-n) {
		return nil, nil, false
	}
	if length < 0 {
		return nil, p[n:], true
	}
	end := n + int(length)
	return p[n:end:end], p[end:], true
}

// varint reads a zigzag varint, of which most have one byte. n <= 0 says that p ends too
// early or that the number does not fit in 64 bits.
func varint(p []byte) (v int64, n int) {
	if len(p) > 0 && p[0] < 0x80 {
		return int64(p[0]>>1) ^ -int64(p[0]&1), 1
	}
	return binary.Varint(p)
}

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
