package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

//go:generate go run ./gen records.txt records_gen.go

// ErrCorrupt matches every error that says that bytes or records of a metadata log are wrong.
var ErrCorrupt = errors.New("corrupt metadata")

// A Record is one change of the cluster's metadata. The types are generated from Kafka's own
// field tables; a record that was handed to an Image or a quorum must not be changed.
type Record interface {
	APIKey() int16
	MaxVersion() int16
	setDefaults()
	appendTo(b []byte, version int16) []byte
	decode(d *decoder, version int16)
}

// frameVersion is the version of the envelope around each record.
const frameVersion = 1

// Append appends the value bytes of a record in the version that level (a metadata.version)
// asks for, so that a Kafka of that level can read it.
func Append(b []byte, r Record, level int16) []byte {
	version := recordVersion(r, level)
	b = append(b, frameVersion)
	b = binary.AppendUvarint(b, uint64(r.APIKey()))
	b = binary.AppendUvarint(b, uint64(version))
	return r.appendTo(b, version)
}

// Decode reads the value bytes of a record. The record shares no memory with b. An unknown
// key or version is an error: what it would change cannot be guessed.
func Decode(b []byte) (Record, error) {
	d := &decoder{b: b}
	frame, key, version := d.readUvarint(), d.readUvarint(), d.readUvarint()
	switch {
	case d.err != nil:
		return nil, fmt.Errorf("%w: frame: %w", ErrCorrupt, d.err)
	case frame != frameVersion:
		return nil, fmt.Errorf("%w: frame version %d, want %d", ErrCorrupt, frame, frameVersion)
	}
	r := newRecord(int16(min(key, math.MaxInt16))) // there is none of the last key
	if r == nil {
		return nil, fmt.Errorf("%w: unknown record key %d", ErrCorrupt, key)
	}
	if version > uint32(r.MaxVersion()) {
		return nil, fmt.Errorf("%w: %T version %d, want at most %d", ErrCorrupt, r, version, r.MaxVersion())
	}
	r.decode(d, int16(version))
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("%w: %T: %w", ErrCorrupt, r, err)
	}
	return r, nil
}

// A ControlRecord is the value of a record in a control batch of the metadata log or of a
// snapshot.
type ControlRecord interface {
	MaxVersion() int16
	setDefaults()
	appendTo(b []byte, version int16) []byte
	decode(d *decoder, version int16)
}

// AppendControl appends the value bytes of a control record.
func AppendControl(b []byte, r ControlRecord, version int16) []byte { return r.appendTo(b, version) }

// DecodeControl fills r from the value bytes of a control record. Each begins with its own
// version; a later one than known is read as the last known one, as Kafka does.
func DecodeControl(b []byte, r ControlRecord) error {
	first := decoder{b: b}
	version := min(int16(first.readUint16()), r.MaxVersion())
	if version < 0 {
		return fmt.Errorf("%w: %T version %d", ErrCorrupt, r, version)
	}
	d := &decoder{b: b}
	r.setDefaults()
	r.decode(d, version)
	if err := d.finish(); err != nil {
		return fmt.Errorf("%w: %T: %w", ErrCorrupt, r, err)
	}
	return nil
}
