package files

import (
	"encoding/binary"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/crc32c"
)

// A ProducerEntry is what a .snapshot file says of one producer.
type ProducerEntry struct {
	ID               int64
	Epoch            int16
	LastSequence     int32
	LastOffset       int64
	OffsetDelta      int32
	Timestamp        int64
	CoordinatorEpoch int32
	TxnFirstOffset   int64 // -1: no open transaction
}

// DecodeProducers returns the entries of a .snapshot file.
func DecodeProducers(b []byte) ([]ProducerEntry, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("%d bytes are no producer snapshot", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v != 1 {
		return nil, fmt.Errorf("version %d, want 1", v)
	}
	if got, want := crc32c.Checksum(b[6:]), binary.BigEndian.Uint32(b[2:]); got != want {
		return nil, fmt.Errorf("crc %08x, want %08x", got, want)
	}
	n := relative(b[6:])
	if n < 0 || n*snapshotEntrySize != int64(len(b)-snapshotHeaderSize) {
		return nil, fmt.Errorf("%d entries do not take %d bytes", n, len(b))
	}
	list := make([]ProducerEntry, n)
	for i := range list {
		e := b[snapshotHeaderSize+i*snapshotEntrySize:]
		list[i] = ProducerEntry{
			ID:               int64(binary.BigEndian.Uint64(e)),
			Epoch:            int16(binary.BigEndian.Uint16(e[8:])),
			LastSequence:     int32(binary.BigEndian.Uint32(e[10:])),
			LastOffset:       int64(binary.BigEndian.Uint64(e[14:])),
			OffsetDelta:      int32(binary.BigEndian.Uint32(e[22:])),
			Timestamp:        int64(binary.BigEndian.Uint64(e[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
			TxnFirstOffset:   int64(binary.BigEndian.Uint64(e[38:])),
		}
	}
	return list, nil
}

// ProducerPosition is the byte where an entry of a .snapshot file begins.
func ProducerPosition(i int) int64 { return int64(snapshotHeaderSize + i*snapshotEntrySize) }

func (e ProducerEntry) AppendText(b []byte) []byte {
	b = fmt.Appendf(b, "producerId: %d producerEpoch: %d coordinatorEpoch: %d ", e.ID, e.Epoch, e.CoordinatorEpoch)
	if e.TxnFirstOffset < 0 {
		b = append(b, "currentTxnFirstOffset: OptionalLong.empty"...)
	} else {
		b = fmt.Appendf(b, "currentTxnFirstOffset: OptionalLong[%d]", e.TxnFirstOffset)
	}
	b = fmt.Appendf(b, " lastTimestamp: %d", e.Timestamp)
	if e.LastOffset >= 0 {
		b = fmt.Appendf(b, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
			firstSequence(e.LastSequence, e.OffsetDelta), e.LastSequence, e.LastOffset, e.OffsetDelta, e.Timestamp)
	}
	return b
}

// firstSequence counts back from the last sequence; before 0 comes the largest int32.
func firstSequence(last, delta int32) int32 {
	if last < 0 {
		return last
	}
	return int32((int64(last) - int64(delta)) & (1<<31 - 1))
}
