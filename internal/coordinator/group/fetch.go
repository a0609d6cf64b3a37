package group

// A FetchRequest asks for committed offsets.
type FetchRequest struct {
	Group string
	// Topics is what to look up; nil asks for everything the group has.
	Topics []TopicPartitions
	// RequireStable: an offset that an open transaction may change is an error.
	RequireStable bool
}

// TopicPartitions is a topic and some of its partitions.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// A TopicOffsets holds the offsets of a topic's partitions.
type TopicOffsets struct {
	Topic   string
	Offsets []PartitionOffset
}

// A PartitionOffset is a committed offset, -1 if there is none.
type PartitionOffset struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1 if not known
	Metadata    string
	Err         error
}

// Fetch looks up committed offsets. Every partition that is asked for is in the answer. A
// group that does not exist has committed nothing.
func (s *Shard) Fetch(r *FetchRequest) []TopicOffsets {
	g := s.groups[r.Group]
	topics := r.Topics
	if topics == nil {
		topics = g.committed()
	}
	list := make([]TopicOffsets, len(topics))
	for i, t := range topics {
		list[i].Topic = t.Topic
		list[i].Offsets = make([]PartitionOffset, len(t.Partitions))
		for j, p := range t.Partitions {
			list[i].Offsets[j] = s.lookup(g, t.Topic, p, r.RequireStable)
		}
	}
	return list
}

func (s *Shard) lookup(g *group, topic string, partition int32, requireStable bool) PartitionOffset {
	none := PartitionOffset{Partition: partition, Offset: -1, LeaderEpoch: noEpoch}
	if g == nil {
		return none
	}
	if requireStable && s.isPending(g, topic, partition) {
		none.Err = ErrUnstableOffsetCommit
		return none
	}
	v := g.offsets.get(topic, partition)
	if v == nil {
		return none
	}
	return PartitionOffset{partition, v.offset, v.leaderEpoch, v.metadata, nil}
}

// committed lists the partitions that a group has offsets of.
func (g *group) committed() []TopicPartitions {
	if g == nil {
		return nil
	}
	var list []TopicPartitions
	for topic, partitions := range g.offsets.sortedTopics() {
		list = append(list, TopicPartitions{topic, partitions})
	}
	return list
}
