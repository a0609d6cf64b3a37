package metadata

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// DeltaOf returns the delta from nothing to img: what a subscriber that comes late needs.
func DeltaOf(img *Image) *Delta { return Diff(NewImage(img.ClusterID), img) }

// Diff returns the delta between any two images, such as the one before and the one that a snapshot
// holds: what is gone is in no record of it. It costs as much as the images are large, less where
// they share. (Kafka: MetadataDelta.finishSnapshot.)
func Diff(before, after *Image) *Delta {
	d := &Delta{
		Before: before, After: after,
		Features:         !maps.Equal(before.features, after.features),
		ProducerIDs:      before.NextProducerID != after.NextProducerID,
		ClientQuotas:     differ(before.clientQuotas, after.clientQuotas),
		ACLs:             differ(before.acls, after.acls),
		Scram:            differ(before.scram, after.scram),
		DelegationTokens: differ(before.tokens, after.tokens),
	}
	d.diffTopics()
	d.diffConfigs()
	d.diffBrokers()
	return d
}

// differ reports whether two maps of pointers hold different values.
func differ[K comparable, V any](a, b map[K]*V) bool {
	return !maps.EqualFunc(a, b, func(a, b *V) bool { return a == b || reflect.DeepEqual(a, b) })
}

func (d *Delta) diffTopics() {
	for t := range d.Before.Topics() {
		if d.After.TopicByID(t.ID) == nil {
			d.DeletedTopics = append(d.DeletedTopics, t)
		}
	}
	for t := range d.After.Topics() {
		if old := d.Before.TopicByID(t.ID); old == nil || !old.equal(t) {
			d.ChangedTopics = append(d.ChangedTopics, TopicChange{Old: old, New: t})
		}
	}
	d.sortTopics()
}

func (d *Delta) sortTopics() {
	slices.SortFunc(d.ChangedTopics, func(a, b TopicChange) int { return strings.Compare(a.New.Name, b.New.Name) })
	slices.SortFunc(d.DeletedTopics, func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
}

func (d *Delta) diffConfigs() {
	for r, old := range d.Before.ConfigResources() {
		if !maps.Equal(old, d.After.Configs(r)) {
			d.Configs = append(d.Configs, r)
		}
	}
	for r := range d.After.ConfigResources() {
		if d.Before.Configs(r) == nil {
			d.Configs = append(d.Configs, r)
		}
	}
	d.Configs = compactResources(d.Configs)
}

func (d *Delta) diffBrokers() {
	for id, old := range d.Before.brokers {
		if !old.equal(d.After.brokers[id]) {
			d.Brokers = append(d.Brokers, id)
		}
	}
	for id := range d.After.brokers {
		if d.Before.brokers[id] == nil {
			d.Brokers = append(d.Brokers, id)
		}
	}
	slices.Sort(d.Brokers)
}

// equal reports whether two versions of a topic have the same partitions.
func (t *Topic) equal(other *Topic) bool {
	return t == other || slices.EqualFunc(t.Partitions, other.Partitions, (*Partition).equal)
}

// equal reports whether two states of a partition are the same. An empty list is as good as none:
// a snapshot tells no difference.
func (p *Partition) equal(other *Partition) bool {
	if p == other || p == nil || other == nil {
		return p == other
	}
	return p.PartitionEpoch == other.PartitionEpoch && p.LeaderEpoch == other.LeaderEpoch &&
		p.Leader == other.Leader && p.RecoveryState == other.RecoveryState &&
		slices.Equal(p.Replicas, other.Replicas) && slices.Equal(p.Directories, other.Directories) && slices.Equal(p.ISR, other.ISR) &&
		slices.Equal(p.RemovingReplicas, other.RemovingReplicas) && slices.Equal(p.AddingReplicas, other.AddingReplicas) &&
		slices.Equal(p.ELR, other.ELR) && slices.Equal(p.LastKnownELR, other.LastKnownELR)
}

// equal reports whether two registrations are the same.
func (b *Broker) equal(other *Broker) bool {
	if b == other || b == nil || other == nil {
		return b == other
	}
	return b.ID == other.ID && b.Epoch == other.Epoch && b.IncarnationID == other.IncarnationID &&
		b.Fenced == other.Fenced && b.InControlledShutdown == other.InControlledShutdown && b.migratingZk == other.migratingZk &&
		slices.Equal(b.Endpoints, other.Endpoints) && slices.Equal(b.Features, other.Features) && reflect.DeepEqual(b.Rack, other.Rack) &&
		slices.Equal(b.LogDirs, other.LogDirs) && slices.Equal(b.CordonedLogDirs, other.CordonedLogDirs)
}
