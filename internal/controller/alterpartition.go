package controller

import (
	"context"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// An ISRChange is what a leader asks for: other replicas in sync.
type ISRChange struct {
	TopicID        uuid.UUID
	Partition      int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
	BrokerEpochs   []int64 // of the members of ISR, the life that fetched; anyLife: whatever it is
	Recovering     bool
}

// anyLife in place of a broker epoch is that of a leader which does not know it.
const anyLife = -1

// An ISRState is what a partition has after its change, or why it was not changed.
type ISRState struct {
	Err            error
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
	Recovering     bool
}

// AlterPartition changes which replicas are in sync, each partition for itself. An error is of the whole request.
// (KIP-497, KIP-841 and KIP-903.)
func (c *Controller) AlterPartition(ctx context.Context, broker int32, brokerEpoch int64, changes []ISRChange) ([]ISRState, error) {
	return decide(ctx, c, false, func(img *metadata.Image, _ given) ([]metadata.Record, []ISRState, error) {
		return alterPartitions(img, broker, brokerEpoch, changes)
	})
}

func alterPartitions(img *metadata.Image, broker int32, brokerEpoch int64, changes []ISRChange) (records []metadata.Record, states []ISRState, err error) {
	if err := checkBrokerEpoch(img.Broker(broker), broker, brokerEpoch); err != nil {
		return nil, nil, err
	}
	states = make([]ISRState, len(changes))
	changed := map[*metadata.Partition]bool{}
	for i := range changes {
		c := &changes[i]
		p, err := checkISRChange(img, broker, c)
		if err == nil && changed[p] {
			err = refuse(InvalidUpdateVersion, "the request changes partition %d twice", c.Partition)
		}
		if err != nil {
			states[i].Err = err
			continue
		}
		states[i] = ISRState{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, ISR: c.ISR, Recovering: c.Recovering}
		if slices.Equal(c.ISR, p.ISR) && c.Recovering == recovering(p) {
			continue
		}
		changed[p] = true
		states[i].PartitionEpoch++
		records = append(records, isrRecord(p, c))
	}
	return records, states, nil
}

func recovering(p *metadata.Partition) bool { return p.RecoveryState == metadata.Recovering }

// isrRecord is the record of a change that was checked. Who is in sync again is in no list of those that once were.
func isrRecord(p *metadata.Partition, c *ISRChange) *metadata.PartitionChangeRecord {
	r := metadata.NewPartitionChangeRecord()
	r.TopicID, r.PartitionID, r.ISR = c.TopicID, c.Partition, c.ISR
	if c.Recovering != recovering(p) {
		r.LeaderRecoveryState = metadata.Recovered
	}
	if left := slices.DeleteFunc(slices.Clone(p.ELR), func(id int32) bool { return slices.Contains(c.ISR, id) }); len(left) != len(p.ELR) {
		r.EligibleLeaderReplicas = left
	}
	return r
}

// checkISRChange returns the partition, or why it is not changed, in Kafka's order.
func checkISRChange(img *metadata.Image, broker int32, c *ISRChange) (*metadata.Partition, error) {
	t := img.TopicByID(c.TopicID)
	switch {
	case t == nil:
		return nil, refuse(UnknownTopicID, "no topic has the id %s", c.TopicID)
	case c.Partition < 0 || int(c.Partition) >= len(t.Partitions):
		return nil, refuse(UnknownTopicOrPartition, "topic %s has no partition %d", t.Name, c.Partition)
	}
	p := t.Partitions[c.Partition]
	switch {
	case c.LeaderEpoch > p.LeaderEpoch || c.PartitionEpoch > p.PartitionEpoch:
		return nil, refuse(NotController, "the leader knows of a newer state of %s-%d: this controller is an old one", t.Name, c.Partition)
	case c.LeaderEpoch < p.LeaderEpoch:
		return nil, refuse(FencedLeaderEpoch, "the leader epoch of %s-%d is %d", t.Name, c.Partition, p.LeaderEpoch)
	case p.Leader != broker:
		return nil, refuse(InvalidRequest, "%s-%d is led by %d", t.Name, c.Partition, p.Leader)
	case c.PartitionEpoch < p.PartitionEpoch:
		return nil, refuse(InvalidUpdateVersion, "the partition epoch of %s-%d is %d", t.Name, c.Partition, p.PartitionEpoch)
	case !slices.Contains(c.ISR, broker) || hasTwice(c.ISR) || slices.ContainsFunc(c.ISR, func(id int32) bool { return !slices.Contains(p.Replicas, id) }):
		return nil, refuse(InvalidRequest, "in sync are to be %v, of the replicas %v and with the leader, each once", c.ISR, p.Replicas)
	case c.Recovering && len(c.ISR) > 1:
		return nil, refuse(InvalidRequest, "while its leader recovers nobody else can be in sync with %s-%d", t.Name, c.Partition)
	case c.Recovering && !recovering(p):
		return nil, refuse(InvalidRequest, "the leader of %s-%d has recovered", t.Name, c.Partition)
	}
	return p, checkEligible(img, p, c)
}

// checkEligible refuses members that a leader counted in whose life is over, or who are on their way out of service.
func checkEligible(img *metadata.Image, p *metadata.Partition, c *ISRChange) error {
	for i, id := range c.ISR {
		b := img.Broker(id)
		switch {
		case !b.Active(), !img.Online(p, id):
			return refuse(IneligibleReplica, "broker %d is not in service", id)
		case i < len(c.BrokerEpochs) && c.BrokerEpochs[i] != anyLife && c.BrokerEpochs[i] != b.Epoch:
			return refuse(IneligibleReplica, "broker %d is in its life %d by now, the change is for %d", id, b.Epoch, c.BrokerEpochs[i])
		}
	}
	return nil
}

func hasTwice(ids []int32) bool {
	sorted := slices.Sorted(slices.Values(ids))
	return len(slices.Compact(sorted)) != len(ids)
}
