package controller

import (
	"context"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A DirectoryAssignment says in which log directory a broker has its replica of a partition.
type DirectoryAssignment struct {
	TopicID   uuid.UUID
	Partition int32
	Directory uuid.UUID
}

// AssignDirectories notes where a broker has its replicas (Kafka: AssignReplicasToDirs).
// What is unknown by now, or noted already, is left out.
func (c *Controller) AssignDirectories(ctx context.Context, broker int32, list []DirectoryAssignment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commitLocked(ctx, assignDirectories(c.opts.Quorum.Image(), broker, list))
}

func assignDirectories(img *metadata.Image, broker int32, list []DirectoryAssignment) []metadata.Record {
	var records []metadata.Record
	for _, a := range list {
		t := img.TopicByID(a.TopicID)
		if t == nil || a.Partition < 0 || int(a.Partition) >= len(t.Partitions) {
			continue
		}
		p := t.Partitions[a.Partition]
		i := slices.Index(p.Replicas, broker)
		if i < 0 {
			continue
		}
		dirs := make([]uuid.UUID, len(p.Replicas))
		copy(dirs, p.Directories)
		if dirs[i] == a.Directory {
			continue
		}
		dirs[i] = a.Directory
		r := metadata.NewPartitionChangeRecord()
		r.TopicID, r.PartitionID, r.Directories = a.TopicID, a.Partition, dirs
		records = append(records, r)
	}
	return records
}
