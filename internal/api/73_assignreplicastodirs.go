package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// assignReplicasToDirs notes where a broker has its replicas. (KIP-858)
func (s *Server) assignReplicasToDirs(ctx context.Context, _ *Request, req *kmsg.AssignReplicasToDirsRequest) (*kmsg.AssignReplicasToDirsResponse, error) {
	err := s.Brokers.AssignDirectories(ctx, req.BrokerID, assignmentsOf(req))
	resp := kmsg.NewPtrAssignReplicasToDirsResponse()
	if resp.ErrorCode = code(err); err != nil {
		return resp, nil
	}
	for _, d := range req.Directories {
		dir := kmsg.NewAssignReplicasToDirsResponseDirectory()
		dir.ID = d.ID
		for _, t := range d.Topics {
			topic := kmsg.NewAssignReplicasToDirsResponseDirectoryTopic()
			topic.TopicID = t.TopicID
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AssignReplicasToDirsResponseDirectoryTopicPartition{Partition: p.Partition})
			}
			dir.Topics = append(dir.Topics, topic)
		}
		resp.Directories = append(resp.Directories, dir)
	}
	return resp, nil
}

func assignmentsOf(req *kmsg.AssignReplicasToDirsRequest) (list []controller.DirectoryAssignment) {
	for _, d := range req.Directories {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				list = append(list, controller.DirectoryAssignment{TopicID: uuid.UUID(t.TopicID), Partition: p.Partition, Directory: uuid.UUID(d.ID)})
			}
		}
	}
	return list
}

// assignmentRequest is the opposite of assignmentsOf, one directory and topic after the other as they come.
func assignmentRequest(broker int32, epoch int64, list []controller.DirectoryAssignment) *kmsg.AssignReplicasToDirsRequest {
	req := kmsg.NewPtrAssignReplicasToDirsRequest()
	req.BrokerID, req.BrokerEpoch = broker, epoch
	for _, a := range list {
		dir := directoryOf(req, a.Directory)
		topic := topicIn(dir, a.TopicID)
		topic.Partitions = append(topic.Partitions, kmsg.AssignReplicasToDirsRequestDirectoryTopicPartition{Partition: a.Partition})
	}
	return req
}

func directoryOf(req *kmsg.AssignReplicasToDirsRequest, id uuid.UUID) *kmsg.AssignReplicasToDirsRequestDirectory {
	for i := range req.Directories {
		if req.Directories[i].ID == id {
			return &req.Directories[i]
		}
	}
	req.Directories = append(req.Directories, kmsg.AssignReplicasToDirsRequestDirectory{ID: id})
	return &req.Directories[len(req.Directories)-1]
}

// topicIn returns the entry of a topic; those of one topic come together or nearly so, and the last is looked at first.
func topicIn(d *kmsg.AssignReplicasToDirsRequestDirectory, id uuid.UUID) *kmsg.AssignReplicasToDirsRequestDirectoryTopic {
	for i := len(d.Topics) - 1; i >= 0; i-- {
		if d.Topics[i].TopicID == id {
			return &d.Topics[i]
		}
	}
	d.Topics = append(d.Topics, kmsg.AssignReplicasToDirsRequestDirectoryTopic{TopicID: id})
	return &d.Topics[len(d.Topics)-1]
}
