package check

import (
	"encoding/binary"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// coordinatorPartitions is how many partitions the topic of a coordinator has, 0 for another topic and
// where no metadata log tells.
func (t *topics) coordinatorPartitions(name string) int32 {
	if t.image == nil || name != topic.ConsumerOffsets && name != topic.TransactionState {
		return 0
	}
	if found := t.image.Topic(name); found != nil {
		return int32(len(found.Partitions))
	}
	return 0
}

// checkPlace notes, once for each file, that a record of a coordinator is of a group or a transactional id
// that belongs to another partition: all of a file is one partition's, and no offset says whose. It
// is no more than a note, as somebody may have added partitions to the topic. One record is enough to look at.
func (s *segmentCheck) checkPlace(position int64, b record.Batch) {
	if s.spread == 0 || s.misplaced || b.IsControl() {
		return
	}
	for r, err := range b.Records() {
		id, ok := coordinatorID(r.Key)
		if want := topic.PartitionFor(id, s.spread); err == nil && ok && want != s.name.Partition {
			s.misplaced = true
			s.note(s.path, position, r.Offset, "a record of %q, which belongs to partition %d of %d: the file is another partition's, or the topic had another number of them",
				id, want, s.spread)
		}
		return
	}
}

// coordinatorID is what the key of a record of a coordinator begins with behind its version: the group, or
// the transactional id.
func coordinatorID(key []byte) (string, bool) {
	const version, length = 2, 2
	if len(key) < version+length {
		return "", false
	}
	size, rest := int(binary.BigEndian.Uint16(key[version:])), key[version+length:]
	if size > len(rest) {
		return "", false
	}
	return string(rest[:size]), true
}
