package api

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A judge answers what leaders ask with what it is told to, and notes what that was.
type judge struct {
	decider
	asked  []controller.ISRChange
	epoch  int64
	states []controller.ISRState
	err    error
}

func (j *judge) AlterPartition(_ context.Context, _ int32, epoch int64, changes []controller.ISRChange) ([]controller.ISRState, error) {
	j.asked, j.epoch = changes, epoch
	return j.states, j.err
}

// What a leader asks of another node's controller comes over as it was asked, in the versions with and without the lives
// of the members, and the answers come back to their partitions.
func TestAlterPartition(t *testing.T) {
	s := imageServer(t, "", configuredCluster()...)
	j := &judge{}
	d := s.Deps
	d.Partitions = j
	to := &way{t: t, to: NewOfControllers(d)}
	c := &ClusterController{Active: to, NodeID: 1, BrokerEpoch: func() int64 { return 77 }}
	a, b := uuid.UUID{0: 1}, uuid.UUID{0: 2}
	request := func(id uuid.UUID, index int32, isr ...int32) replica.ISRRequest {
		r := replica.ISRRequest{PartitionID: replica.PartitionID{TopicID: id, Index: index}, ISRChange: &replica.ISRChange{ISR: isr, LeaderEpoch: 3 + index, PartitionEpoch: 9}}
		for _, id := range isr {
			r.BrokerEpochs = append(r.BrokerEpochs, int64(100+id))
		}
		return r
	}
	changes := []replica.ISRRequest{request(a, 0, 1, 2), request(b, 4, 1), request(a, 2, 1, 2, 3)}
	j.states = []controller.ISRState{
		{Leader: 1, LeaderEpoch: 3, PartitionEpoch: 10, ISR: []int32{1, 2}},
		{Err: &controller.Error{Kind: controller.InvalidUpdateVersion}},
		{Err: &controller.Error{Kind: controller.NotController}},
	}
	answers, err := c.AlterPartition(t.Context(), changes)
	if err != nil || j.epoch != 77 || len(j.asked) != 3 {
		t.Fatalf("%+v, %v; asked was %+v in epoch %d", answers, err, j.asked, j.epoch)
	}
	want := controller.ISRChange{TopicID: a, Partition: 2, LeaderEpoch: 5, PartitionEpoch: 9, ISR: []int32{1, 2, 3}, BrokerEpochs: []int64{101, 102, 103}}
	if diff := cmp.Diff(want, j.asked[2]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(replica.ISRAnswer{ISR: []int32{1, 2}, LeaderEpoch: 3, PartitionEpoch: 10}, answers[0]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !errors.Is(answers[1].Err, replica.ErrInvalidUpdateVersion) || controller.KindOf(answers[2].Err) != controller.NotController {
		t.Errorf("refusals: %v, %v", answers[1].Err, answers[2].Err)
	}

	old := c.isrRequest(changes[:1])
	ask[kmsg.AlterPartitionResponse](t, NewOfControllers(Deps{Config: d.Config, Metadata: d.Metadata, Partitions: &judge{states: j.states[:1]}}), 2, old)
	if got := isrChangesOf(old, 2); len(got[0].ISR) != 2 || got[0].BrokerEpochs != nil {
		t.Errorf("version 2: %+v", got)
	}
	j.err = &controller.Error{Kind: controller.StaleBrokerEpoch}
	if _, err := c.AlterPartition(t.Context(), changes); controller.KindOf(err) != controller.StaleBrokerEpoch {
		t.Errorf("of the whole request: %v", err)
	}
}
