package files

import (
	"encoding/binary"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Sizes of what the small binary files are made of, and the most that is read of one. Kafka
// makes no index larger than 2 GiB, and the largest that anybody wants has 10 MiB.
const (
	OffsetEntrySize    = 8
	TimeEntrySize      = 12
	TxnEntrySize       = 34
	snapshotHeaderSize = 10
	snapshotEntrySize  = 46

	indexSizeMax = 1 << 30
)

// An OffsetEntry is one of an .index file.
type OffsetEntry struct{ Offset, Position int64 }

// A TimeEntry is one of a .timeindex file.
type TimeEntry struct{ Timestamp, Offset int64 }

// DecodeOffsets returns the entries of an .index file, without the zeros at its end: a
// first entry cannot be zero, since the first batch of a segment gets none.
func DecodeOffsets(b []byte, base int64) (list []OffsetEntry, padding int) {
	n := len(b) / OffsetEntrySize
	for n > 0 && binary.BigEndian.Uint64(b[(n-1)*OffsetEntrySize:]) == 0 {
		n--
	}
	list = make([]OffsetEntry, n)
	for i := range list {
		e := b[i*OffsetEntrySize:]
		list[i] = OffsetEntry{base + relative(e), relative(e[4:])}
	}
	return list, len(b) - len(b)%OffsetEntrySize - n*OffsetEntrySize
}

// relative reads an int32 that is not negative in a good file.
func relative(b []byte) int64 { return int64(int32(binary.BigEndian.Uint32(b))) }

// DecodeTimes returns the entries of a .timeindex file. Zeros behind the first entry are
// padding: timestamps increase. A first entry of zeros may be meant.
func DecodeTimes(b []byte, base int64) (list []TimeEntry, padding int) {
	n := len(b) / TimeEntrySize
	zero := func(i int) bool {
		e := b[i*TimeEntrySize:]
		return binary.BigEndian.Uint64(e) == 0 && binary.BigEndian.Uint32(e[8:]) == 0
	}
	whole := n
	for n > 0 && zero(n-1) && (n > 1 || whole > 1) {
		n--
	}
	list = make([]TimeEntry, n)
	for i := range list {
		e := b[i*TimeEntrySize:]
		list[i] = TimeEntry{int64(binary.BigEndian.Uint64(e)), base + relative(e[8:])}
	}
	return list, (whole - n) * TimeEntrySize
}

// DecodeTxns returns the entries of a .txnindex file, and the first version that is not 0.
func DecodeTxns(b []byte) (list []segment.AbortedTxn, err error) {
	for i := 0; i+TxnEntrySize <= len(b); i += TxnEntrySize {
		e := b[i:]
		if v := binary.BigEndian.Uint16(e); v != 0 && err == nil {
			err = fmt.Errorf("entry at byte %d: version %d, want 0", i, v)
		}
		field := func(k int) int64 { return int64(binary.BigEndian.Uint64(e[2+8*k:])) }
		list = append(list, segment.AbortedTxn{
			ProducerID: field(0), FirstOffset: field(1), LastOffset: field(2), LastStableOffset: field(3),
		})
	}
	return list, err
}

// Read returns a whole file, of the binary ones that are small.
func Read(fsys vfs.FS, path string) ([]byte, error) {
	return vfs.ReadFile(fsys, path, indexSizeMax)
}
