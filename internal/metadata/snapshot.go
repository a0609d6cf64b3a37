package metadata

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Records returns the records that make this image out of an empty one, in Kafka's order
// (class ImageWriter): features first, so that a reader knows the level of what follows. Equal
// images give equal records.
func (i *Image) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, part := range []iter.Seq[Record]{
			i.featureRecords(), i.clusterRecords(), i.topicRecords(), i.configRecords(), i.quotaRecords(),
			i.producerRecords(), i.securityRecords(),
		} {
			for r := range part {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (i *Image) featureRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		names := slices.SortedFunc(maps.Keys(i.features), func(a, b string) int {
			return cmp.Or(-compareBool(a == MetadataVersion, b == MetadataVersion), strings.Compare(a, b))
		})
		for _, name := range names {
			if !yield(&FeatureLevelRecord{Name: name, FeatureLevel: i.features[name]}) {
				return
			}
		}
		if i.zkMigration != nil {
			yield(i.zkMigration)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (i *Image) clusterRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, id := range slices.Sorted(maps.Keys(i.brokers)) {
			if !yield(i.brokers[id].record()) {
				return
			}
		}
		for _, id := range slices.Sorted(maps.Keys(i.controllers)) {
			if !yield(i.controllers[id]) {
				return
			}
		}
	}
}

func (b *Broker) record() *RegisterBrokerRecord {
	return &RegisterBrokerRecord{
		BrokerID: b.ID, BrokerEpoch: b.Epoch, IncarnationID: b.IncarnationID, EndPoints: b.Endpoints, Features: b.Features, Rack: b.Rack,
		Fenced: b.Fenced, InControlledShutdown: b.InControlledShutdown, LogDirs: b.LogDirs, CordonedLogDirs: b.CordonedLogDirs,
		IsMigratingZkBroker: b.migratingZk,
	}
}

func (i *Image) topicRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, name := range i.TopicNames() {
			t := i.Topic(name)
			if !yield(&TopicRecord{Name: t.Name, TopicID: t.ID}) {
				return
			}
			for n, p := range t.Partitions {
				if !yield(p.record(t.ID, int32(n))) {
					return
				}
			}
		}
	}
}

func (p *Partition) record(id uuid.UUID, n int32) *PartitionRecord {
	return &PartitionRecord{
		TopicID: id, PartitionID: n,
		Replicas: p.Replicas, Directories: p.Directories, ISR: p.ISR, RemovingReplicas: p.RemovingReplicas, AddingReplicas: p.AddingReplicas,
		EligibleLeaderReplicas: nonEmpty(p.ELR), LastKnownELR: nonEmpty(p.LastKnownELR),
		Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, LeaderRecoveryState: p.RecoveryState,
	}
}

// nonEmpty makes an empty list null, which is how a PartitionRecord leaves it out.
func nonEmpty(list []int32) []int32 {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (i *Image) configRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var resources []ConfigResource
		for r := range i.configs.all() {
			resources = append(resources, r)
		}
		for _, r := range compactResources(resources) {
			values := i.Configs(r)
			for _, name := range slices.Sorted(maps.Keys(values)) {
				value := values[name]
				if !yield(&ConfigRecord{ResourceType: r.Type, ResourceName: r.Name, Name: name, Value: &value}) {
					return
				}
			}
		}
	}
}

func (i *Image) quotaRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, key := range slices.Sorted(maps.Keys(i.clientQuotas)) {
			q := i.clientQuotas[key]
			for _, limit := range slices.Sorted(maps.Keys(q.Limits)) {
				if !yield(&ClientQuotaRecord{Entity: q.Entity, Key: limit, Value: q.Limits[limit]}) {
					return
				}
			}
		}
	}
}

func (i *Image) producerRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if i.NextProducerID > 0 {
			yield(&ProducerIdsRecord{BrokerID: -1, BrokerEpoch: -1, NextProducerID: i.NextProducerID})
		}
	}
}

func (i *Image) securityRecords() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(i.acls), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
			if !yield(i.acls[id]) {
				return
			}
		}
		byUser := func(a, b ScramKey) int {
			return cmp.Or(strings.Compare(a.User, b.User), cmp.Compare(a.Mechanism, b.Mechanism))
		}
		for _, key := range slices.SortedFunc(maps.Keys(i.scram), byUser) {
			if !yield(i.scram[key]) {
				return
			}
		}
		for _, id := range slices.Sorted(maps.Keys(i.tokens)) {
			if !yield(i.tokens[id]) {
				return
			}
		}
	}
}
