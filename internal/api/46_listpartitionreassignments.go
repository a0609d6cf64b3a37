package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// listPartitionReassignments lists, of the partitions asked for or of all, those that are
// on their way to other brokers.
func (s *Server) listPartitionReassignments(_ context.Context, _ *Request, req *kmsg.ListPartitionReassignmentsRequest) (*kmsg.ListPartitionReassignmentsResponse, error) {
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	img := s.Metadata()
	asked := req.Topics
	if asked == nil {
		for _, t := range everyPartition(img) {
			asked = append(asked, kmsg.ListPartitionReassignmentsRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
	}
	for _, a := range asked {
		answer := kmsg.NewListPartitionReassignmentsResponseTopic()
		answer.Topic = a.Topic
		for _, number := range a.Partitions {
			p := img.Partition(topic.Partition{Topic: a.Topic, Partition: number})
			if p == nil || !isReassigning(p) {
				continue
			}
			partition := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
			partition.Partition, partition.Replicas = number, p.Replicas
			partition.AddingReplicas, partition.RemovingReplicas = p.AddingReplicas, p.RemovingReplicas
			answer.Partitions = append(answer.Partitions, partition)
		}
		if len(answer.Partitions) > 0 {
			resp.Topics = append(resp.Topics, answer)
		}
	}
	return resp, nil
}
