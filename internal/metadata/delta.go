package metadata

import "iter"

// A Delta says what differs between two images, in a fixed order. Apply also lists a resource that
// records have set to what it was: what its configurations point to may have changed (KAFKA-14136).
type Delta struct {
	Before, After *Image

	// DeletedTopics are the topics that are gone, as they were. A topic that was deleted and
	// created again under its name is here, and with its new id in ChangedTopics.
	DeletedTopics []*Topic

	// ChangedTopics are the topics that are new or have new or changed partitions.
	ChangedTopics []TopicChange

	Configs          []ConfigResource // resources whose configurations changed
	Brokers          []int32          // brokers that registered, changed or left
	Features         bool
	ProducerIDs      bool
	ClientQuotas     bool
	ACLs             bool
	Scram            bool
	DelegationTokens bool
}

// A TopicChange is a topic before and after. Old is nil for a new topic.
type TopicChange struct{ Old, New *Topic }

// A PartitionChange is a partition before and after. Old is nil for a new partition.
type PartitionChange struct{ Old, New *Partition }

// Partitions walks the partitions that are new or changed, by ascending number.
func (c TopicChange) Partitions() iter.Seq2[int32, PartitionChange] {
	return func(yield func(int32, PartitionChange) bool) {
		for i, p := range c.New.Partitions {
			var old *Partition
			if c.Old != nil && i < len(c.Old.Partitions) {
				old = c.Old.Partitions[i]
			}
			if !old.equal(p) && !yield(int32(i), PartitionChange{old, p}) {
				return
			}
		}
	}
}
