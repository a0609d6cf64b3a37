package schema

import (
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// States of what tiered storage keeps elsewhere.
var (
	remoteSegmentStates   = []string{"COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"}
	remotePartitionStates = []string{"DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"}
)

// appendRemoteLog appends a value of __remote_log_metadata as text, as Kafka's classes show
// themselves. (RemoteLogMetadataSerde; KIP-405.) In front of the fields are the version of the
// frame, which is 1, the kind of the record and its version, as unsigned varints.
func appendRemoteLog(dst, value []byte) ([]byte, error) {
	r := &remoteReader{reader{b: value, flexible: true}}
	frame, kind, version := r.uvarint(), r.uvarint(), r.uvarint()
	if r.err == nil && (frame != 1 || version != 0) {
		return dst, fmt.Errorf("frame version %d, version %d; want 1 and 0", frame, version)
	}
	n := len(dst)
	switch kind {
	case 0:
		dst = r.appendSegment(dst)
	case 1:
		dst = fmt.Appendf(dst, "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId=%s, ", r.segmentID())
		broker, timestamp := r.int(4), r.int(8)
		dst = fmt.Appendf(dst, "customMetadata=%s, state=%s, eventTimestampMs=%d, brokerId=%d}",
			r.custom(), r.state(remoteSegmentStates), timestamp, broker)
		r.tags()
	case 2:
		dst = fmt.Appendf(dst, "RemotePartitionDeleteMetadata{topicPartition=%s, ", r.partition())
		broker, timestamp := r.int(4), r.int(8)
		dst = fmt.Appendf(dst, "state=%s, eventTimestampMs=%d, brokerId=%d}", r.state(remotePartitionStates), timestamp, broker)
		r.tags()
	default:
		r.fail(fmt.Errorf("unknown kind %d of record", kind))
	}
	if r.err != nil {
		return dst[:n], r.err
	}
	return dst, nil
}

// A remoteReader reads what the records of tiered storage are made of.
type remoteReader struct{ reader }

func (r *remoteReader) appendSegment(dst []byte) []byte {
	dst = fmt.Appendf(dst, "RemoteLogSegmentMetadata{remoteLogSegmentId=%s, ", r.segmentID())
	dst = fmt.Appendf(dst, "startOffset=%d, endOffset=%d, ", r.int(8), r.int(8))
	dst = fmt.Appendf(dst, "brokerId=%d, maxTimestampMs=%d, eventTimestampMs=%d, segmentLeaderEpochs={", r.int(4), r.int(8), r.int(8))
	for i := range r.length(4, false) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = fmt.Appendf(dst, "%d=%d", r.int(4), r.int(8))
		r.tags()
	}
	dst = fmt.Appendf(dst, "}, segmentSizeInBytes=%d, customMetadata=%s, state=%s, ", r.int(4), r.custom(), r.state(remoteSegmentStates))
	txnIndexEmpty := r.tags()[0]
	return fmt.Appendf(dst, "txnIdxEmpty=%t}", len(txnIndexEmpty) > 0 && txnIndexEmpty[0] != 0)
}

func (r *remoteReader) uuid() uuid.UUID {
	var id uuid.UUID
	copy(id[:], r.take(len(id)))
	return id
}

// partition reads topic and partition; the text begins with the topic's id.
func (r *remoteReader) partition() string {
	name := string(r.take(r.length(2, false)))
	id := r.uuid()
	p := topic.Partition{Topic: name, Partition: int32(r.int(4))}
	r.tags()
	return id.String() + ":" + p.String()
}

func (r *remoteReader) segmentID() string {
	p := r.partition()
	id := r.uuid()
	r.tags()
	return fmt.Sprintf("RemoteLogSegmentId{topicIdPartition=%s, id=%s}", p, id)
}

// custom reads what a plugin has left.
func (r *remoteReader) custom() string {
	n := r.length(4, true)
	if n < 0 {
		return "Optional.empty"
	}
	return fmt.Sprintf("Optional[CustomMetadata{%d bytes}]", len(r.take(n)))
}

func (r *remoteReader) state(names []string) string {
	v := r.int(1)
	if v < 0 || v >= int64(len(names)) {
		r.fail(errors.New("unknown state"))
		return ""
	}
	return names[v]
}

// tags reads tagged fields.
func (r *remoteReader) tags() map[uint32][]byte {
	fields := map[uint32][]byte{}
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		tag := r.uvarint()
		fields[tag] = r.take(int(r.uvarint()))
	}
	return fields
}
