package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/topic"
)

func TestCreateTopics(t *testing.T) {
	s := cluster(t, "num.partitions=3")
	created := createTopic(t, s, newTestTopic("orders", -1, "retention.ms", "1000"), 0)
	if created.NumPartitions != 3 || created.ReplicationFactor != 1 || created.TopicID == [16]byte{} {
		t.Errorf("created %+v, want 3 partitions, 1 replica and an id", created)
	}
	if len(created.Configs) != topicKeys {
		t.Errorf("%d configs, want all %d", len(created.Configs), topicKeys)
	}
	i := slices.IndexFunc(created.Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool { return c.Name == "retention.ms" })
	if c := created.Configs[i]; *c.Value != "1000" || c.Source != 1 {
		t.Errorf("retention.ms: got %+v", c)
	}
	for i := range int32(3) {
		if s.Logs.Log(topic.Partition{Topic: "orders", Partition: i}) == nil {
			t.Errorf("orders-%d has no log", i)
		}
	}

	f := func(topic kmsg.CreateTopicsRequestTopic, want *kerr.Error) {
		t.Helper()
		if got := createTopic(t, s, topic, want.Code); got.NumPartitions != -1 || got.Configs == nil {
			t.Errorf("%s: got %+v, want -1 and no config", topic.Topic, got)
		}
	}
	f(newTestTopic("orders", 1), kerr.TopicAlreadyExists)
	f(newTestTopic("a/b", 1), kerr.InvalidTopicException)
	f(newTestTopic("zero", 0), kerr.InvalidPartitions)
	f(newTestTopic("many", 10001), kerr.PolicyViolation)
	f(newTestTopic("c1", 1, "segment.ms", "0"), kerr.InvalidConfig)     // KAFKA-6637
	f(newTestTopic("c2", 1, "retention.ms", "abc"), kerr.InvalidConfig) // KAFKA-7781
	f(newTestTopic("c3", 1, "no.such.key", "1"), kerr.InvalidConfig)
	twoReplicas := newTestTopic("r", 1)
	twoReplicas.ReplicationFactor = 2
	f(twoReplicas, kerr.InvalidReplicationFactor)
	nowhere := newTestTopic("n", -1)
	nowhere.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{9}}}
	f(nowhere, kerr.InvalidReplicaAssignment)
	both := newTestTopic("b", 1)
	both.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
	f(both, kerr.InvalidRequest)
	if names := s.Metadata().TopicNames(); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("topics %v after refusals, want orders", names)
	}
}

func TestCreateTopicsValidateOnlyAndDuplicates(t *testing.T) {
	s := cluster(t)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = true
	req.Topics = []kmsg.CreateTopicsRequestTopic{newTestTopic("dry", 2)}
	if got := ask[kmsg.CreateTopicsResponse](t, s, 7, req).Topics[0]; got.ErrorCode != 0 || got.NumPartitions != 2 {
		t.Errorf("dry run: got %+v", got)
	}
	if s.Metadata().Topic("dry") != nil {
		t.Error("a dry run created the topic")
	}
	req.ValidateOnly = false
	req.Topics = []kmsg.CreateTopicsRequestTopic{newTestTopic("twice", 1), newTestTopic("once", 1), newTestTopic("twice", 1)}
	resp := ask[kmsg.CreateTopicsResponse](t, s, 7, req)
	var got []int16
	for _, topic := range resp.Topics {
		got = append(got, topic.ErrorCode)
	}
	if diff := cmp.Diff([]int16{kerr.InvalidRequest.Code, 0}, got); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
}

func TestDeleteTopics(t *testing.T) {
	s := cluster(t)
	long := strings.Repeat("x.", 124) + "x" // KAFKA-5232, KAFKA-4893
	for _, name := range []string{"byname", "byid", long} {
		createTopic(t, s, newTestTopic(name, 1), 0)
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics = []kmsg.DeleteTopicsRequestTopic{
		{Topic: kmsg.StringPtr("byname")}, {TopicID: s.Metadata().Topic("byid").ID}, {Topic: &long},
		{Topic: kmsg.StringPtr("nosuch")}, {TopicID: [16]byte{1}}, {Topic: kmsg.StringPtr("x"), TopicID: [16]byte{1}},
		{Topic: kmsg.StringPtr("twice")}, {Topic: kmsg.StringPtr("twice")},
	}
	var got []int16
	for _, topic := range ask[kmsg.DeleteTopicsResponse](t, s, 6, req).Topics {
		got = append(got, topic.ErrorCode)
	}
	want := []int16{0, 0, 0, kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code, kerr.InvalidRequest.Code, kerr.InvalidRequest.Code}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if n := s.Metadata().NumTopics(); n != 0 {
		t.Errorf("%d topics left", n)
	}
	if s.Logs.Log(topic.Partition{Topic: long}) != nil {
		t.Error("the log is still there")
	}
}

func TestDeleteTopicsDisabled(t *testing.T) {
	s := cluster(t, "delete.topic.enable=false")
	createTopic(t, s, newTestTopic("t", 1), 0)
	f := func(version int16, want *kerr.Error) {
		t.Helper()
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TopicNames = []string{"t"}
		if got := ask[kmsg.DeleteTopicsResponse](t, s, version, req).Topics[0]; got.ErrorCode != want.Code {
			t.Errorf("version %d: error %d, want %v", version, got.ErrorCode, want)
		}
	}
	f(5, kerr.TopicDeletionDisabled)
	f(3, kerr.TopicDeletionDisabled)
	f(2, kerr.InvalidRequest)
}

func TestCreatePartitions(t *testing.T) {
	s := cluster(t)
	createTopic(t, s, newTestTopic("t", 2), 0)
	f := func(name string, count int32, want int16, assignment ...[]int32) {
		t.Helper()
		req := kmsg.NewPtrCreatePartitionsRequest()
		asked := kmsg.NewCreatePartitionsRequestTopic()
		asked.Topic, asked.Count = name, count
		for _, replicas := range assignment {
			asked.Assignment = append(asked.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: replicas})
		}
		req.Topics = append(req.Topics, asked)
		if got := ask[kmsg.CreatePartitionsResponse](t, s, 3, req).Topics[0]; got.ErrorCode != want {
			t.Errorf("%s to %d: error %d %s, want %d", name, count, got.ErrorCode, textOf(got.ErrorMessage), want)
		}
	}
	f("t", 2, kerr.InvalidPartitions.Code)
	f("t", 1, kerr.InvalidPartitions.Code)
	f("t", 4, kerr.InvalidReplicaAssignment.Code, []int32{1})
	f("t", 3, kerr.InvalidReplicaAssignment.Code, []int32{7})
	f("nosuch", 3, kerr.UnknownTopicOrPartition.Code)
	f("t", 4, 0)
	f("t", 5, 0, []int32{1})
	if n := len(s.Metadata().Topic("t").Partitions); n != 5 {
		t.Errorf("%d partitions, want 5", n)
	}
}

func TestMetadataCreatesTopics(t *testing.T) {
	s := cluster(t, "num.partitions=2", "offsets.topic.num.partitions=4")
	f := func(name string, wantPartitions int) {
		t.Helper()
		got := askMetadata(t, s, 12, name).Topics[0]
		if got.ErrorCode != 0 || len(got.Partitions) != wantPartitions || got.TopicID == [16]byte{} {
			t.Errorf("%s: got %+v, want %d partitions", name, got, wantPartitions)
		}
	}
	f("fresh", 2)
	f(topic.ConsumerOffsets, 4)
	if got := s.Metadata().TopicConfigs(topic.ConsumerOffsets)["cleanup.policy"]; got != "compact" {
		t.Errorf("__consumer_offsets: cleanup.policy = %q, want compact", got)
	}
	if got := askMetadata(t, s, 12, "a/b").Topics[0]; got.ErrorCode != kerr.InvalidTopicException.Code {
		t.Errorf("bad name: error %d, want %v", got.ErrorCode, kerr.InvalidTopicException)
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("never")}}
	if got := ask[kmsg.MetadataResponse](t, s, 12, req).Topics[0]; got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("without permission: error %d, want %v", got.ErrorCode, kerr.UnknownTopicOrPartition)
	}
}

func TestInitProducerID(t *testing.T) {
	s := cluster(t)
	seen := make(map[int64]bool)
	for range 1001 { // more than a block
		resp := ask[kmsg.InitProducerIDResponse](t, s, 4, kmsg.NewPtrInitProducerIDRequest())
		if resp.ErrorCode != 0 || resp.ProducerEpoch != 0 || seen[resp.ProducerID] || resp.ProducerID < 0 {
			t.Fatalf("got %+v, want a new id with epoch 0", resp)
		}
		seen[resp.ProducerID] = true
	}
	if next := s.Metadata().NextProducerID; next != 2000 {
		t.Errorf("next producer id %d, want 2000", next)
	}
	half := kmsg.NewPtrInitProducerIDRequest()
	half.ProducerID, half.ProducerEpoch = 5, -1
	if got := ask[kmsg.InitProducerIDResponse](t, s, 4, half); got.ErrorCode != kerr.InvalidRequest.Code || got.ProducerID != -1 {
		t.Errorf("id without epoch: got %+v, want %v", got, kerr.InvalidRequest)
	}
	transactional := kmsg.NewPtrInitProducerIDRequest()
	transactional.TransactionalID = kmsg.StringPtr("x")
	for version := range int16(6) {
		got := ask[kmsg.InitProducerIDResponse](t, s, version, transactional)
		if got.ErrorCode != kerr.TransactionalIDAuthorizationFailed.Code || got.ProducerID != -1 {
			t.Errorf("version %d with a transactional id: got %+v", version, got)
		}
	}
}

func TestDescribeLogDirs(t *testing.T) {
	s := cluster(t)
	createTopic(t, s, newTestTopic("b", 1), 0)
	createTopic(t, s, newTestTopic("a", 2), 0)
	f := func(topics []kmsg.DescribeLogDirsRequestTopic, want ...string) {
		t.Helper()
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = topics
		resp := ask[kmsg.DescribeLogDirsResponse](t, s, 4, req)
		if len(resp.Dirs) != 1 || resp.Dirs[0].Dir != "/data" || resp.Dirs[0].ErrorCode != 0 || resp.Dirs[0].TotalBytes <= 0 {
			t.Fatalf("got %+v, want /data", resp.Dirs)
		}
		var got []string
		for _, topicOf := range resp.Dirs[0].Topics {
			for _, p := range topicOf.Partitions {
				got = append(got, topic.Partition{Topic: topicOf.Topic, Partition: p.Partition}.String())
				if p.Size != 0 || p.OffsetLag != 0 || p.IsFuture {
					t.Errorf("%s: got %+v, want an empty log", topicOf.Topic, p)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", topics, diff)
		}
	}
	f(nil, "a-0", "a-1", "b-0")
	f([]kmsg.DescribeLogDirsRequestTopic{{Topic: "a", Partitions: []int32{1, 7}}}, "a-1")
	f([]kmsg.DescribeLogDirsRequestTopic{})
}

func TestDescribeProducersErrors(t *testing.T) {
	s := cluster(t)
	createTopic(t, s, newTestTopic("t", 1), 0)
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}, {Topic: "a/b", Partitions: []int32{0}}}
	resp := ask[kmsg.DescribeProducersResponse](t, s, 0, req)
	var got []int16
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			got = append(got, p.ErrorCode)
		}
	}
	if diff := cmp.Diff([]int16{0, kerr.UnknownTopicOrPartition.Code, kerr.InvalidTopicException.Code}, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
