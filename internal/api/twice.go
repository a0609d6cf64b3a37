package api

import (
	"hash/maphash"
	"slices"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Kafka puts the partitions of most requests into a map: one that is there twice is worked on
// and answered once, and what was said last counts.

// A twiceFinder finds out whether a request has a partition twice, in time and memory that the
// requests of every client can pay. It compares hashes, so that its yes is to be looked into.
type twiceFinder struct {
	topic uint64
	keys  []uint64
}

var twiceSeed = maphash.MakeSeed()

// inTopic says what topic the partitions are of that follow: its name, or its id if that is nil.
func (f *twiceFinder) inTopic(name []byte, id uuid.UUID) {
	if name == nil {
		name = id[:]
	}
	f.topic = maphash.Bytes(twiceSeed, name)
}

func (f *twiceFinder) add(partition int32) {
	f.keys = append(f.keys, f.topic+uint64(uint32(partition))*0x9e3779b97f4a7c15)
}

// found reports whether a partition was added twice. It changes the order of what was added.
func (f *twiceFinder) found() bool {
	if len(f.keys) < 2 {
		return false
	}
	slices.Sort(f.keys)
	for i, key := range f.keys[1:] {
		if key == f.keys[i] {
			return true
		}
	}
	return false
}

// twicePooledMax bounds the memory that a pooled twiceFinder keeps.
const twicePooledMax = 4096

// emptied returns f with no partitions, and with its memory unless that is large.
func (f *twiceFinder) emptied() twiceFinder {
	if cap(f.keys) > twicePooledMax {
		return twiceFinder{}
	}
	return twiceFinder{keys: f.keys[:0]}
}

// A merged request has each topic and each partition once, where it was first.
type merged[P any] struct {
	topics []mergedTopic[P]
	at     map[string]int
	parts  map[topic.Partition]int
}

type mergedTopic[P any] struct {
	name       string
	partitions []mergedPartition[P]
}

type mergedPartition[P any] struct {
	index int32
	said  P // the last time
	times int
}

// add notes what a request says of a partition.
func (m *merged[P]) add(name string, index int32, said P) {
	if m.at == nil {
		m.at, m.parts = map[string]int{}, map[topic.Partition]int{}
	}
	at, ok := m.at[name]
	if !ok {
		at = len(m.topics)
		m.at[name] = at
		m.topics = append(m.topics, mergedTopic[P]{name: name})
	}
	t := &m.topics[at]
	key := topic.Partition{Topic: name, Partition: index}
	i, ok := m.parts[key]
	if !ok {
		i = len(t.partitions)
		m.parts[key] = i
		t.partitions = append(t.partitions, mergedPartition[P]{index: index})
	}
	t.partitions[i].said = said
	t.partitions[i].times++
}
