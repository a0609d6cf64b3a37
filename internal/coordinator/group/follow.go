package group

import (
	"math"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Follow does what a change of the metadata asks of this node's coordinator: it takes over
// and gives up partitions of __consumer_offsets, and drops offsets of deleted topics. It
// does not block. Call it for every delta in order, after the logs have followed it.
func (c *Coordinator) Follow(d *metadata.Delta, node int32) {
	var deleted []string
	for _, t := range d.DeletedTopics {
		if t.Name != topic.ConsumerOffsets {
			deleted = append(deleted, t.Name)
			continue
		}
		for p := range t.Partitions {
			c.Resign(int32(p), math.MaxInt32)
		}
	}
	for _, t := range d.ChangedTopics {
		if t.New.Name == topic.ConsumerOffsets {
			c.followPartitions(t, node)
		}
	}
	if len(deleted) > 0 {
		c.TopicsDeleted(deleted)
	}
}

func (c *Coordinator) followPartitions(t metadata.TopicChange, node int32) {
	for p, change := range t.Partitions() {
		if change.New.Leader == node {
			c.Lead(p, change.New.LeaderEpoch)
		} else {
			c.Resign(p, change.New.LeaderEpoch)
		}
	}
}
