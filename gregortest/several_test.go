package gregortest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/gregortest"
)

// Three nodes are one cluster: whichever is asked creates a topic, its partitions are spread over all, and clients
// find them.
func TestThreeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 3)
		for id := 1; id <= 3; id++ {
			if got, want := c.Node(id).Broker().ClusterID(), c.Node(1).Broker().ClusterID(); got != want {
				t.Errorf("node %d is of cluster %s, node 1 of %s", id, got, want)
			}
			topic := fmt.Sprintf("topic%d", id)
			if _, err := kadm.NewClient(clientOf(t, c, int32(id))).CreateTopic(t.Context(), 6, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
		}
		client := connectTo(t, c)
		leaders := map[int32]int{}
		time.Sleep(time.Second)
		topics, err := kadm.NewClient(client).ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		topics.EachPartition(func(p kadm.PartitionDetail) { leaders[p.Leader]++ })
		if len(leaders) != 3 {
			t.Errorf("leaders are %v, want some on each of three nodes", leaders)
		}
		for n := range 30 {
			record := &kgo.Record{Topic: fmt.Sprintf("topic%d", n%3+1), Value: []byte{byte(n)}}
			if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// clientOf returns a client that begins with one node.
func clientOf(t *testing.T, c *gregortest.Cluster, node int32) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()[node-1]), kgo.Dialer(c.Dial), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// createOn creates a topic whose only partition is on a node, which is asked for it.
func createOn(t *testing.T, c *gregortest.Cluster, topic string, node int32) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	asked := kmsg.NewCreateTopicsRequestTopic()
	asked.Topic, asked.NumPartitions, asked.ReplicationFactor = topic, -1, -1
	asked.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "flush.messages", Value: kmsg.StringPtr("1")}}
	asked.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{node}}}
	req.Topics = []kmsg.CreateTopicsRequestTopic{asked}
	resp, err := req.RequestWith(t.Context(), clientOf(t, c, node))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The metadata outlives each node: whoever is killed, or loses what it did not flush, topics are created meanwhile, and
// it has them when it is back. So does a cluster that was stopped as a whole.
func TestMetadataOutlivesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 3)
		for round := range 6 {
			id := round%3 + 1
			killed := c.Node(id)
			if round < 3 {
				killed.Kill()
			} else {
				killed.Crash(nil)
			}
			other := int32(id%3 + 1)
			topic := fmt.Sprintf("round%d", round)
			createOn(t, c, topic, other)
			produceTo(t, c, topic, "a")
			killed.Start()
			wantContent(t, c, topic, "a")
		}
		for id := 1; id <= 3; id++ {
			c.Node(id).Stop()
		}
		c.Start()
		for round := range 6 {
			wantContent(t, c, fmt.Sprintf("round%d", round), "a")
		}
	})
}

// awaitTopic waits until every node knows a topic: who is asked answers by the metadata that it has.
func awaitTopic(t *testing.T, c *gregortest.Cluster, topic string) {
	t.Helper()
	for id := int32(1); id <= 3; id++ {
		admin := kadm.NewClient(clientOf(t, c, id))
		for known, err := admin.ListTopics(t.Context(), topic); err != nil || known.Error() != nil; known, err = admin.ListTopics(t.Context(), topic) {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// Nodes that are cut off decide nothing: the others go on, and it has what they decided when the network is whole.
func TestMetadataOutlivesPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 3)
		for round := range 6 {
			alone := round%3 + 1
			c.Partition(alone)
			other := int32(alone%3 + 1)
			topic := fmt.Sprintf("round%d", round)
			createOn(t, c, topic, other)
			produceTo(t, c, topic, "a")
			c.Heal()
			createOn(t, c, topic+"-healed", int32(alone))
			awaitTopic(t, c, topic)
			awaitTopic(t, c, topic+"-healed")
			produceTo(t, c, topic+"-healed", "b")
			wantContent(t, c, topic, "a")
			wantContent(t, c, topic+"-healed", "b")
		}
	})
}
