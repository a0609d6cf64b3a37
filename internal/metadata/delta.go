package metadata

import "iter"

// A Delta says what differs between two consecutive images. Only what differs is listed; a
// resource that was set and unset again within one batch may be listed although nothing
// differs.
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
			if old != p && !yield(int32(i), PartitionChange{old, p}) {
				return
			}
		}
	}
}

// DeltaOf returns the delta from nothing to img: what a subscriber that comes late needs.
func DeltaOf(img *Image) *Delta {
	d := &Delta{
		Before: NewImage(img.ClusterID), After: img,
		Features: len(img.features) > 0, ProducerIDs: img.NextProducerID > 0, ClientQuotas: len(img.clientQuotas) > 0,
		ACLs: len(img.acls) > 0, Scram: len(img.scram) > 0, DelegationTokens: len(img.tokens) > 0,
	}
	for t := range img.Topics() {
		d.ChangedTopics = append(d.ChangedTopics, TopicChange{New: t})
	}
	for r := range img.ConfigResources() {
		d.Configs = append(d.Configs, r)
	}
	for _, b := range img.Brokers() {
		d.Brokers = append(d.Brokers, b.ID)
	}
	return d
}
