package topic

import "unicode/utf16"

// PartitionFor is the partition, out of count, that holds the state of a group or a
// transactional id: Java's hash of the string (over UTF-16 code units), its sign dropped,
// modulo count. The count of an existing topic must never change.
func PartitionFor(id string, count int32) int32 {
	var h int32
	for _, r := range id {
		if r1, r2 := utf16.EncodeRune(r); r1 != '\uFFFD' {
			h = 31*h + r1
			h = 31*h + r2
			continue
		}
		h = 31*h + r
	}
	if h < 0 {
		h = -h
	}
	if h < 0 { // the smallest int32 has no positive counterpart; Kafka takes 0
		h = 0
	}
	return h % count
}
