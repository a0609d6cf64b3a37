package segment

import "encoding/binary"

// offsetEntrySize is the size of an entry of an .index file, in bytes.
const offsetEntrySize = 8

// An offsetEntry leads to a batch: it has the last offset of the batch, less the base offset of
// the segment, and the position where it starts. Kafka up to 4.0 wrote the start and the last
// offset of all batches of one append call, and up to 1.1 the first offset of the batch. In all
// of them the batch begins at or below the entry's offset, and that is what readers rely on.
type offsetEntry struct{ offset, position int32 }

func (e offsetEntry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(e.offset))
	return binary.BigEndian.AppendUint32(b, uint32(e.position))
}

func parseOffsetEntry(b []byte) offsetEntry {
	return offsetEntry{int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))}
}

// follows reports whether e can stand behind last in an index.
func (e offsetEntry) follows(last offsetEntry) bool {
	return e.offset > last.offset && e.position > last.position
}

// beforeOffsets is what the first entry has to follow.
var beforeOffsets = offsetEntry{-1, -1}

// searchOffsets returns the last entry whose offset is at most target.
func searchOffsets(entries []offsetEntry, target int64) (offsetEntry, bool) {
	low, high := 0, len(entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if int64(entries[mid].offset) <= target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return offsetEntry{}, false
	}
	return entries[low-1], true
}

// searchPositions returns the first entry whose position is at least target.
func searchPositions(entries []offsetEntry, target int64) (offsetEntry, bool) {
	low, high := 0, len(entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if int64(entries[mid].position) < target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(entries) {
		return offsetEntry{}, false
	}
	return entries[low], true
}
