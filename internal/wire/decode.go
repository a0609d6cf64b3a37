package wire

import "encoding/binary"

// A Decoder reads the primitive types of the protocol from a request without allocating.
// The first field that does not fit makes it bad: from then on every read returns zero
// values and Len is 0, so that a caller may check Bad once, after a loop.
type Decoder struct {
	b   []byte
	bad bool
}

// NewDecoder returns a Decoder of b. What it returns are views of b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Bad reports whether something that was asked for was not there.
func (d *Decoder) Bad() bool { return d.bad }

// Len returns how many bytes are left.
func (d *Decoder) Len() int { return len(d.b) }

func (d *Decoder) fail() {
	d.b, d.bad = nil, true
}

// Take returns the next n bytes, or nil.
func (d *Decoder) Take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	head := d.b[:n:n]
	d.b = d.b[n:]
	return head
}

// Int8 reads one byte.
func (d *Decoder) Int8() int8 {
	if len(d.b) < 1 {
		d.fail()
		return 0
	}
	v := int8(d.b[0])
	d.b = d.b[1:]
	return v
}

// Int16 reads two bytes.
func (d *Decoder) Int16() int16 {
	if len(d.b) < 2 {
		d.fail()
		return 0
	}
	v := int16(binary.BigEndian.Uint16(d.b))
	d.b = d.b[2:]
	return v
}

// Int32 reads four bytes.
func (d *Decoder) Int32() int32 {
	if len(d.b) < 4 {
		d.fail()
		return 0
	}
	v := int32(binary.BigEndian.Uint32(d.b))
	d.b = d.b[4:]
	return v
}

// Int64 reads eight bytes.
func (d *Decoder) Int64() int64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := int64(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}

// Uvarint reads an unsigned varint of at most 32 bits.
func (d *Decoder) Uvarint() uint32 {
	if len(d.b) > 0 && d.b[0] < 0x80 {
		v := d.b[0]
		d.b = d.b[1:]
		return uint32(v)
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > 1<<32-1 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return uint32(v)
}

// String reads a string; nil is null.
func (d *Decoder) String(flexible bool) []byte {
	if flexible {
		return d.compact()
	}
	if n := d.Int16(); n >= 0 {
		return d.Take(int(n))
	}
	return nil
}

// Bytes reads a byte array; nil is null.
func (d *Decoder) Bytes(flexible bool) []byte {
	if flexible {
		return d.compact()
	}
	if n := d.Int32(); n >= 0 {
		return d.Take(int(n))
	}
	return nil
}

func (d *Decoder) compact() []byte {
	n := d.Uvarint()
	if n == 0 {
		return nil
	}
	if int64(n)-1 > int64(len(d.b)) {
		d.fail()
		return nil
	}
	return d.Take(int(n) - 1)
}

// ArrayLen reads the length of an array whose elements take at least elementMin bytes
// each. Null counts as empty. A length that cannot be true makes the Decoder bad.
func (d *Decoder) ArrayLen(flexible bool, elementMin int) int {
	n := int64(0)
	if flexible {
		n = int64(d.Uvarint()) - 1
	} else {
		n = int64(d.Int32())
	}
	if n <= 0 {
		return 0
	}
	if n*int64(elementMin) > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// SkipTags reads over a tag section.
func (d *Decoder) SkipTags() {
	for n := d.Uvarint(); n > 0 && !d.bad; n-- {
		d.Tag()
	}
}

// Tag reads one tagged field: its number and its bytes.
func (d *Decoder) Tag() (tag uint32, value []byte) {
	tag = d.Uvarint()
	n := d.Uvarint()
	if int64(n) > int64(len(d.b)) {
		d.fail()
		return tag, nil
	}
	return tag, d.Take(int(n))
}
