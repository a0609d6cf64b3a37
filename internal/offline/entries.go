package offline

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Sizes of what the small binary files are made of, and the most that is read of one. Kafka
// makes no index larger than 2 GiB, and the largest that anybody wants has 10 MiB.
const (
	offsetEntrySize    = 8
	timeEntrySize      = 12
	txnEntrySize       = 34
	snapshotHeaderSize = 10
	snapshotEntrySize  = 46

	indexSizeMax = 1 << 30
)

type offsetEntry struct{ offset, position int64 }

type timeEntry struct{ timestamp, offset int64 }

// decodeOffsets returns the entries of an .index file, without the zeros at its end: a
// first entry cannot be zero, since the first batch of a segment gets none.
func decodeOffsets(b []byte, base int64) (list []offsetEntry, padding int) {
	n := len(b) / offsetEntrySize
	for n > 0 && binary.BigEndian.Uint64(b[(n-1)*offsetEntrySize:]) == 0 {
		n--
	}
	list = make([]offsetEntry, n)
	for i := range list {
		e := b[i*offsetEntrySize:]
		list[i] = offsetEntry{base + relative(e), relative(e[4:])}
	}
	return list, len(b) - len(b)%offsetEntrySize - n*offsetEntrySize
}

// relative reads an int32 that is not negative in a good file.
func relative(b []byte) int64 { return int64(int32(binary.BigEndian.Uint32(b))) }

// decodeTimes returns the entries of a .timeindex file. Zeros behind the first entry are
// padding: timestamps increase. A first entry of zeros may be meant.
func decodeTimes(b []byte, base int64) (list []timeEntry, padding int) {
	n := len(b) / timeEntrySize
	zero := func(i int) bool {
		e := b[i*timeEntrySize:]
		return binary.BigEndian.Uint64(e) == 0 && binary.BigEndian.Uint32(e[8:]) == 0
	}
	whole := n
	for n > 0 && zero(n-1) && (n > 1 || whole > 1) {
		n--
	}
	list = make([]timeEntry, n)
	for i := range list {
		e := b[i*timeEntrySize:]
		list[i] = timeEntry{int64(binary.BigEndian.Uint64(e)), base + relative(e[8:])}
	}
	return list, (whole - n) * timeEntrySize
}

// decodeTxns returns the entries of a .txnindex file, and the first version that is not 0.
func decodeTxns(b []byte) (list []segment.AbortedTxn, err error) {
	for i := 0; i+txnEntrySize <= len(b); i += txnEntrySize {
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

// A producerEntry is what a .snapshot file says of one producer.
type producerEntry struct {
	id               int64
	epoch            int16
	lastSequence     int32
	lastOffset       int64
	offsetDelta      int32
	timestamp        int64
	coordinatorEpoch int32
	txnFirstOffset   int64 // -1: no open transaction
}

// decodeProducers returns the entries of a .snapshot file.
func decodeProducers(b []byte) ([]producerEntry, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("%d bytes are no producer snapshot", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v != 1 {
		return nil, fmt.Errorf("version %d, want 1", v)
	}
	if got, want := crc32.Checksum(b[6:], castagnoli), binary.BigEndian.Uint32(b[2:]); got != want {
		return nil, fmt.Errorf("crc %08x, want %08x", got, want)
	}
	n := relative(b[6:])
	if n < 0 || n*snapshotEntrySize != int64(len(b)-snapshotHeaderSize) {
		return nil, fmt.Errorf("%d entries do not take %d bytes", n, len(b))
	}
	list := make([]producerEntry, n)
	for i := range list {
		e := b[snapshotHeaderSize+i*snapshotEntrySize:]
		list[i] = producerEntry{
			id:               int64(binary.BigEndian.Uint64(e)),
			epoch:            int16(binary.BigEndian.Uint16(e[8:])),
			lastSequence:     int32(binary.BigEndian.Uint32(e[10:])),
			lastOffset:       int64(binary.BigEndian.Uint64(e[14:])),
			offsetDelta:      int32(binary.BigEndian.Uint32(e[22:])),
			timestamp:        int64(binary.BigEndian.Uint64(e[26:])),
			coordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
			txnFirstOffset:   int64(binary.BigEndian.Uint64(e[38:])),
		}
	}
	return list, nil
}

func readIndex(fsys vfs.FS, path string) ([]byte, error) {
	return vfs.ReadFile(fsys, path, indexSizeMax)
}
