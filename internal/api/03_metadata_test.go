package api

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// threeBrokers: 1 is this broker, 2 is fenced, 3 has no endpoint on our listener.
func threeBrokers() []metadata.Record {
	return slices.Concat(
		[]metadata.Record{testBroker(1, false, testListener, "OTHER"), testBroker(2, true, testListener), testBroker(3, false, "OTHER")},
		testTopic("beta", 2, testPartition(1, 1, 2), testPartition(3, 3), testPartition(metadata.NoLeader, 2)),
		testTopic("alpha", 1, testPartition(1, 1)),
		testTopic("__consumer_offsets", 3, testPartition(1, 1)),
	)
}

func askMetadata(t *testing.T, s *Server, version int16, topics ...string) *kmsg.MetadataResponse {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	return ask[kmsg.MetadataResponse](t, s, version, req)
}

func TestMetadataAllVersions(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	for version := range int16(14) {
		resp := askMetadata(t, s, version)
		var names []string
		for _, topic := range resp.Topics {
			names = append(names, *topic.Topic)
			if id := topic.TopicID != [16]byte{}; id != (version >= 10) {
				t.Errorf("version %d: topic id %v", version, topic.TopicID)
			}
			if internal := *topic.Topic == "__consumer_offsets"; version >= 1 && topic.IsInternal != internal {
				t.Errorf("version %d: %s internal = %v", version, *topic.Topic, topic.IsInternal)
			}
		}
		if diff := cmp.Diff([]string{"__consumer_offsets", "alpha", "beta"}, names); diff != "" {
			t.Errorf("version %d: topics (-want +got):\n%s", version, diff)
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || resp.Brokers[0].Host != "hostPLAINTEXT" || resp.Brokers[0].Port != 9001 {
			t.Errorf("version %d: brokers %v, want 1 on PLAINTEXT", version, resp.Brokers)
		}
		if version >= 1 && resp.ControllerID != 1 {
			t.Errorf("version %d: controller %d, want 1", version, resp.ControllerID)
		}
		if version >= 2 && *resp.ClusterID != "test-cluster" {
			t.Errorf("version %d: cluster id %q", version, *resp.ClusterID)
		}
	}
}

func TestMetadataPartitions(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	f := func(version int16, want [3]int16, offline []int32) {
		t.Helper()
		partitions := askMetadata(t, s, version, "beta").Topics[0].Partitions
		for i, code := range want {
			p := partitions[i]
			if p.ErrorCode != code || p.Partition != int32(i) {
				t.Errorf("version %d: partition %d has error %d, want %d", version, p.Partition, p.ErrorCode, code)
			}
			if usable := code == 0 || code == kerr.ReplicaNotAvailable.Code; usable != (p.Leader == 1) {
				t.Errorf("version %d: partition %d has leader %d", version, i, p.Leader)
			}
		}
		if diff := cmp.Diff(offline, partitions[0].OfflineReplicas); diff != "" {
			t.Errorf("version %d: offline replicas (-want +got):\n%s", version, diff)
		}
	}
	f(13, [3]int16{0, kerr.ListenerNotFound.Code, kerr.LeaderNotAvailable.Code}, []int32{2})
	f(5, [3]int16{0, kerr.LeaderNotAvailable.Code, kerr.LeaderNotAvailable.Code}, []int32{2})
	f(0, [3]int16{kerr.ReplicaNotAvailable.Code, kerr.LeaderNotAvailable.Code, kerr.LeaderNotAvailable.Code}, nil)
	if p := askMetadata(t, s, 0, "beta").Topics[0].Partitions[0]; !slices.Equal(p.Replicas, []int32{1}) || !slices.Equal(p.ISR, []int32{1}) {
		t.Errorf("version 0: replicas %v, ISR %v, want the one alive", p.Replicas, p.ISR)
	}
	if p := askMetadata(t, s, 7, "beta").Topics[0].Partitions[0]; p.LeaderEpoch != 3 {
		t.Errorf("leader epoch %d, want 3", p.LeaderEpoch)
	}
}

func TestMetadataTopicErrors(t *testing.T) {
	s := imageServer(t, "auto.create.topics.enable=false", threeBrokers()...)
	f := func(name string, want *kerr.Error) {
		t.Helper()
		resp := askMetadata(t, s, 9, name)
		if len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != want.Code || *resp.Topics[0].Topic != name {
			t.Errorf("%q: got %+v, want %v", name, resp.Topics, want)
		}
	}
	f("nosuch", kerr.UnknownTopicOrPartition)
	f("bad/name", kerr.InvalidTopicException)
	f("", kerr.InvalidTopicException)

	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: uuid.UUID{15: 2}}, {TopicID: uuid.UUID{15: 99}}}
	resp := ask[kmsg.MetadataResponse](t, s, 12, req)
	if got := resp.Topics[0]; got.ErrorCode != 0 || *got.Topic != "beta" {
		t.Errorf("by id: got %+v, want beta", got)
	}
	if got := resp.Topics[1]; got.ErrorCode != kerr.UnknownTopicID.Code || got.Topic != nil || got.TopicID != [16]byte{15: 99} {
		t.Errorf("by unknown id: got %+v, want a null name, the id and %v", got, kerr.UnknownTopicID)
	}
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: uuid.UUID{15: 2}, Topic: kmsg.StringPtr("")}}
	if got := ask[kmsg.MetadataResponse](t, s, 11, req).Topics[0]; got.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("by id in version 11: error %d, want %v", got.ErrorCode, kerr.InvalidRequest)
	}
}

func TestMetadataNoTopics(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	if got := ask[kmsg.MetadataResponse](t, s, 1, req); len(got.Topics) != 0 {
		t.Errorf("version 1, empty list: %d topics, want none", len(got.Topics))
	}
	if got := ask[kmsg.MetadataResponse](t, s, 0, req); len(got.Topics) != 3 {
		t.Errorf("version 0, empty list: %d topics, want all", len(got.Topics))
	}
}

func TestMetadataOperations(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	req := kmsg.NewPtrMetadataRequest()
	resp := ask[kmsg.MetadataResponse](t, s, 8, req)
	if resp.AuthorizedOperations != operationsUnknown || resp.Topics[0].AuthorizedOperations != operationsUnknown {
		t.Errorf("operations %d, %d, want unknown", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
	req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
	resp = ask[kmsg.MetadataResponse](t, s, 8, req)
	if resp.AuthorizedOperations != 8096 || resp.Topics[0].AuthorizedOperations != 3576 { // as Kafka without authorizer
		t.Errorf("operations %d, %d, want 8096, 3576", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
}

func TestDescribeCluster(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	req := kmsg.NewPtrDescribeClusterRequest()
	resp := ask[kmsg.DescribeClusterResponse](t, s, 2, req)
	if resp.ErrorCode != 0 || resp.ClusterID != "test-cluster" || resp.ControllerID != 1 || len(resp.Brokers) != 1 {
		t.Errorf("got %+v, want one broker, controller 1", resp)
	}
	req.IncludeFencedBrokers = true
	if resp = ask[kmsg.DescribeClusterResponse](t, s, 2, req); len(resp.Brokers) != 2 || !resp.Brokers[1].IsFenced {
		t.Errorf("with fenced ones: %+v, want 1 and 2", resp.Brokers)
	}
	req.EndpointType = 2
	if resp = ask[kmsg.DescribeClusterResponse](t, s, 1, req); resp.ErrorCode != kerr.MismatchedEndpointType.Code {
		t.Errorf("controllers: error %d, want %v", resp.ErrorCode, kerr.MismatchedEndpointType)
	}
	req.EndpointType = 7
	if resp = ask[kmsg.DescribeClusterResponse](t, s, 1, req); resp.ErrorCode != kerr.UnsupportedEndpointType.Code {
		t.Errorf("type 7: error %d, want %v", resp.ErrorCode, kerr.UnsupportedEndpointType)
	}
}

func TestDescribeTopicPartitionsCursor(t *testing.T) {
	s := imageServer(t, "max.request.partition.size.limit=2", threeBrokers()...)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	var got []string
	for range 10 {
		resp := ask[kmsg.DescribeTopicPartitionsResponse](t, s, 0, req)
		page := ""
		for _, topic := range resp.Topics {
			page += *topic.Topic + ":"
			for _, p := range topic.Partitions {
				page += string(rune('0' + p.Partition))
			}
			page += " "
		}
		got = append(got, page)
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
	}
	want := []string{"__consumer_offsets:0 alpha:0 ", "beta:01 ", "beta:2 "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestDescribeTopicPartitionsErrors(t *testing.T) {
	s := imageServer(t, "", threeBrokers()...)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 100
	req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "nosuch"}, {Topic: "a b"}, {Topic: "alpha"}, {Topic: "alpha"}}
	resp := ask[kmsg.DescribeTopicPartitionsResponse](t, s, 0, req)
	var got []int16
	for _, topic := range resp.Topics {
		got = append(got, topic.ErrorCode)
	}
	want := []int16{kerr.InvalidTopicException.Code, 0, kerr.UnknownTopicOrPartition.Code} // "a b", alpha, nosuch
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	for _, cursor := range []kmsg.DescribeTopicPartitionsRequestCursor{{Topic: "alpha", Partition: -1}, {Topic: "beta"}} {
		req.Cursor = &cursor
		if resp = ask[kmsg.DescribeTopicPartitionsResponse](t, s, 0, req); resp.Topics[0].ErrorCode != kerr.InvalidRequest.Code {
			t.Errorf("cursor %v: error %d, want %v", cursor, resp.Topics[0].ErrorCode, kerr.InvalidRequest)
		}
	}
}
