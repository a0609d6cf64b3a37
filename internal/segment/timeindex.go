package segment

import "encoding/binary"

// timeEntrySize is the size of an entry of a .timeindex file, in bytes.
const timeEntrySize = 12

// A timeEntry has the largest timestamp of the segment up to some point, and the last offset of
// the batch that holds it, less the base offset. All records with a larger timestamp come
// behind that offset.
type timeEntry struct {
	timestamp int64 // ms
	offset    int32
}

func (e timeEntry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.timestamp))
	return binary.BigEndian.AppendUint32(b, uint32(e.offset))
}

func parseTimeEntry(b []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))}
}

// follows reports whether e can stand behind last in an index.
func (e timeEntry) follows(last timeEntry) bool {
	return e.timestamp > last.timestamp && e.offset >= last.offset
}

// beforeTimes is what the first entry has to follow: an unknown timestamp is not stored.
var beforeTimes = timeEntry{-1, 0}

// searchTimes returns the last entry whose timestamp is at most target.
func searchTimes(entries []timeEntry, target int64) (timeEntry, bool) {
	low, high := 0, len(entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if entries[mid].timestamp <= target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return timeEntry{}, false
	}
	return entries[low-1], true
}
