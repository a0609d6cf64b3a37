package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Election types of ElectLeaders (KIP-460). Version 0 knows only the first.
const (
	electPreferred = 0
	electUnclean   = 1
)

// electLeaders says for each partition why there is nothing to elect: it is led as asked,
// or no replica can lead it. (With one broker there is no third case: a broker takes over
// what it can lead when it registers.) Asked for all partitions, it leaves out those that
// are led as they should be.
func (s *Server) electLeaders(_ context.Context, r *Request, req *kmsg.ElectLeadersRequest) (*kmsg.ElectLeadersResponse, error) {
	resp := kmsg.NewPtrElectLeadersResponse()
	kind := req.ElectionType
	if r.Version == 0 {
		kind = electPreferred
	}
	img := s.Metadata()
	unknown := kind != electPreferred && kind != electUnclean
	if unknown {
		resp.ErrorCode = kerr.InvalidRequest.Code
	}
	asked, all := req.Topics, req.Topics == nil
	if all {
		asked = everyPartition(img)
	}
	for _, a := range asked {
		answer := kmsg.NewElectLeadersResponseTopic()
		answer.Topic = a.Topic
		for _, number := range a.Partitions {
			why := kerr.InvalidRequest
			if !unknown {
				why = election(img.Partition(topic.Partition{Topic: a.Topic, Partition: number}), kind)
			}
			if all && why == kerr.ElectionNotNeeded {
				continue
			}
			partition := kmsg.NewElectLeadersResponseTopicPartition()
			partition.Partition, partition.ErrorCode, partition.ErrorMessage = number, why.Code, kmsg.StringPtr(why.Description)
			answer.Partitions = append(answer.Partitions, partition)
		}
		if len(answer.Partitions) > 0 {
			resp.Topics = append(resp.Topics, answer)
		}
	}
	return resp, nil
}

// everyPartition asks for all partitions of all topics.
func everyPartition(img *metadata.Image) []kmsg.ElectLeadersRequestTopic {
	var topics []kmsg.ElectLeadersRequestTopic
	for _, name := range img.TopicNames() {
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic = name
		for i := range img.Topic(name).Partitions {
			t.Partitions = append(t.Partitions, int32(i))
		}
		topics = append(topics, t)
	}
	return topics
}

// election says why no leader is elected.
func election(p *metadata.Partition, kind int8) *kerr.Error {
	switch {
	case p == nil:
		return kerr.UnknownTopicOrPartition
	case kind == electUnclean && p.Leader == metadata.NoLeader:
		return kerr.EligibleLeadersNotAvailable
	case kind == electUnclean || p.Leader == p.Replicas[0]:
		return kerr.ElectionNotNeeded
	}
	return kerr.PreferredLeaderNotAvailable
}

// isReassigning reports whether a partition is on its way to other brokers.
func isReassigning(p *metadata.Partition) bool {
	return len(p.AddingReplicas) > 0 || len(p.RemovingReplicas) > 0
}

// sameSet reports whether two lists without duplicates have the same members.
func sameSet(a, b []int32) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id int32) bool { return !slices.Contains(b, id) })
}
