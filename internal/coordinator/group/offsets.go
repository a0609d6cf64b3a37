package group

import (
	"iter"
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// noEpoch and noExpiry stand for a leader epoch or expiry time that was not given.
const (
	noEpoch  = -1
	noExpiry = -1
)

// An offset is a committed offset: where a group goes on reading a partition.
type offset struct {
	offset      int64
	leaderEpoch int32 // of the last record read, or noEpoch
	metadata    string
	topicID     uuid.UUID // zero if not known
	committedMs int64
	expiresMs   int64 // chosen by an old client, or noExpiry
	position    int64 // of its record in __consumer_offsets: the later one wins
}

// offsets are by topic and partition. A topic without offsets has no entry.
type offsets map[string]map[int32]*offset

func (o offsets) get(topic string, partition int32) *offset { return o[topic][partition] }

func (o offsets) put(topic string, partition int32, v *offset) {
	if o[topic] == nil {
		o[topic] = make(map[int32]*offset)
	}
	o[topic][partition] = v
}

func (o offsets) remove(topic string, partition int32) {
	delete(o[topic], partition)
	if len(o[topic]) == 0 {
		delete(o, topic)
	}
}

// count is that of all partitions.
func (o offsets) count() (n int) {
	for _, partitions := range o {
		n += len(partitions)
	}
	return n
}

// merge takes over what comes later in __consumer_offsets.
func (o offsets) merge(others offsets) {
	for topic, partitions := range others {
		for p, v := range partitions {
			if have := o.get(topic, p); have == nil || have.position < v.position {
				o.put(topic, p, v)
			}
		}
	}
}

// sortedTopics yields topics and their partitions, both in order.
func (o offsets) sortedTopics() iter.Seq2[string, []int32] {
	return func(yield func(string, []int32) bool) {
		for _, topic := range slices.Sorted(maps.Keys(o)) {
			if !yield(topic, slices.Sorted(maps.Keys(o[topic]))) {
				return
			}
		}
	}
}

// A transaction holds the offsets that a producer has committed in the transaction it has
// open, by group id.
type transaction map[string]offsets

// putPending keeps an offset until the producer's marker.
func (s *Shard) putPending(producerID int64, g *group, topic string, partition int32, v *offset) {
	t := s.transactions[producerID]
	if t == nil {
		t = make(transaction)
		s.transactions[producerID] = t
	}
	if t[g.id] == nil {
		t[g.id] = make(offsets)
	}
	if t[g.id].get(topic, partition) == nil {
		g.pending++
	}
	t[g.id].put(topic, partition, v)
}

// isPending reports whether an open transaction has an offset for the partition.
func (s *Shard) isPending(g *group, topic string, partition int32) bool {
	if g.pending == 0 {
		return false
	}
	for _, t := range s.transactions {
		if t[g.id].get(topic, partition) != nil {
			return true
		}
	}
	return false
}

// pendingOf yields the partitions of a group that open transactions have offsets for. A
// partition may come more than once.
func (s *Shard) pendingOf(g *group) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		if g.pending == 0 {
			return
		}
		for _, t := range s.transactions {
			for topic, partitions := range t[g.id].sortedTopics() {
				for _, p := range partitions {
					if !yield(topic, p) {
						return
					}
				}
			}
		}
	}
}

// removePending drops the pending offsets of one partition: a tombstone means them, too.
func (s *Shard) removePending(g *group, topic string, partition int32) {
	if g.pending == 0 {
		return
	}
	for producerID, t := range s.transactions {
		if t[g.id].get(topic, partition) == nil {
			continue
		}
		t[g.id].remove(topic, partition)
		g.pending--
		s.tidy(producerID, g.id)
	}
}

// dropPending drops all pending offsets of a group.
func (s *Shard) dropPending(g *group) {
	for producerID, t := range s.transactions {
		delete(t, g.id)
		s.tidy(producerID, g.id)
	}
	g.pending = 0
}

// tidy removes the empty rest of a transaction.
func (s *Shard) tidy(producerID int64, groupID string) {
	t := s.transactions[producerID]
	if len(t[groupID]) == 0 {
		delete(t, groupID)
	}
	if len(t) == 0 {
		delete(s.transactions, producerID)
	}
}

// EndTransaction makes a producer's pending offsets current, or drops them.
func (s *Shard) EndTransaction(producerID int64, commit bool) {
	for groupID, pending := range s.transactions[producerID] {
		g := s.groups[groupID]
		g.pending -= pending.count()
		if commit {
			g.offsets.merge(pending)
		} else {
			s.forgetIfNothing(g)
		}
	}
	delete(s.transactions, producerID)
}
