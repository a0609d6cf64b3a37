// Package logtest makes batches and spoils files, for the tests of all packages above segment.
package logtest

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// Batch builds a batch of records, whose offsets follow each other from o.BaseOffset on.
func Batch(tb testing.TB, o record.BuilderOptions, records ...record.Record) record.Batch {
	tb.Helper()
	b := record.NewBuilder(o)
	for i, r := range records {
		r.Offset = o.BaseOffset + int64(i)
		if err := b.Append(r); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Build()
}

// Values builds a batch of a record for each value, made now.
func Values(tb testing.TB, o record.BuilderOptions, values ...string) record.Batch {
	tb.Helper()
	now := time.Now().UnixMilli()
	records := make([]record.Record, len(values))
	for i, v := range values {
		records[i] = record.Record{Timestamp: now, Value: []byte(v)}
	}
	return Batch(tb, o, records...)
}

// Positions of fields in a batch, for those that lie.
const (
	CRCPosition             = 17
	LastOffsetDeltaPosition = 23
	CountPosition           = 57
)

// Lying is a copy of b with another int32 at a position and a CRC that fits it.
func Lying(b record.Batch, position int, value int32) record.Batch {
	b = append(record.Batch(nil), b...)
	binary.BigEndian.PutUint32(b[position:], uint32(value))
	sealed := crc32c.Checksum(b[CRCPosition+4:])
	binary.BigEndian.PutUint32(b[CRCPosition:], sealed)
	return b
}

// Flip changes one bit of a byte of a file.
func Flip(tb testing.TB, fsys vfs.FS, name string, at int64) {
	tb.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	if err == nil {
		b[0] ^= 4
		_, err = f.WriteAt(b[:], at)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		tb.Fatal(err)
	}
}

// WantError ends the test unless err matches target and names all parts.
func WantError(tb testing.TB, err, target error, parts ...string) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Fatalf("got %v, want %v", err, target)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			tb.Errorf("got %q, want it to name %q", err, part)
		}
	}
}
