package leader

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/peer"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// A fetchRequest is a follower's Fetch, of the versions in which topics go by their ids. It is written and its answer
// taken apart by hand: what a hostile answer makes this end allocate stays in proportion to its bytes, and records
// are not copied.
type fetchRequest struct {
	q       *replica.LeaderFetch
	version int16
}

// oldestFetch is the first version in which topics go by their ids.
const oldestFetch = 13

// Key implements kmsg.Request.
func (*fetchRequest) Key() int16 { return int16(kmsg.Fetch) }

// MaxVersion implements kmsg.Request.
func (*fetchRequest) MaxVersion() int16 { return 18 }

// SetVersion implements kmsg.Request.
func (r *fetchRequest) SetVersion(version int16) { r.version = version }

// GetVersion implements kmsg.Request.
func (r *fetchRequest) GetVersion() int16 { return r.version }

// IsFlexible implements kmsg.Request.
func (*fetchRequest) IsFlexible() bool { return true }

// ReadFrom implements kmsg.Request. Nobody reads one here.
func (*fetchRequest) ReadFrom([]byte) error { return kerr.UnsupportedVersion }

// ResponseKind implements kmsg.Request.
func (r *fetchRequest) ResponseKind() kmsg.Response { return &fetchResponse{version: r.version} }

// Tagged fields of a request.
const replicaStateTag = 1

// AppendTo implements kmsg.Request.
func (r *fetchRequest) AppendTo(b []byte) []byte {
	q := r.q
	if r.version <= 14 {
		b = int32To(b, q.ID)
	}
	b = int32To(b, int32(min(q.MaxWait.Milliseconds(), math.MaxInt32)))
	b = int32To(b, int32(q.MinBytes))
	b = int32To(b, int32(q.MaxBytes))
	b = append(b, 0) // read uncommitted
	b = int32To(b, q.SessionID)
	b = int32To(b, q.SessionEpoch)
	b = topicsTo(b, q.Partitions, askedID, func(b []byte, p replica.AskedPartition) []byte {
		b = int32To(b, p.Index)
		b = int32To(b, p.LeaderEpoch)
		b = int64To(b, p.Offset)
		b = int32To(b, p.LastEpoch)
		b = int64To(b, p.LogStart)
		b = int32To(b, int32(q.PartitionMax))
		return append(b, 0)
	})
	b = topicsTo(b, q.Forgotten, forgottenID, func(b []byte, p replica.PartitionID) []byte { return int32To(b, p.Index) })
	b = wire.AppendString(b, "", true) // no rack
	if r.version <= 14 {
		return append(b, 0)
	}
	b = append(b, 1, replicaStateTag, 13)
	b = int32To(b, q.ID)
	b = int64To(b, q.BrokerEpoch)
	return append(b, 0)
}

func askedID(p replica.AskedPartition) uuid.UUID  { return p.TopicID }
func forgottenID(p replica.PartitionID) uuid.UUID { return p.TopicID }

// topicsTo appends partitions by topic; those of a topic follow each other.
func topicsTo[P any](b []byte, list []P, topicOf func(P) uuid.UUID, appendPartition func([]byte, P) []byte) []byte {
	topics := 0
	for i := range list {
		if i == 0 || topicOf(list[i]) != topicOf(list[i-1]) {
			topics++
		}
	}
	b = wire.AppendArrayLen(b, topics, true)
	for len(list) > 0 {
		id := topicOf(list[0])
		n := 1
		for n < len(list) && topicOf(list[n]) == id {
			n++
		}
		b = append(b, id[:]...)
		b = wire.AppendArrayLen(b, n, true)
		for _, p := range list[:n] {
			b = appendPartition(b, p)
		}
		b = append(b, 0)
		list = list[n:]
	}
	return b
}

func int32To(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func int64To(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// A fetchResponse is the answer. Its records are views of what arrived.
type fetchResponse struct {
	version int16
	answer  replica.LeaderAnswer
}

// Key implements kmsg.Response.
func (*fetchResponse) Key() int16 { return int16(kmsg.Fetch) }

// MaxVersion implements kmsg.Response.
func (*fetchResponse) MaxVersion() int16 { return 18 }

// SetVersion implements kmsg.Response.
func (r *fetchResponse) SetVersion(version int16) { r.version = version }

// GetVersion implements kmsg.Response.
func (r *fetchResponse) GetVersion() int16 { return r.version }

// IsFlexible implements kmsg.Response.
func (*fetchResponse) IsFlexible() bool { return true }

// RequestKind implements kmsg.Response.
func (r *fetchResponse) RequestKind() kmsg.Request { return &fetchRequest{version: r.version} }

// AppendTo implements kmsg.Response. Nobody answers here.
func (*fetchResponse) AppendTo(b []byte) []byte { return b }

// Least bytes of what an answer lists.
const (
	topicBytes     = 16 + 1 + 1
	partitionBytes = 4 + 2 + 3*8 + 1 + 4 + 1 + 1
	abortedBytes   = 8 + 8 + 1
)

// ReadFrom implements kmsg.Response. It keeps views of body.
func (r *fetchResponse) ReadFrom(body []byte) error {
	if r.version < oldestFetch {
		return fmt.Errorf("%w: Fetch version %d", peer.ErrVersion, r.version)
	}
	d := wire.NewDecoder(body)
	d.Int32() // throttle time
	r.answer.Err = errorOf(d.Int16())
	r.answer.SessionID = d.Int32()
	for range d.ArrayLen(true, topicBytes) {
		var id uuid.UUID
		copy(id[:], d.Take(len(id)))
		for range d.ArrayLen(true, partitionBytes) {
			r.answer.Partitions = append(r.answer.Partitions, readPartition(&d, id))
			if d.Bad() {
				break
			}
		}
		d.SkipTags()
		if d.Bad() {
			break
		}
	}
	d.SkipTags()
	if d.Bad() || d.Len() > 0 {
		return fmt.Errorf("%w: Fetch version %d", ErrMalformed, r.version)
	}
	return nil
}

func readPartition(d *wire.Decoder, topic uuid.UUID) replica.AnsweredPartition {
	p := replica.AnsweredPartition{PartitionID: replica.PartitionID{TopicID: topic, Index: d.Int32()}}
	p.Err = errorOf(d.Int16())
	p.HighWatermark = d.Int64()
	d.Int64() // last stable offset, which a follower finds out itself
	p.LogStart = d.Int64()
	for range d.ArrayLen(true, abortedBytes) {
		d.Take(16)
		d.SkipTags()
	}
	d.Int32() // preferred replica
	p.Records = d.Bytes(true)
	for n := d.Uvarint(); n > 0 && !d.Bad(); n-- {
		tag, value := d.Tag()
		if tag == divergingEpochTag {
			p.Diverging = readDiverging(value)
		}
	}
	return p
}

// divergingEpochTag is the tagged field of a partition that says where the logs part.
const divergingEpochTag = 0

// readDiverging returns nil where the leader has nothing to say.
func readDiverging(value []byte) *replica.EpochEnd {
	d := wire.NewDecoder(value)
	e := replica.EpochEnd{Epoch: d.Int32(), End: d.Int64()}
	if d.Bad() || e.Epoch < 0 && e.End < 0 {
		return nil
	}
	return &e
}
