package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// offsetFetch looks up committed offsets, from version 8 on of several groups. Older
// requests are handled as one group of the newer.
func (s *Server) offsetFetch(ctx context.Context, r *Request, req *kmsg.OffsetFetchRequest) (*kmsg.OffsetFetchResponse, error) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if r.Version >= 8 {
		for i := range req.Groups {
			resp.Groups = append(resp.Groups, s.fetchGroup(ctx, r, &req.Groups[i], req.RequireStable))
		}
		return resp, nil
	}
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = req.Group
	for _, t := range req.Topics {
		one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	if req.Topics != nil && one.Topics == nil {
		one.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	answer := s.fetchGroup(ctx, r, &one, req.RequireStable)
	if r.Version < 2 {
		repeatError(&one, &answer)
	}
	resp.ErrorCode = answer.ErrorCode
	for _, t := range answer.Topics {
		resp.Topics = append(resp.Topics, oldFetchTopic(t, r.Version))
	}
	return resp, nil
}

// repeatError puts the error of a group, for which there is no field up to version 1, into
// every partition that was asked for.
func repeatError(req *kmsg.OffsetFetchRequestGroup, answer *kmsg.OffsetFetchResponseGroup) {
	if answer.ErrorCode == 0 {
		return
	}
	for _, t := range req.Topics {
		failed := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			failed.Partitions = append(failed.Partitions, fetchFailure(p, answer.ErrorCode))
		}
		answer.Topics = append(answer.Topics, failed)
	}
}

// oldFetchTopic is the answer for a topic in the form of versions 0 to 7. Version 0, which
// once read from ZooKeeper, calls a partition without offset unknown.
func oldFetchTopic(t kmsg.OffsetFetchResponseGroupTopic, version int16) kmsg.OffsetFetchResponseTopic {
	old := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
	for _, p := range t.Partitions {
		o := kmsg.OffsetFetchResponseTopicPartition{
			Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
		}
		if version == 0 && o.ErrorCode == 0 && o.Offset < 0 {
			o.ErrorCode = kerr.UnknownTopicOrPartition.Code
		}
		old.Partitions = append(old.Partitions, o)
	}
	return old
}

func fetchFailure(partition int32, code int16) kmsg.OffsetFetchResponseGroupTopicPartition {
	return kmsg.OffsetFetchResponseGroupTopicPartition{
		Partition: partition, Offset: -1, LeaderEpoch: -1, Metadata: new(string), ErrorCode: code,
	}
}

// fetchGroup answers for one group.
func (s *Server) fetchGroup(ctx context.Context, r *Request, req *kmsg.OffsetFetchRequestGroup, requireStable bool) kmsg.OffsetFetchResponseGroup {
	img, byID := s.Metadata(), r.Version >= 10
	answer := kmsg.OffsetFetchResponseGroup{Group: req.Group}
	f := &group.FetchRequest{Group: req.Group, RequireStable: requireStable}
	if req.Topics != nil {
		f.Topics = []group.TopicPartitions{}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		name := t.Topic
		if byID {
			known, missing := findTopic(img, byID, "", t.TopicID)
			if known == nil {
				answer.Topics = append(answer.Topics, fetchUnknown(t, missing))
				continue
			}
			name = known.Name
		}
		f.Topics = append(f.Topics, group.TopicPartitions{Topic: name, Partitions: t.Partitions})
	}
	topics, err := s.Groups.Fetch(ctx, f)
	if err != nil {
		return kmsg.OffsetFetchResponseGroup{Group: req.Group, ErrorCode: groupCode(err)}
	}
	for _, t := range topics {
		if a, ok := fetchedTopic(img, byID, t); ok {
			answer.Topics = append(answer.Topics, a)
		}
	}
	return answer
}

func fetchUnknown(t *kmsg.OffsetFetchRequestGroupTopic, code int16) kmsg.OffsetFetchResponseGroupTopic {
	a := kmsg.OffsetFetchResponseGroupTopic{TopicID: t.TopicID}
	for _, p := range t.Partitions {
		a.Partitions = append(a.Partitions, fetchFailure(p, code))
	}
	return a
}

// fetchedTopic is the answer for a topic; ok is false when the client wants its id and it
// has none any more.
func fetchedTopic(img *metadata.Image, byID bool, t group.TopicOffsets) (a kmsg.OffsetFetchResponseGroupTopic, ok bool) {
	a.Topic = t.Topic
	if byID {
		known := img.Topic(t.Topic)
		if known == nil {
			return a, false
		}
		a.TopicID = known.ID
	}
	for _, o := range t.Offsets {
		a.Partitions = append(a.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
			Partition: o.Partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: &o.Metadata, ErrorCode: groupCode(o.Err),
		})
	}
	return a, true
}
