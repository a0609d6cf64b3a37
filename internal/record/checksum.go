package record

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/gregor-kafka/gregor/internal/crc32c"
)

// Verify checks that b is one whole batch: frame, size and CRC. The error is a
// *CorruptError. Nothing is allocated when b is good.
//
// It does not look at the contents: a batch with a right CRC is what its writer wrote, and
// refusing that is for Validate, before the batch is stored.
func (b Batch) Verify() error {
	whole, err := First(b)
	if err != nil {
		if err == ErrShort {
			return &CorruptError{Offset: -1, Reason: "size field says more bytes than there are"}
		}
		return err
	}
	if len(whole) != len(b) {
		return corrupt(b, "%d bytes after the batch", len(b)-len(whole))
	}
	return b.checkCRC()
}

// checkCRC compares the CRC of a whole batch.
func (b Batch) checkCRC() error {
	if got, want := b.checksum(), b.CRC(); got != want {
		return corrupt(b, "crc %08x, want %08x", got, want)
	}
	return nil
}

// checksum computes the CRC.
func (b Batch) checksum() uint32 {
	if b.isMessage() {
		return crc32.ChecksumIEEE(b[posMagic:])
	}
	return crc32c.Checksum(b[posAttributes:])
}

func (b Batch) setCRC() {
	position := posCRC
	if b.isMessage() {
		position = posMessageCRC
	}
	binary.BigEndian.PutUint32(b[position:], b.checksum())
}
