package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// alterReplicaLogDirs begins to move partitions to the named log directories of this broker.
// The answer says that moves have begun; DescribeLogDirs tells how far they are.
func (s *Server) alterReplicaLogDirs(_ context.Context, _ *Request, req *kmsg.AlterReplicaLogDirsRequest) (*kmsg.AlterReplicaLogDirsResponse, error) {
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	at := make(map[string]int)
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			i, ok := at[t.Topic]
			if !ok {
				i = len(resp.Topics)
				at[t.Topic] = i
				answer := kmsg.NewAlterReplicaLogDirsResponseTopic()
				answer.Topic = t.Topic
				resp.Topics = append(resp.Topics, answer)
			}
			for _, number := range t.Partitions {
				p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				p.Partition = number
				p.ErrorCode = code(s.Logs.Move(topic.Partition{Topic: t.Topic, Partition: number}, d.Dir))
				resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, p)
			}
		}
	}
	return resp, nil
}
