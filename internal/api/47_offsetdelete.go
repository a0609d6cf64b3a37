package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
)

// offsetDelete deletes committed offsets of topics that no member of the group reads.
func (s *Server) offsetDelete(ctx context.Context, _ *Request, req *kmsg.OffsetDeleteRequest) (*kmsg.OffsetDeleteResponse, error) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	img := s.Metadata()
	var topics []group.TopicPartitions
	for _, t := range req.Topics {
		known, _ := findTopic(img, false, t.Topic, [16]byte{})
		asked := group.TopicPartitions{Topic: t.Topic}
		answer := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			a := kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition}
			if known == nil || !hasPartition(known, p.Partition) {
				a.ErrorCode = kerr.UnknownTopicOrPartition.Code
			} else {
				asked.Partitions = append(asked.Partitions, p.Partition)
			}
			answer.Partitions = append(answer.Partitions, a)
		}
		topics = append(topics, asked)
		resp.Topics = append(resp.Topics, answer)
	}
	errs, err := s.Groups.DeleteOffsets(ctx, req.Group, topics)
	if err != nil {
		resp.ErrorCode, resp.Topics = groupCode(err), nil
		return resp, nil
	}
	for i, err := range errs {
		refuseTopic(&resp.Topics[i], err)
	}
	return resp, nil
}

// refuseTopic gives the partitions of a topic an error, unless they have one.
func refuseTopic(t *kmsg.OffsetDeleteResponseTopic, err error) {
	for i := range t.Partitions {
		if t.Partitions[i].ErrorCode == 0 {
			t.Partitions[i].ErrorCode = groupCode(err)
		}
	}
}
