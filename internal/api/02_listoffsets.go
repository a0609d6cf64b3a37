package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Replica ids of clients. A tool that debugs wants an answer of any replica, and sees all of its log.
const (
	consumerReplica = -1
	debugReplica    = -2
)

func (s *Server) listOffsets(_ context.Context, r *Request, req *kmsg.ListOffsetsRequest) (*kmsg.ListOffsetsResponse, error) {
	isolation, err := offsetsIsolation(req)
	if err != nil {
		return nil, err
	}
	if r.Version == 0 {
		s.noteOldClient(r, 0)
	}
	var once merged[*kmsg.ListOffsetsRequestTopicPartition]
	for _, t := range req.Topics {
		for i := range t.Partitions {
			once.add(t.Topic, t.Partitions[i].Partition, &t.Partitions[i])
		}
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, t := range once.topics {
		answer := kmsg.NewListOffsetsResponseTopic()
		answer.Topic = t.name
		for _, q := range t.partitions {
			a := kmsg.NewListOffsetsResponseTopicPartition()
			a.Partition, a.Timestamp, a.Offset, a.LeaderEpoch = q.index, -1, -1, -1
			if q.times > 1 {
				a.ErrorCode = kerr.InvalidRequest.Code
			} else {
				s.listOffset(r.Version, req.ReplicaID, topic.Partition{Topic: t.name, Partition: q.index}, q.said, isolation, &a)
			}
			answer.Partitions = append(answer.Partitions, a)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}

func offsetsIsolation(req *kmsg.ListOffsetsRequest) (commitlog.Isolation, error) {
	switch {
	case req.ReplicaID != consumerReplica:
		return commitlog.ReadLogEnd, nil
	case req.IsolationLevel == 0:
		return commitlog.ReadUncommitted, nil
	case req.IsolationLevel == 1:
		return commitlog.ReadCommitted, nil
	}
	return 0, errMalformed
}

func (s *Server) listOffset(version int16, replicaID int32, p topic.Partition, q *kmsg.ListOffsetsRequestTopicPartition,
	isolation commitlog.Isolation, a *kmsg.ListOffsetsResponseTopicPartition) {
	if q.Timestamp < oldestSpecial(version) {
		a.ErrorCode = kerr.UnsupportedVersion.Code
		return
	}
	partition, err := s.Replicas.Partition(p)
	if err != nil {
		a.ErrorCode = code(err)
		return
	}
	lookup := replica.Lookup{
		Timestamp: q.Timestamp, Isolation: isolation, LeaderEpoch: q.CurrentLeaderEpoch, AnyReplica: replicaID == debugReplica,
	}
	if version == 0 {
		a.OldStyleOffsets, err = partition.SegmentOffsets(lookup, int(q.MaxNumOffsets))
		a.ErrorCode = code(err)
		return
	}
	found, err := partition.Lookup(lookup)
	switch {
	case errors.Is(err, replica.ErrOffsetNotAvailable) && version < 5:
		a.ErrorCode = kerr.LeaderNotAvailable.Code
		return
	case err != nil:
		a.ErrorCode = code(err)
		return
	}
	a.Timestamp, a.Offset, a.LeaderEpoch = found.Timestamp, found.Offset, found.LeaderEpoch
}

// oldestSpecial returns the smallest timestamp with a meaning in a version.
func oldestSpecial(version int16) int64 {
	switch {
	case version < 7:
		return commitlog.Earliest
	case version < 8:
		return commitlog.MaxTimestamp
	case version < 9:
		return commitlog.EarliestLocal
	case version < 11:
		return commitlog.LatestTiered
	}
	return commitlog.EarliestPendingUpload
}
