package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// offsetForLeaderEpoch tells a reader where the records of a leader epoch end, so that it
// notices when the log lost what it has read.
func (s *Server) offsetForLeaderEpoch(_ context.Context, _ *Request, req *kmsg.OffsetForLeaderEpochRequest) (*kmsg.OffsetForLeaderEpochResponse, error) {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for _, t := range req.Topics {
		answer := kmsg.NewOffsetForLeaderEpochResponseTopic()
		answer.Topic = t.Topic
		for i := range t.Partitions {
			q := &t.Partitions[i]
			a := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			a.Partition, a.LeaderEpoch, a.EndOffset = q.Partition, -1, -1
			partition, err := s.Replicas.Partition(topic.Partition{Topic: t.Topic, Partition: q.Partition})
			if err == nil {
				a.LeaderEpoch, a.EndOffset, err = partition.EndOffset(q.CurrentLeaderEpoch, q.LeaderEpoch)
			}
			a.ErrorCode = code(err)
			answer.Partitions = append(answer.Partitions, a)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}
