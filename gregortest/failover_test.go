package gregortest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/gregortest"
)

// inSync returns the leader and the replicas in sync of a topic's only partition, as a node knows them.
func inSync(t *testing.T, c *gregortest.Cluster, node int, topic string) (leader int32, isr []int32) {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	resp, err := clientOf(t, c, int32(node)).Broker(node).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	p := resp.(*kmsg.MetadataResponse).Topics[0].Partitions[0]
	return p.Leader, p.ISR
}

func awaitInSync(t *testing.T, c *gregortest.Cluster, node int, topic string, count int, within time.Duration) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		leader, isr := inSync(t, c, node, topic)
		if leader >= 0 && len(isr) == count {
			return
		}
		if time.Since(began) > within {
			t.Fatalf("after %v %s is led by %d, in sync are %v, want %d", within, topic, leader, isr, count)
		}
	}
}

// What all in sync have acknowledged outlives whoever is killed or loses power, the leader too: another one leads, and who
// comes back is in sync again.
func TestReplicasOutliveNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		c := gregortest.NewCluster(t, 3, gregortest.Set("min.insync.replicas=2"))
		createReplicated(t, c, "t")
		client := connectTo(t, c, kgo.DefaultProduceTopic("t"), kgo.RecordRetries(1000), kgo.UnknownTopicRetries(-1))
		var want []string
		produce := func(n int) {
			t.Helper()
			for range n {
				value := fmt.Sprintf("record %d", len(want))
				if err := client.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr(); err != nil {
					t.Fatal(err)
				}
				want = append(want, value)
			}
		}
		produce(5)
		for round := range 6 {
			id := round%3 + 1
			other := id%3 + 1
			awaitInSync(t, c, other, "t", 3, time.Minute)
			if round < 3 {
				c.Node(id).Kill()
			} else {
				c.Node(id).Crash(rng)
			}
			produce(5) // as soon as it is found out
			awaitInSync(t, c, other, "t", 2, time.Minute)
			c.Node(id).Start()
		}
		awaitInSync(t, c, 1, "t", 3, time.Minute)
		wantContent(t, c, "t", want...)
		for node := int32(1); node <= 3; node++ {
			if got := logEnd(t, c, "t", node); got != int64(len(want)) {
				t.Errorf("the log on %d ends at %d, want %d", node, got, len(want))
			}
		}
	})
}
