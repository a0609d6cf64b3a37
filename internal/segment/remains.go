package segment

import (
	"encoding/binary"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/record"
)

// The size of a transaction marker, in bytes: with the time of its batch, or with a delete horizon
// and the time as a number of up to ten bytes.
const (
	markerMin = 78
	markerMax = 96
)

// maxRemains bounds what is read of a damage to find a batch in it.
const maxRemains = 1 << 20

// Remains say what may have been in a damage, with regard to transactions.
type Remains struct {
	// Batch is what was there if it can be told: what the checksum covers is right, and only the
	// frame is not; or one bit of what has the size of a marker has turned round. It is no view.
	Batch record.Batch

	Marker bool // a marker may have been there
	Room   bool // beside a marker a record may have been there
}

// Remains looks into a damage. Whoever asks knows that the bytes are wrong; they stay so.
func (s *Segment) Remains(d Damage) (Remains, error) {
	offsets := d.End - d.First
	switch {
	case offsets <= 0:
		return Remains{}, nil
	case d.Size == 0:
		return Remains{Marker: true, Room: offsets > 1}, nil
	case d.Size < markerMin && d.end() >= s.size.Load(): // bytes are missing behind these
		return Remains{Marker: true, Room: offsets > 1}, nil
	case d.Size < record.HeaderSize || d.Size > maxRemains:
		return unknownRemains(d, nil), nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return Remains{}, err
	}
	defer f.release()
	b := make(record.Batch, d.Size)
	if _, err := f.ReadAt(b, d.Position); err != nil {
		return Remains{}, err
	}
	if mended := mend(b, d); mended != nil {
		return Remains{Batch: mended}, nil
	}
	return unknownRemains(d, b), nil
}

// unknownRemains goes by sizes. A marker is a batch of one record. b is nil or has the header.
func unknownRemains(d Damage, b record.Batch) Remains {
	switch offsets := d.End - d.First; {
	case d.Size < markerMin:
		return Remains{}
	case offsets == 1:
		return Remains{Marker: d.Size <= markerMax}
	case b != nil && isOneBatch(b, d):
		return Remains{}
	}
	return Remains{Marker: true, Room: d.Size >= markerMin+record.HeaderSize}
}

// isOneBatch reports whether a header says that its batch begins and ends where the damage does.
func isOneBatch(b record.Batch, d Damage) bool {
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	return length+record.LogOverhead == d.Size && b.BaseOffset() == d.First && b[16] == 2
}

// mend returns the batch that bytes were before a bit of them turned round, or nil. The frame, which
// the checksum does not cover, follows from what is around.
func mend(b record.Batch, d Damage) record.Batch {
	b = append(record.Batch(nil), b...)
	binary.BigEndian.PutUint64(b, uint64(d.First))
	binary.BigEndian.PutUint32(b[8:], uint32(d.Size-record.LogOverhead))
	b[16] = 2
	if isWhole(b, d) {
		return b
	}
	if d.Size < markerMin || d.Size > markerMax {
		return nil
	}
	for bit := 17 * 8; bit < 8*len(b); bit++ {
		b[bit/8] ^= 1 << (bit % 8)
		if isWhole(b, d) {
			return b
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	return nil
}

func isWhole(b record.Batch, d Damage) bool {
	return crc32c.Checksum(b[21:]) == b.CRC() && b.NextOffset() == d.End && b.Verify() == nil
}
