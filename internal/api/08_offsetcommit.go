package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// offsetCommit stores the offsets of partitions that exist. Version 0 has no generation:
// such a client is no member. The time that version 1 sends with an offset is not used.
func (s *Server) offsetCommit(ctx context.Context, r *Request, req *kmsg.OffsetCommitRequest) (*kmsg.OffsetCommitResponse, error) {
	resp := kmsg.NewPtrOffsetCommitResponse()
	c := &group.CommitRequest{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		RetentionMs: req.RetentionTimeMillis, NotFound: kerr.IllegalGeneration,
	}
	if r.Version >= 9 {
		c.NotFound = kerr.GroupIDNotFound
	}
	open := prepareCommit(s.Metadata(), req, c, resp)
	if len(c.Offsets) == 0 {
		return resp, nil
	}
	errs, err := s.Groups.Commit(ctx, c)
	for i, p := range open {
		if err != nil {
			p.ErrorCode = groupCode(err)
		} else {
			p.ErrorCode = groupCode(errs[i])
		}
	}
	return resp, nil
}

// prepareCommit answers what names no partition, and collects the other offsets. The
// partitions it returns are where their codes go.
func prepareCommit(img *metadata.Image, req *kmsg.OffsetCommitRequest, c *group.CommitRequest, resp *kmsg.OffsetCommitResponse) (open []*kmsg.OffsetCommitResponseTopicPartition) {
	for i := range req.Topics {
		t := &req.Topics[i]
		answer := kmsg.NewOffsetCommitResponseTopic()
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		answer.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		known, missing := findTopic(img, req.Version >= 10, t.Topic, t.TopicID)
		for j := range t.Partitions {
			p, a := &t.Partitions[j], &answer.Partitions[j]
			a.Partition = p.Partition
			switch {
			case known == nil:
				a.ErrorCode = missing
			case !hasPartition(known, p.Partition):
				a.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				open = append(open, a)
				c.Offsets = append(c.Offsets, group.CommitOffset{
					Topic: known.Name, TopicID: known.ID, Partition: p.Partition,
					Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: textOf(p.Metadata),
				})
			}
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return open
}
