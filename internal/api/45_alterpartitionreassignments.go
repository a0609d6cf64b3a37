package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// alterPartitionReassignments checks targets as Kafka does. A partition cannot move
// between brokers yet, so only a target that is there already succeeds.
func (s *Server) alterPartitionReassignments(_ context.Context, r *Request, req *kmsg.AlterPartitionAssignmentsRequest) (*kmsg.AlterPartitionAssignmentsResponse, error) {
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	img := s.Metadata()
	mayResize := r.Version < 1 || req.AllowReplicationFactorChange
	for _, asked := range req.Topics {
		answer := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		answer.Topic = asked.Topic
		for _, target := range asked.Partitions {
			p := img.Partition(topic.Partition{Topic: asked.Topic, Partition: target.Partition})
			err := checkReassignment(img, p, target.Replicas, mayResize)
			partition := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			partition.Partition, partition.ErrorCode, partition.ErrorMessage = target.Partition, code(err), message(err)
			answer.Partitions = append(answer.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}

// checkReassignment says why a partition cannot get the replicas of target; nil when it
// has them. A nil target cancels a reassignment.
func checkReassignment(img *metadata.Image, p *metadata.Partition, target []int32, mayResize bool) error {
	switch {
	case p == nil:
		return refuse(kerr.UnknownTopicOrPartition, "no such partition")
	case target == nil && !isReassigning(p):
		return refuse(kerr.NoReassignmentInProgress, "the partition is not being reassigned")
	case target == nil || isReassigning(p):
		return refuse(kerr.InvalidReplicaAssignment, "the partition is being reassigned, and gregor cannot change that yet")
	case len(target) == 0:
		return refuse(kerr.InvalidReplicaAssignment, "the list of replicas is empty")
	}
	for i, id := range target {
		switch {
		case slices.Contains(target[:i], id):
			return refuse(kerr.InvalidReplicaAssignment, fmt.Sprintf("duplicate broker %d", id))
		case img.Broker(id) == nil:
			return refuse(kerr.InvalidReplicaAssignment, fmt.Sprintf("broker %d is not registered", id))
		}
	}
	switch {
	case !mayResize && len(target) != len(p.Replicas):
		return refuse(kerr.InvalidReplicationFactor, fmt.Sprintf("%d replicas instead of %d", len(target), len(p.Replicas)))
	case !sameSet(target, p.Replicas):
		return refuse(kerr.InvalidReplicaAssignment, "gregor cannot move partitions between brokers yet")
	}
	return nil
}
