package controller

import (
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// alter asks for other replicas in sync as a partition's leader does; change spoils what it asks.
func (f *fleet) alter(name string, n int, isr []int32, change func(*ISRChange)) ISRState {
	f.t.Helper()
	topic := f.img.Topic(name)
	p := topic.Partitions[n]
	c := ISRChange{TopicID: topic.ID, Partition: int32(n), LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, ISR: isr}
	for _, id := range isr {
		epoch := int64(anyLife)
		if b := f.img.Broker(id); b != nil {
			epoch = b.Epoch
		}
		c.BrokerEpochs = append(c.BrokerEpochs, epoch)
	}
	change(&c)
	b := f.img.Broker(max(p.Leader, 1))
	records, states, err := alterPartitions(f.img, b.ID, b.Epoch, []ISRChange{c})
	if err := f.apply(records, err); err != nil {
		f.t.Fatal(err)
	}
	return states[0]
}

func asked(*ISRChange) {}

// Every reason not to change who is in sync, in the order in which Kafka finds it; the partition stays as it is.
func TestAlterPartitionRefuses(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2, 3, 4)
	f.create("t", 1, 3)
	p := f.img.Topic("t").Partitions[0]
	outsider := int32(10) - p.Replicas[0] - p.Replicas[1] - p.Replicas[2]
	var others []int32
	for _, id := range p.Replicas {
		if id != p.Leader {
			others = append(others, id)
		}
	}
	all := []int32{p.Leader, others[0], others[1]}
	r := func(what string, want Kind, isr []int32, change func(*ISRChange)) {
		t.Helper()
		before := f.img.Offset
		if s := f.alter("t", 0, isr, change); KindOf(s.Err) != want || s.ISR != nil || f.img.Offset != before {
			t.Errorf("%s: %+v, want %s", what, s, want)
		}
	}
	r("unknown topic", UnknownTopicID, all, func(c *ISRChange) { c.TopicID = uuid.UUID{5: 5} })
	r("unknown partition", UnknownTopicOrPartition, all, func(c *ISRChange) { c.Partition = 1 })
	r("negative partition", UnknownTopicOrPartition, all, func(c *ISRChange) { c.Partition = -1 })
	r("leader epoch of the future", NotController, all, func(c *ISRChange) { c.LeaderEpoch++ })
	r("partition epoch of the future", NotController, all, func(c *ISRChange) { c.PartitionEpoch++ })
	r("old leader epoch", FencedLeaderEpoch, all, func(c *ISRChange) { c.LeaderEpoch--; c.PartitionEpoch-- })
	r("old partition epoch", InvalidUpdateVersion, all, func(c *ISRChange) { c.PartitionEpoch-- })
	r("without the leader", InvalidRequest, others, asked)
	r("nobody", InvalidRequest, nil, asked)
	r("no replica", InvalidRequest, []int32{p.Leader, outsider}, asked)
	r("twice", InvalidRequest, []int32{p.Leader, others[0], others[0]}, asked)
	r("recovering with others", InvalidRequest, all[:2], func(c *ISRChange) { c.Recovering = true })
	r("recovering again", InvalidRequest, all[:1], func(c *ISRChange) { c.Recovering = true })
	r("another life", IneligibleReplica, all, func(c *ISRChange) { c.BrokerEpochs[1]++ })

	b := f.img.Broker(others[0])
	if _, _, err := alterPartitions(f.img, b.ID, b.Epoch+1, nil); KindOf(err) != StaleBrokerEpoch {
		t.Errorf("an earlier life asks: %v", err)
	}
	c := ISRChange{TopicID: f.img.Topic("t").ID, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, ISR: all}
	if _, states, err := alterPartitions(f.img, b.ID, b.Epoch, []ISRChange{c}); err != nil || KindOf(states[0].Err) != InvalidRequest {
		t.Errorf("a follower asks: %+v, %v", states, err)
	}
	f.beat(others[1], func(h *Heartbeat) { h.WantFence = true })
	r("out of service", IneligibleReplica, all, asked)
}

// Who has left the replicas in sync joins again by its leader's request, and the same request again changes nothing.
func TestAlterPartition(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2, 3)
	f.create("t", 1, 3)
	p := f.img.Topic("t").Partitions[0]
	all := slices.Clone(p.Replicas)
	s := f.alter("t", 0, all[:1], asked)
	if got := f.img.Topic("t").Partitions[0]; s.Err != nil || !slices.Equal(got.ISR, all[:1]) || s.PartitionEpoch != p.PartitionEpoch+1 || s.LeaderEpoch != got.LeaderEpoch || got.PartitionEpoch != s.PartitionEpoch {
		t.Errorf("shrunk: %+v, the partition is %+v", s, got)
	}
	again := f.alter("t", 0, all[:1], asked)
	if again.Err != nil || again.PartitionEpoch != s.PartitionEpoch {
		t.Errorf("the same: %+v", again)
	}
	if s := f.alter("t", 0, all, func(c *ISRChange) { c.BrokerEpochs = nil }); s.Err != nil || !slices.Equal(f.img.Topic("t").Partitions[0].ISR, all) { // version 2
		t.Errorf("grown: %+v", s)
	}
	f.beat(all[0], func(h *Heartbeat) { h.WantFence = true })
	if got := f.img.Topic("t").Partitions[0]; got.Leader != all[1] || slices.Contains(got.ISR, all[0]) {
		t.Errorf("after the leader left: %+v", got)
	}
}

// After an unclean election the leader says itself when it has recovered.
func TestAlterPartitionRecovers(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2)
	f.create("t", 1, 2)
	topic := f.img.Topic("t")
	unclean := metadata.NewPartitionChangeRecord()
	unclean.TopicID, unclean.PartitionID, unclean.Leader, unclean.ISR, unclean.LeaderRecoveryState = topic.ID, 0, topic.Partitions[0].Leader, []int32{topic.Partitions[0].Leader}, metadata.Recovering
	if err := f.apply([]metadata.Record{unclean}, nil); err != nil {
		t.Fatal(err)
	}
	leader := topic.Partitions[0].Leader
	if s := f.alter("t", 0, []int32{leader}, func(c *ISRChange) { c.Recovering = true }); s.Err != nil || !s.Recovering {
		t.Errorf("still recovering: %+v", s)
	}
	if s := f.alter("t", 0, []int32{leader}, asked); s.Err != nil || f.img.Topic("t").Partitions[0].RecoveryState != metadata.Recovered {
		t.Errorf("recovered: %+v", s)
	}
}

// One request may change many partitions, each for itself, and each once.
func TestAlterPartitionsTogether(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2)
	f.create("t", 4, 2)
	topic := f.img.Topic("t")
	b := f.img.Broker(1)
	var changes []ISRChange
	for n, p := range topic.Partitions {
		changes = append(changes, ISRChange{TopicID: topic.ID, Partition: int32(n), LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, ISR: []int32{1}})
	}
	changes = append(changes, changes...)
	records, states, err := alterPartitions(f.img, 1, b.Epoch, changes)
	if err := f.apply(records, err); err != nil {
		t.Fatal(err)
	}
	for i, s := range states {
		want := Kind("")
		switch n := i % 4; {
		case topic.Partitions[n].Leader != 1:
			want = InvalidRequest
		case i >= 4:
			want = InvalidUpdateVersion
		}
		if KindOf(s.Err) != want {
			t.Errorf("change %d: %v, want %q", i, s.Err, want)
		}
	}
	if len(records) == 0 || len(records) == 4 {
		t.Fatalf("%d of 4 partitions were changed", len(records))
	}
}
