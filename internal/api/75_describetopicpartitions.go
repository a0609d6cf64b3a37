package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// describeTopicPartitions walks the topics by name, and ends an answer that gets too long
// with a cursor, at which the client goes on (KIP-966).
func (s *Server) describeTopicPartitions(_ context.Context, r *Request, req *kmsg.DescribeTopicPartitionsRequest) (*kmsg.DescribeTopicPartitionsResponse, error) {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	img := s.Metadata()
	if !cursorValid(req) {
		for _, t := range req.Topics {
			resp.Topics = append(resp.Topics, describeRefused(t.Topic, kerr.InvalidRequest))
		}
		return resp, nil
	}
	limit := max(1, min(s.Config().Int("max.request.partition.size.limit"), int(req.ResponsePartitionLimit)))
	for _, name := range topicsToDescribe(img, req) {
		first := int32(0)
		if req.Cursor != nil && req.Cursor.Topic == name {
			first = req.Cursor.Partition
		}
		if limit == 0 {
			resp.NextCursor = cursorAt(name, 0)
			break
		}
		t := img.Topic(name)
		if t == nil {
			missing := describeRefused(name, whyMissing(name))
			missing.AuthorizedOperations = topicOperations
			resp.Topics = append(resp.Topics, missing)
			continue
		}
		answer, next := s.describePartitions(img, r.Listener, t, first, limit)
		resp.Topics = append(resp.Topics, answer)
		limit -= len(answer.Partitions)
		if int(next) < len(t.Partitions) {
			resp.NextCursor = cursorAt(name, next)
			break
		}
	}
	return resp, nil
}

// cursorValid reports whether the cursor, if any, is at a partition of a topic asked for.
func cursorValid(req *kmsg.DescribeTopicPartitionsRequest) bool {
	c := req.Cursor
	return c == nil || c.Partition >= 0 && (len(req.Topics) == 0 ||
		slices.ContainsFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic == c.Topic }))
}

// topicsToDescribe returns the names asked for, or all, in ascending order from the
// cursor on, each once.
func topicsToDescribe(img *metadata.Image, req *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	if len(req.Topics) == 0 {
		names = img.TopicNames()
	}
	for _, t := range req.Topics {
		names = append(names, t.Topic)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if req.Cursor != nil {
		i, _ := slices.BinarySearch(names, req.Cursor.Topic)
		names = names[i:]
	}
	return names
}

func cursorAt(name string, partition int32) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = name, partition
	return &c
}

func describeRefused(name string, why *kerr.Error) kmsg.DescribeTopicPartitionsResponseTopic {
	t := kmsg.NewDescribeTopicPartitionsResponseTopic()
	t.Topic = &name
	t.IsInternal = topic.IsInternal(name)
	t.ErrorCode = why.Code
	return t
}

// whyMissing is the error of a name that no topic has.
func whyMissing(name string) *kerr.Error {
	if topic.ValidateName(name) != nil {
		return kerr.InvalidTopicException
	}
	return kerr.UnknownTopicOrPartition
}

// describePartitions describes at most limit partitions from first on; next is the first
// that is left out.
func (s *Server) describePartitions(img *metadata.Image, listener string, t *metadata.Topic, first int32, limit int) (answer kmsg.DescribeTopicPartitionsResponseTopic, next int32) {
	answer = kmsg.NewDescribeTopicPartitionsResponseTopic()
	answer.Topic, answer.TopicID = &t.Name, t.ID
	answer.IsInternal = topic.IsInternal(t.Name)
	answer.AuthorizedOperations = topicOperations
	m := metadataAnswer{server: s, img: img, version: 13, listener: listener}
	for next = max(first, 0); int(next) < len(t.Partitions) && len(answer.Partitions) < limit; next++ {
		p := t.Partitions[next]
		described := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		described.Partition = next
		described.ErrorCode = m.leaderError(p)
		described.LeaderID, described.LeaderEpoch = p.Leader, p.LeaderEpoch
		if described.ErrorCode != 0 {
			described.LeaderID = metadata.NoLeader
		}
		described.Replicas, described.ISR = p.Replicas, p.ISR
		described.OfflineReplicas = offline(img, p)
		described.EligibleLeaderReplicas = append([]int32{}, p.ELR...)
		described.LastKnownELR = append([]int32{}, p.LastKnownELR...)
		answer.Partitions = append(answer.Partitions, described)
	}
	return answer, next
}
