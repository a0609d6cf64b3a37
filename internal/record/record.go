package record

import (
	"bytes"
	"slices"
)

// A Record is one record, decoded. Key, Value and the values of Headers are views of the
// batch or of a buffer that the next step of the iteration overwrites; Clone keeps them.
type Record struct {
	Offset        int64
	Timestamp     int64 // ms since 1970, -1 is none
	TimestampType TimestampType
	Attributes    int8   // always 0 up to now
	Sequence      int32  // of an idempotent producer, or -1
	Key, Value    []byte // nil is null
	Headers       []Header
}

// A Header is one of the headers of a record. A key may occur more than once.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// Clone returns a copy of r that shares nothing with it.
func (r Record) Clone() Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
	}
	return r
}
