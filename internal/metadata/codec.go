package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// This file has the primitive types of Kafka's flexible messages: lengths and array sizes are
// unsigned varints of n+1 with 0 for null, and each struct ends with a section of tagged fields.

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendInt8(b []byte, v int8) []byte       { return append(b, byte(v)) }
func appendInt16(b []byte, v int16) []byte     { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendUint16(b []byte, v uint16) []byte   { return binary.BigEndian.AppendUint16(b, v) }
func appendInt32(b []byte, v int32) []byte     { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte     { return binary.BigEndian.AppendUint64(b, uint64(v)) }
func appendFloat64(b []byte, v float64) []byte { return appendInt64(b, int64(math.Float64bits(v))) }
func appendUUID(b []byte, v uuid.UUID) []byte  { return append(b, v[:]...) }

func appendString(b []byte, v string) []byte {
	return append(appendLength(b, len(v), false), v...)
}

func appendNullableString(b []byte, v *string) []byte {
	if v == nil {
		return appendLength(b, 0, true)
	}
	return appendString(b, *v)
}

func appendBytes(b []byte, v []byte) []byte {
	return append(appendLength(b, len(v), false), v...)
}

func appendLength(b []byte, n int, null bool) []byte {
	if null {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func appendArray[T any](b []byte, v []T, nullable bool, element func([]byte, T) []byte) []byte {
	b = appendLength(b, len(v), nullable && v == nil)
	for _, e := range v {
		b = element(b, e)
	}
	return b
}

// A tagSection collects the tagged fields of one struct, in ascending order of tags.
type tagSection struct {
	count int
	bytes []byte
}

func (t *tagSection) begin() []byte { return nil }

func (t *tagSection) end(tag int, body []byte) {
	t.count++
	t.bytes = binary.AppendUvarint(t.bytes, uint64(tag))
	t.bytes = binary.AppendUvarint(t.bytes, uint64(len(body)))
	t.bytes = append(t.bytes, body...)
}

func (t *tagSection) appendTo(b []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(t.count)), t.bytes...)
}

var errShort = errors.New("record ends inside a field")

// A decoder reads from b until the first error, after which it returns zero values.
// Nothing it returns shares memory with b. It never allocates more than a small multiple
// of the bytes that are there.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// take returns the next n bytes, or nil when they are not there.
func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail(errShort)
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) readUvarint() uint32 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
		d.fail(errors.New("bad unsigned varint"))
		return 0
	}
	d.b = d.b[n:]
	return uint32(v)
}

func (d *decoder) readUint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) readUint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) readUint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) readInt8() int8 {
	if b := d.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (d *decoder) readBool() bool       { return d.readInt8() != 0 }
func (d *decoder) readInt16() int16     { return int16(d.readUint16()) }
func (d *decoder) readInt32() int32     { return int32(d.readUint32()) }
func (d *decoder) readInt64() int64     { return int64(d.readUint64()) }
func (d *decoder) readFloat64() float64 { return math.Float64frombits(d.readUint64()) }

func (d *decoder) readUUID() (u uuid.UUID) {
	copy(u[:], d.take(len(u)))
	return u
}

// readLength reads a compact length; ok is false for null and after an error.
func (d *decoder) readLength(nullable bool) (n int, ok bool) {
	v := d.readUvarint()
	switch {
	case d.err != nil:
		return 0, false
	case v == 0 && !nullable:
		d.fail(errors.New("null where no null is allowed"))
		return 0, false
	case v == 0:
		return 0, false
	case uint64(v)-1 > uint64(len(d.b)): // each element needs one byte at least
		d.fail(errShort)
		return 0, false
	}
	return int(v - 1), true
}

func (d *decoder) readString() string {
	n, _ := d.readLength(false)
	return string(d.take(n))
}

func (d *decoder) readNullableString() *string {
	n, ok := d.readLength(true)
	if !ok {
		return nil
	}
	s := string(d.take(n))
	return &s
}

func (d *decoder) readBytes() []byte {
	n, _ := d.readLength(false)
	return append([]byte{}, d.take(n)...)
}

// readArray grows with what it reads, so that a false count costs nothing.
func readArray[T any](d *decoder, nullable bool, element func(*decoder) T) []T {
	n, ok := d.readLength(nullable)
	if !ok {
		return nil
	}
	v := make([]T, 0, min(n, 16))
	for range n {
		e := element(d)
		if d.err != nil {
			return nil
		}
		v = append(v, e)
	}
	return v
}

// makeStructs reads an array's length and allocates that many elements. A struct takes one
// byte at least (its tag section), which bounds the allocation by the input.
func makeStructs[T any](d *decoder) []T {
	n, ok := d.readLength(false)
	if !ok {
		return nil
	}
	return make([]T, n)
}

// tags walks a tag section. During the loop's body d is limited to the tag's own bytes; the
// body may leave them unread (a tag that is not known).
func (d *decoder) tags() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for range d.readUvarint() {
			tag, size := d.readUvarint(), d.readUvarint()
			if d.err != nil {
				return
			}
			if uint64(size) > uint64(len(d.b)) {
				d.fail(errShort)
				return
			}
			rest := d.b[size:]
			d.b = d.b[:size]
			if !yield(tag) || d.err != nil {
				return
			}
			d.b = rest
		}
	}
}

func (d *decoder) skipTags() {
	for range d.tags() {
	}
}

// finish returns the first error, or one that says that bytes are left.
func (d *decoder) finish() error {
	if d.err == nil && len(d.b) > 0 {
		return fmt.Errorf("%d bytes left behind the last field", len(d.b))
	}
	return d.err
}
