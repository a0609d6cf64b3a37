package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// alterReplicaLogDirs begins to move partitions to the named log directories of this broker.
// The answer says that moves have begun; DescribeLogDirs tells how far they are.
func (s *Server) alterReplicaLogDirs(_ context.Context, _ *Request, req *kmsg.AlterReplicaLogDirsRequest) (*kmsg.AlterReplicaLogDirsResponse, error) {
	var once merged[string] // the directory
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				once.add(t.Topic, p, d.Dir)
			}
		}
	}
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	for _, t := range once.topics {
		answer := kmsg.NewAlterReplicaLogDirsResponseTopic()
		answer.Topic = t.name
		for _, p := range t.partitions {
			a := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
			a.Partition = p.index
			a.ErrorCode = code(s.move(topic.Partition{Topic: t.name, Partition: p.index}, p.said))
			answer.Partitions = append(answer.Partitions, a)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}

// move begins to move a partition. Of one that the cluster does not have, the directory is
// remembered for when it is created.
func (s *Server) move(p topic.Partition, dir string) error {
	err := s.Logs.Move(p, dir)
	if errors.Is(err, logdir.ErrUnknownPartition) {
		if t := s.Metadata().Topic(p.Topic); t == nil || !hasPartition(t, p.Partition) {
			return kerr.UnknownTopicOrPartition
		}
	}
	return err
}
