package replica

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A Topic is the partitions of one topic that this broker hosts. Another life of the topic
// under the same name is another Topic.
type Topic struct {
	Name  string
	ID    uuid.UUID
	Stats TopicStats

	manager    *Manager
	partitions atomic.Pointer[[]*Partition] // by number; nil for those that are elsewhere
}

// Partition returns a hosted partition, or nil.
func (t *Topic) Partition(i int32) *Partition {
	list := *t.partitions.Load()
	if i < 0 || int(i) >= len(list) {
		return nil
	}
	return list[i]
}

// topicShards is how many maps the topics are spread over. A change copies one of them.
const topicShards = 256

// topics finds Topics by name and by id. Readers take no lock; a map that was stored never
// changes.
type topics struct {
	seed   maphash.Seed
	byName [topicShards]atomic.Pointer[map[string]*Topic]
	byID   [topicShards]atomic.Pointer[map[uuid.UUID]*Topic]

	mu sync.Mutex // held by whoever changes a map
}

func (ts *topics) init() { ts.seed = maphash.MakeSeed() }

// find looks a topic up by name. It does not keep name.
func (ts *topics) find(name []byte) *Topic {
	if m := ts.byName[maphash.Bytes(ts.seed, name)%topicShards].Load(); m != nil {
		return (*m)[string(name)]
	}
	return nil
}

// idShard spreads by bytes that are random in ids of version 4.
func idShard(id uuid.UUID) int { return int(id[15]) }

func (ts *topics) findID(id uuid.UUID) *Topic {
	if m := ts.byID[idShard(id)].Load(); m != nil {
		return (*m)[id]
	}
	return nil
}

func newTopic(name string, id uuid.UUID, m *Manager) *Topic {
	t := &Topic{Name: name, ID: id, manager: m}
	t.partitions.Store(&[]*Partition{})
	return t
}

// set adds or replaces t.
func (ts *topics) set(t *Topic) {
	ts.change(t, func(names map[string]*Topic, ids map[uuid.UUID]*Topic) {
		if old := names[t.Name]; old != nil && old.ID != t.ID {
			panic("BUG: topic " + t.Name + " is replaced by another of its name")
		}
		names[t.Name], ids[t.ID] = t, t
	})
}

// remove forgets t.
func (ts *topics) remove(t *Topic) {
	ts.change(t, func(names map[string]*Topic, ids map[uuid.UUID]*Topic) {
		delete(names, t.Name)
		delete(ids, t.ID)
	})
}

func (ts *topics) change(t *Topic, f func(names map[string]*Topic, ids map[uuid.UUID]*Topic)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	names := &ts.byName[maphash.String(ts.seed, t.Name)%topicShards]
	ids := &ts.byID[idShard(t.ID)]
	newNames, newIDs := copyOf(names.Load()), copyOf(ids.Load())
	f(newNames, newIDs)
	names.Store(&newNames)
	ids.Store(&newIDs)
}

func copyOf[K comparable](m *map[K]*Topic) map[K]*Topic {
	if m == nil || len(*m) == 0 {
		return map[K]*Topic{}
	}
	return maps.Clone(*m)
}

// all yields the topics, in no order.
func (ts *topics) all(yield func(*Topic) bool) {
	for i := range ts.byName {
		if m := ts.byName[i].Load(); m != nil {
			for _, t := range *m {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// copyPartitions returns a copy of the list with room for n partitions, to change and store.
func (t *Topic) copyPartitions(n int) []*Partition {
	old := *t.partitions.Load()
	list := make([]*Partition, max(len(old), n))
	copy(list, old)
	return list
}

func (t *Topic) partition(i int32) topic.Partition {
	return topic.Partition{Topic: t.Name, Partition: i}
}
