package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// The types that a group is listed with.
const (
	typeClassic  = "classic"
	typeConsumer = "consumer"
	typeShare    = "share"
	typeStreams  = "streams"
)

// modernTypes says what a group is that has records with a key of this type.
func modernType(k keyType) string {
	switch k {
	case keyConsumerEpoch, keyConsumerPartitions, keyConsumerMember, keyTargetEpoch,
		keyTargetMember, keyConsumerCurrent, keyConsumerRegex:
		return typeConsumer
	case 9, 10, 11, 12, 13, 14, 15:
		return typeShare
	case 17, 18, 19, 20, 21, 22, 23:
		return typeStreams
	}
	return ""
}

// deleteOrder is the order in which Kafka deletes the records of a group: what refers to a
// member before the member, what belongs to the group before its epoch.
func deleteOrder(k keyType) int {
	order := []keyType{
		keyConsumerCurrent, 14, 22, keyTargetMember, 13, 21, keyTargetEpoch, 12, 20,
		keyConsumerMember, 10, 19, keyConsumerPartitions, keyConsumerRegex, 15, 9, 18, 23, keyConsumerEpoch, 11, 17,
	}
	return slices.Index(order, k)
}

// replayModern remembers, or forgets, a record of a newer protocol.
func (s *Shard) replayModern(key []byte, exists bool) error {
	b := kbin.Reader{Src: key}
	b.Int16()
	id := b.String()
	if !b.Ok() {
		return b.Complete()
	}
	g := s.groups[id]
	switch {
	case exists:
		g = s.groupFor(id)
		if g.modernKeys == nil {
			g.modernKeys = make(map[string]bool)
		}
		g.modernKeys[string(key)] = true
	case g != nil:
		delete(g.modernKeys, string(key))
		s.forgetIfNothing(g)
	}
	return nil
}

// kind is the group's type for listings. The keys of one group are of one type.
func (g *group) kind() string {
	for key := range g.modernKeys {
		k, _ := parseKeyType([]byte(key))
		return modernType(k)
	}
	return typeClassic
}

// isForeign reports whether the group is of a protocol that classic members cannot take
// over.
func (g *group) isForeign() bool {
	kind := g.kind()
	return kind == typeShare || kind == typeStreams
}

// tombstones deletes the records of the group itself.
func (g *group) tombstones() []coordinator.Record {
	if len(g.modernKeys) > 0 {
		return g.modernTombstones()
	}
	return []coordinator.Record{{Key: groupKey(g.id)}}
}

// modernTombstones deletes all records of a newer protocol.
func (g *group) modernTombstones() []coordinator.Record {
	keys := slices.SortedFunc(maps.Keys(g.modernKeys), func(a, b string) int {
		ka, _ := parseKeyType([]byte(a))
		kb, _ := parseKeyType([]byte(b))
		return cmp.Or(cmp.Compare(deleteOrder(ka), deleteOrder(kb)), cmp.Compare(a, b))
	})
	var records []coordinator.Record
	for _, key := range keys {
		records = append(records, coordinator.Record{Key: []byte(key)})
	}
	return records
}
