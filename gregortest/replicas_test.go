package gregortest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/gregortest"
)

// createReplicated creates a topic whose only partition has replicas on all of three nodes.
func createReplicated(t *testing.T, c *gregortest.Cluster, topic string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	asked := kmsg.NewCreateTopicsRequestTopic()
	asked.Topic, asked.NumPartitions, asked.ReplicationFactor = topic, -1, -1
	asked.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1, 2, 3}}}
	req.Topics = []kmsg.CreateTopicsRequestTopic{asked}
	resp, err := req.RequestWith(t.Context(), clientOf(t, c, 1))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitTopic(t, c, topic, 1, 2, 3)
}

// logEnd asks a node, whether it leads or not, where its log of a partition ends.
func logEnd(t *testing.T, c *gregortest.Cluster, topic string, node int32) int64 {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -2 // a debugging consumer
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	client := clientOf(t, c, node)
	resp, err := client.Broker(int(node)).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	answer := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		t.Fatal(err)
	}
	return answer.Offset
}

// Followers have what their leader has, by Kafka's protocol, also one that was killed meanwhile, and one whose disk is new
// to what it lacks.
func TestFollowersCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 3)
		createReplicated(t, c, "t")
		client := connectTo(t, c)
		produce := func(n int) {
			t.Helper()
			for i := range n {
				if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "record %d", i)}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		produce(30) // acks=all: all three have them
		time.Sleep(2 * time.Second)
		want := func(end int64) {
			t.Helper()
			for node := int32(1); node <= 3; node++ {
				if got := logEnd(t, c, "t", node); got != end {
					t.Errorf("the log on %d ends at %d, want %d", node, got, end)
				}
			}
		}
		want(30)
		c.Node(3).Kill()
		c.Node(3).Start()
		produce(10)
		time.Sleep(2 * time.Second)
		want(40)
	})
}
