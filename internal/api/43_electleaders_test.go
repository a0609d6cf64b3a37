package api

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// movingCluster: partition 0 is led by its preferred replica, 1 by another, 2 by nobody,
// and 3 is on its way from broker 2 to broker 1.
func movingCluster() []metadata.Record {
	moving := testPartition(1, 1, 2)
	moving.AddingReplicas, moving.RemovingReplicas = []int32{1}, []int32{2}
	return slices.Concat(
		[]metadata.Record{testBroker(1, false, testListener), testBroker(2, true, testListener)},
		testTopic("t", 1, testPartition(1, 1), testPartition(1, 2, 1), testPartition(metadata.NoLeader, 2), moving),
	)
}

func TestElectLeaders(t *testing.T) {
	s := imageServer(t, "", movingCluster()...)
	f := func(kind int8, partitions []int32, want ...*kerr.Error) {
		t.Helper()
		req := kmsg.NewPtrElectLeadersRequest()
		req.ElectionType = kind
		if partitions != nil {
			req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: partitions}}
		}
		var got []int16
		for _, topic := range ask[kmsg.ElectLeadersResponse](t, s, 2, req).Topics {
			for _, p := range topic.Partitions {
				got = append(got, p.ErrorCode)
			}
		}
		if diff := cmp.Diff(codesOf(want), got); diff != "" {
			t.Errorf("type %d, partitions %v (-want +got):\n%s", kind, partitions, diff)
		}
	}
	f(electPreferred, []int32{0, 1, 2, 9}, kerr.ElectionNotNeeded, kerr.PreferredLeaderNotAvailable, kerr.PreferredLeaderNotAvailable, kerr.UnknownTopicOrPartition)
	f(electUnclean, []int32{0, 1, 2}, kerr.ElectionNotNeeded, kerr.ElectionNotNeeded, kerr.EligibleLeadersNotAvailable)
	f(electPreferred, nil, kerr.PreferredLeaderNotAvailable, kerr.PreferredLeaderNotAvailable)
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType = 7
	if got := ask[kmsg.ElectLeadersResponse](t, s, 2, req); got.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("type 7: error %d, want %v", got.ErrorCode, kerr.InvalidRequest)
	}
}

func codesOf(errs []*kerr.Error) (codes []int16) {
	for _, err := range errs {
		codes = append(codes, err.Code)
	}
	return codes
}

func TestReassignments(t *testing.T) {
	s := imageServer(t, "", movingCluster()...)
	f := func(partition int32, replicas []int32, want int16) {
		t.Helper()
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.AllowReplicationFactorChange = false
		req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: "t", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: replicas}}}}
		if got := ask[kmsg.AlterPartitionAssignmentsResponse](t, s, 1, req).Topics[0].Partitions[0]; got.ErrorCode != want {
			t.Errorf("partition %d to %v: error %d, want %d", partition, replicas, got.ErrorCode, want)
		}
	}
	f(0, []int32{1}, 0)
	f(1, []int32{1, 2}, 0)
	f(0, []int32{2}, kerr.InvalidReplicaAssignment.Code)
	f(0, []int32{}, kerr.InvalidReplicaAssignment.Code)
	f(0, []int32{1, 1}, kerr.InvalidReplicaAssignment.Code)
	f(0, []int32{7}, kerr.InvalidReplicaAssignment.Code)
	f(0, []int32{1, 2}, kerr.InvalidReplicationFactor.Code)
	f(0, nil, kerr.NoReassignmentInProgress.Code)
	f(9, []int32{1}, kerr.UnknownTopicOrPartition.Code)

	list := kmsg.NewPtrListPartitionReassignmentsRequest()
	resp := ask[kmsg.ListPartitionReassignmentsResponse](t, s, 0, list)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].Partition != 3 {
		t.Fatalf("running: got %+v, want partition 3 only", resp.Topics)
	}
	if p := resp.Topics[0].Partitions[0]; !slices.Equal(p.AddingReplicas, []int32{1}) || !slices.Equal(p.RemovingReplicas, []int32{2}) {
		t.Errorf("adding %v, removing %v, want 1 and 2", p.AddingReplicas, p.RemovingReplicas)
	}
	list.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}, {Topic: "nosuch", Partitions: []int32{0}}}
	if resp = ask[kmsg.ListPartitionReassignmentsResponse](t, s, 0, list); len(resp.Topics) != 0 {
		t.Errorf("partitions at rest: got %+v, want none", resp.Topics)
	}
}

// A partition that gets replicas, or only loses some, is on its way.
func TestIsReassigning(t *testing.T) {
	f := func(adding, removing []int32, want bool) {
		t.Helper()
		if got := isReassigning(&metadata.Partition{AddingReplicas: adding, RemovingReplicas: removing}); got != want {
			t.Errorf("adding %v, removing %v: got %v, want %v", adding, removing, got, want)
		}
	}
	f(nil, nil, false)
	f([]int32{1}, nil, true)
	f(nil, []int32{2}, true)
	f([]int32{1}, []int32{2}, true)
}
