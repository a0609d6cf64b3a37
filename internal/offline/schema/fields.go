package schema

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gregor-kafka/gregor/internal/metadata/fieldtable"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

var (
	errShort = errors.New("ends inside a field")
	errNull  = errors.New("null where no null is allowed")
)

// scalars append the JSON form of a value that a reader is in front of.
var scalars = map[string]func(dst []byte, r *reader, null bool) []byte{
	"bool":   func(dst []byte, r *reader, _ bool) []byte { return text.AppendBool(dst, r.int(1) != 0) },
	"int8":   func(dst []byte, r *reader, _ bool) []byte { return text.AppendInt(dst, r.int(1)) },
	"int16":  func(dst []byte, r *reader, _ bool) []byte { return text.AppendInt(dst, r.int(2)) },
	"uint16": func(dst []byte, r *reader, _ bool) []byte { return text.AppendInt(dst, r.int(2)&math.MaxUint16) },
	"int32":  func(dst []byte, r *reader, _ bool) []byte { return text.AppendInt(dst, r.int(4)) },
	"int64":  func(dst []byte, r *reader, _ bool) []byte { return text.AppendInt(dst, r.int(8)) },
	"float64": func(dst []byte, r *reader, _ bool) []byte {
		return text.AppendFloat(dst, math.Float64frombits(uint64(r.int(8))))
	},
	"uuid":   appendUUID,
	"string": func(dst []byte, r *reader, null bool) []byte { return appendText(dst, r, 2, null, text.AppendString) },
	"bytes":  func(dst []byte, r *reader, null bool) []byte { return appendText(dst, r, 4, null, AppendBase64) },
}

// A reader takes fields from b until the first error, and zeros from then on.
type reader struct {
	b        []byte
	flexible bool
	err      error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// int reads a signed integer of n bytes.
func (r *reader) int(n int) int64 {
	var v int64
	b := r.take(n)
	for _, c := range b {
		v = v<<8 | int64(c)
	}
	if len(b) == 0 {
		return 0
	}
	shift := 64 - 8*n
	return v << shift >> shift
}

func (r *reader) uvarint() uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
		r.fail(errors.New("bad unsigned varint"))
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

// length reads the length of a string, of bytes or of an array, whose field has width bytes
// where it is not compact; -1 is null. Each element takes a byte at least.
func (r *reader) length(width int, null bool) int {
	var n int64
	if r.flexible {
		n = int64(r.uvarint()) - 1
	} else {
		n = max(-1, r.int(width))
	}
	switch {
	case r.err != nil:
		return -1
	case n < 0 && !null:
		r.fail(errNull)
	case n > int64(len(r.b)):
		r.fail(errShort)
		return -1
	}
	return int(n)
}

// presence reads whether a structure that may be null is there: tagged, an unsigned 1 or 0,
// else a signed one or -1.
func (r *reader) presence(tagged bool) bool {
	if tagged {
		return r.uvarint() > 0
	}
	return r.int(1) >= 0
}

func appendText(dst []byte, r *reader, width int, null bool, form func(dst, v []byte) []byte) []byte {
	n := r.length(width, null)
	if n < 0 {
		return append(dst, "null"...)
	}
	return form(dst, r.take(n))
}

func appendUUID(dst []byte, r *reader, _ bool) []byte {
	var u uuid.UUID
	copy(u[:], r.take(len(u)))
	return append(append(append(dst, '"'), u.String()...), '"')
}

// AppendBase64 appends bytes as a string of JSON.
func AppendBase64(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

// appendStructure appends an object with the fields that a version has. Tagged fields come
// last in the bytes, and where the table has them in JSON; they are there only if they are in
// the bytes, since writers leave out those with the default value.
func (s *structure) appendJSON(dst []byte, r *reader, version int16) []byte {
	values := make([][]byte, len(s.Fields))
	for i, f := range s.Fields {
		if f.Tag < 0 && f.Min <= version && version <= f.Max {
			values[i] = (*field)(f).appendJSON(nil, r, version)
		}
	}
	if r.flexible {
		s.readTags(r, version, values)
	}
	dst = append(dst, '{')
	sep := false
	for i, v := range values {
		if v == nil {
			continue
		}
		if sep {
			dst = append(dst, ',')
		}
		sep = true
		dst = append(append(append(dst, '"'), s.Fields[i].Name...), `":`...)
		dst = append(dst, v...)
	}
	return append(dst, '}')
}

func (s *structure) readTags(r *reader, version int16, values [][]byte) {
	for range r.uvarint() {
		tag, size := r.uvarint(), r.uvarint()
		if uint64(size) > uint64(len(r.b)) {
			r.fail(errShort)
		}
		if r.err != nil {
			return
		}
		part := &reader{b: r.take(int(size)), flexible: true}
		for i, f := range s.Fields {
			if f.Tag == int(tag) {
				values[i] = (*field)(f).appendJSON(nil, part, version)
			}
		}
		if part.err != nil {
			r.fail(part.err)
		}
	}
}

func (f *field) appendJSON(dst []byte, r *reader, version int16) []byte {
	null := version >= f.Nullable
	if !f.Array {
		return f.appendElement(dst, r, version, null)
	}
	n := r.length(4, null)
	if n < 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i := range n {
		if r.err != nil {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.appendElement(dst, r, version, false)
	}
	return append(dst, ']')
}

func (f *field) appendElement(dst []byte, r *reader, version int16, null bool) []byte {
	if f.Sub == nil {
		return scalars[f.Type](dst, r, null)
	}
	if null && !r.presence(f.Tag >= 0) {
		return append(dst, "null"...)
	}
	return (*structure)(f.Sub).appendJSON(dst, r, version)
}

// appendRecord appends what b has in the given version of s. All of b has to be used.
func appendRecord(dst []byte, s *fieldtable.Record, b []byte, version int16) ([]byte, error) {
	if version < 0 || version > s.Max {
		return dst, fmt.Errorf("%s: version %d, want at most %d", s.Name, version, s.Max)
	}
	r := &reader{b: b, flexible: version >= s.Flexible}
	dst = (*structure)(&s.Struct).appendJSON(dst, r, version)
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes left behind the last field", len(r.b))
	}
	if r.err != nil {
		return dst, fmt.Errorf("%s: %w", s.Name, r.err)
	}
	return dst, nil
}
