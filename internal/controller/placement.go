package controller

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A placer puts partitions on the brokers of one Image. Replicas of consecutive partitions go
// round the racks, and round the brokers of each rack, so that leaders and load spread
// evenly; active brokers come before fenced ones, and only an active broker leads. Brokers whose
// log directories are all cordoned get none. (The purpose of Kafka class StripedReplicaPlacer; its
// order is its own.)
type placer struct {
	img    *metadata.Image
	active []int32 // rack by rack in turn
	fenced []int32
	next   int // where the next partition begins
}

func newPlacer(img *metadata.Image, random *rand.Rand) *placer {
	p := &placer{img: img}
	for racks := takersByRack(img); len(racks) > 0; {
		for i, brokers := range racks {
			if b := brokers[0]; b.Active() {
				p.active = append(p.active, b.ID)
			} else {
				p.fenced = append(p.fenced, b.ID)
			}
			racks[i] = brokers[1:]
		}
		racks = slices.DeleteFunc(racks, func(brokers []*metadata.Broker) bool { return len(brokers) == 0 })
	}
	if len(p.active) > 0 {
		p.next = random.IntN(len(p.active))
	}
	return p
}

// takersByRack lists the brokers of each rack that take new replicas.
func takersByRack(img *metadata.Image) [][]*metadata.Broker {
	byRack := map[string][]*metadata.Broker{}
	for _, b := range img.Brokers() {
		if b.Cordoned() {
			continue
		}
		rack := ""
		if b.Rack != nil {
			rack = *b.Rack
		}
		byRack[rack] = append(byRack[rack], b)
	}
	list := make([][]*metadata.Broker, 0, len(byRack))
	for _, rack := range slices.Sorted(maps.Keys(byRack)) {
		list = append(list, byRack[rack])
	}
	return list
}

// choose returns the brokers of partitions [first, first+count).
func (p *placer) choose(first, count, factor int) ([][]int32, error) {
	switch all, brokers := len(p.img.Brokers()), len(p.active)+len(p.fenced); {
	case factor > all:
		return nil, refuse(InvalidReplicationFactor, "replication factor %d: want at most the number of registered brokers, %d", factor, all)
	case factor > brokers:
		return nil, refuse(InvalidReplicationFactor, "replication factor %d: of %d brokers %d have a log directory that is not cordoned", factor, all, brokers)
	case len(p.active) == 0:
		return nil, refuse(InvalidReplicationFactor, "every registered broker is fenced: none can lead a new partition")
	}
	assignments := make([][]int32, count)
	for n := range assignments {
		assignments[n] = p.stripe(first+n, factor)
	}
	p.next += count
	return assignments, nil
}

// stripe takes active brokers from a starting point on, then fenced ones. After each round
// over all brokers the followers shift by one, so that two brokers do not always pair up.
func (p *placer) stripe(n, factor int) []int32 {
	replicas := make([]int32, 0, factor)
	start, size := p.next+n, len(p.active)
	replicas = append(replicas, p.active[start%size])
	shift := start / size
	for k := 0; len(replicas) < min(factor, size); k++ {
		replicas = append(replicas, p.active[(start+1+(shift+k)%(size-1))%size])
	}
	for k := 0; len(replicas) < factor; k++ {
		replicas = append(replicas, p.fenced[(n+k)%len(p.fenced)])
	}
	return replicas
}

// checkManual checks an assignment that a client gave.
func (p *placer) checkManual(brokers []int32, factor int) error {
	if len(brokers) == 0 {
		return refuse(InvalidReplicaAssignment, "the assignment has a partition without replicas")
	}
	sorted := slices.Sorted(slices.Values(brokers))
	for i, id := range sorted {
		switch b := p.img.Broker(id); {
		case b == nil:
			return refuse(InvalidReplicaAssignment, "the assignment names broker %d, which is not registered", id)
		case b.Cordoned():
			return refuse(InvalidReplicaAssignment, "the assignment names broker %d, whose log directories are all cordoned", id)
		}
		if i > 0 && sorted[i-1] == id {
			return refuse(InvalidReplicaAssignment, "the assignment names broker %d twice for one partition", id)
		}
	}
	if len(brokers) != factor {
		return refuse(InvalidReplicaAssignment, "the assignment has a partition with %d replicas and others with %d", len(brokers), factor)
	}
	return nil
}

// partition is the record of a new partition: its active replicas are in sync, as there is
// nothing to copy, and the first of them leads.
func (p *placer) partition(id uuid.UUID, n int32, brokers []int32) (*metadata.PartitionRecord, error) {
	isr := make([]int32, 0, len(brokers))
	dirs := make([]uuid.UUID, len(brokers))
	for i, broker := range brokers {
		b := p.img.Broker(broker)
		if b.Active() {
			isr = append(isr, broker)
		}
		dirs[i] = onlyDirectory(b)
	}
	if len(isr) == 0 {
		return nil, refuse(InvalidReplicaAssignment, "partition %d: none of the assigned brokers is active", n)
	}
	return &metadata.PartitionRecord{
		TopicID: id, PartitionID: n, Replicas: brokers, ISR: isr, Leader: isr[0], Directories: dirs,
	}, nil
}

// onlyDirectory names the log directory of a broker that has one; with several the broker
// chooses.
func onlyDirectory(b *metadata.Broker) uuid.UUID {
	if len(b.LogDirs) == 1 {
		return b.LogDirs[0]
	}
	return uuid.Unassigned
}
