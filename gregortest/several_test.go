package gregortest_test

import (
	"errors"
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
	client := clientOf(t, c, node)
	for {
		resp, err := req.RequestWith(t.Context(), client)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, kerr.InvalidReplicaAssignment) { // it was out of service, and the controller has not heard of it yet
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
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
			awaitTopic(t, c, topic, id%3+1, (id+1)%3+1)
			produceTo(t, c, topic, "a")
			killed.Start()
			awaitTopic(t, c, topic, 1, 2, 3)
			wantContent(t, c, topic, "a")
		}
		for id := 1; id <= 3; id++ {
			c.Node(id).Stop()
		}
		c.Start()
		for round := range 6 {
			topic := fmt.Sprintf("round%d", round)
			awaitTopic(t, c, topic, 1, 2, 3)
			wantContent(t, c, topic, "a")
		}
	})
}

// awaitTopic waits until nodes know a topic and its leader: who is asked answers by the metadata that it has.
func awaitTopic(t *testing.T, c *gregortest.Cluster, topic string, nodes ...int) {
	t.Helper()
	for _, id := range nodes {
		for !knows(t, c, id, topic) {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// knows reports whether a node, and no other, says who leads a topic.
func knows(t *testing.T, c *gregortest.Cluster, node int, topic string) bool {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	resp, err := clientOf(t, c, int32(node)).Broker(node).RetriableRequest(t.Context(), req)
	if err != nil {
		return false
	}
	found := resp.(*kmsg.MetadataResponse).Topics[0]
	return found.ErrorCode == 0 && found.Partitions[0].Leader >= 0
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
			awaitTopic(t, c, topic, alone%3+1, (alone+1)%3+1)
			produceTo(t, c, topic, "a")
			c.Heal()
			createOn(t, c, topic+"-healed", int32(alone))
			awaitTopic(t, c, topic, 1, 2, 3)
			awaitTopic(t, c, topic+"-healed", 1, 2, 3)
			produceTo(t, c, topic+"-healed", "b")
			wantContent(t, c, topic, "a")
			wantContent(t, c, topic+"-healed", "b")
		}
	})
}

// statesOf returns who is fenced, by what a node knows.
func statesOf(t *testing.T, c *gregortest.Cluster, node int32) map[int32]bool {
	t.Helper()
	req := kmsg.NewPtrDescribeClusterRequest()
	req.IncludeFencedBrokers = true
	resp, err := clientOf(t, c, node).Broker(int(node)).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	fenced := map[int32]bool{}
	for _, b := range resp.(*kmsg.DescribeClusterResponse).Brokers {
		fenced[b.NodeID] = b.IsFenced
	}
	return fenced
}

func awaitFenced(t *testing.T, c *gregortest.Cluster, asked, node int32, want bool, within time.Duration) {
	t.Helper()
	began := time.Now()
	for {
		if fenced, known := statesOf(t, c, asked)[node]; known && fenced == want {
			return
		}
		if time.Since(began) > within {
			t.Fatalf("after %v node %d has fenced=%v", within, node, !want)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A broker that is not heard of is out of service after a session, one that stops cleanly at once, and who comes back
// is in service when it has started.
func TestBrokersAreFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 3)
		for id := int32(1); id <= 3; id++ {
			for other := int32(1); other <= 3; other++ {
				awaitFenced(t, c, id, other, false, time.Second)
			}
		}
		c.Node(1).Kill()
		if statesOf(t, c, 2)[1] {
			t.Error("node 1 is fenced as soon as it is killed")
		}
		awaitFenced(t, c, 2, 1, true, 13*time.Second)
		c.Node(1).Start()
		if statesOf(t, c, 1)[1] {
			t.Error("node 1 has started and is fenced")
		}
		began := time.Now()
		c.Node(2).Stop()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a clean stop took %v", took)
		}
		awaitFenced(t, c, 1, 2, true, 5*time.Second) // when there is a leader of the quorum again
		c.Node(2).Start()
		awaitFenced(t, c, 3, 2, false, time.Second)

		c.Partition(3)
		awaitFenced(t, c, 1, 3, true, 14*time.Second)
		c.Heal()
		awaitFenced(t, c, 1, 3, false, 12*time.Second)
	})
}
