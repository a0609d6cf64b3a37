package api

import (
	"encoding/binary"
	"slices"

	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// leaderOf returns the leader of a partition by the metadata, -1 for none. The topic goes
// by its id if it has one.
func (s *Server) leaderOf(name []byte, id uuid.UUID, partition int32) (leader, epoch int32) {
	t := s.Metadata().TopicByID(id)
	if id.IsZero() {
		t = s.Metadata().Topic(string(name))
	}
	if t == nil || partition < 0 || int(partition) >= len(t.Partitions) {
		return -1, -1
	}
	p := t.Partitions[partition]
	return p.Leader, p.LeaderEpoch
}

// appendLeaderTag appends the tagged field CurrentLeader.
func appendLeaderTag(b []byte, tag byte, leader, epoch int32) []byte {
	b = append(b, tag, 9) // its size: two numbers and the end of its tags
	b = binary.BigEndian.AppendUint32(b, uint32(leader))
	b = binary.BigEndian.AppendUint32(b, uint32(epoch))
	return append(b, 0)
}

// appendNodeEndpoints appends the tag section at the end of an answer to Produce or Fetch:
// where the brokers are that it names as leaders, as tag 0, unless there are none.
func (s *Server) appendNodeEndpoints(b []byte, leaders []int32, listener string) []byte {
	if len(leaders) == 0 {
		return append(b, 0)
	}
	slices.Sort(leaders)
	img := s.Metadata()
	var nodes []byte
	n := 0
	for _, id := range slices.Compact(leaders) {
		b := img.Broker(id)
		if b == nil {
			continue
		}
		if host, port, ok := endpoint(b, listener); ok {
			n++
			nodes = binary.BigEndian.AppendUint32(nodes, uint32(id))
			nodes = wire.AppendString(nodes, host, true)
			nodes = binary.BigEndian.AppendUint32(nodes, uint32(port))
			nodes = wire.AppendNullableString(nodes, b.Rack, true)
			nodes = append(nodes, 0)
		}
	}
	if n == 0 {
		return append(b, 0)
	}
	field := append(wire.AppendArrayLen(nil, n, true), nodes...)
	b = append(b, 1, 0) // one tag, number 0
	b = binary.AppendUvarint(b, uint64(len(field)))
	return append(b, field...)
}
