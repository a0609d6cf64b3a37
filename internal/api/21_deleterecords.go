package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/topic"
)

func (s *Server) deleteRecords(ctx context.Context, _ *Request, req *kmsg.DeleteRecordsRequest) (*kmsg.DeleteRecordsResponse, error) {
	deadline := time.Now().Add(time.Duration(req.TimeoutMillis) * time.Millisecond)
	var once merged[int64]
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			once.add(t.Topic, p.Partition, p.Offset)
		}
	}
	resp := kmsg.NewPtrDeleteRecordsResponse()
	for _, t := range once.topics {
		answer := kmsg.NewDeleteRecordsResponseTopic()
		answer.Topic = t.name
		for _, p := range t.partitions {
			a := kmsg.NewDeleteRecordsResponseTopicPartition()
			a.Partition = p.index
			low, err := s.deleteRecordsOf(ctx, topic.Partition{Topic: t.name, Partition: p.index}, p.said, deadline)
			a.LowWatermark, a.ErrorCode = low, code(err)
			answer.Partitions = append(answer.Partitions, a)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}

func (s *Server) deleteRecordsOf(ctx context.Context, p topic.Partition, offset int64, deadline time.Time) (lowWatermark int64, err error) {
	if topic.IsInternal(p.Topic) {
		return -1, errInternalTopic
	}
	partition, err := s.Replicas.Partition(p)
	if err != nil {
		return -1, err
	}
	return partition.DeleteRecords(ctx, offset, deadline)
}
