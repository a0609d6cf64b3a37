package api

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// manyPartitions applies a topic "many" with count partitions, and returns a request for all of them
// and two of another topic.
func manyPartitions(n *node, count int) *kmsg.ProduceRequest {
	var partitions []*metadata.PartitionRecord
	for range count {
		partitions = append(partitions, testPartition(testNode, testNode))
	}
	n.Commit(testTopic("many", 9, partitions...)...)
	req := produceRequest(-1, 0, logtest.Values(n.t, record.BuilderOptions{}, "v"), logtest.Values(n.t, record.BuilderOptions{}, "v"))
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "many"
	for i := range count {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), logtest.Values(n.t, record.BuilderOptions{}, "v")
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// ofEpoch reports whether an operation makes the epoch of a leader durable, which only an append does.
func ofEpoch(op vfs.Op) bool {
	return op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, "leader-epoch-checkpoint.tmp")
}

// The first appends to the partitions of a request wait for the disk beside each other: a disk that
// answers only when ten wait for it keeps nobody waiting.
func TestFirstAppendsBesideEachOther(t *testing.T) {
	fsys := vfs.NewMem()
	n := startNode(t, fsys, "data")
	req := manyPartitions(n, 60)
	var mu sync.Mutex
	waiting, together := 0, make(chan struct{})
	fsys.SetHook(func(op vfs.Op) error {
		if !ofEpoch(op) {
			return nil
		}
		mu.Lock()
		if waiting++; waiting == 10 {
			close(together)
		}
		mu.Unlock()
		<-together
		return nil
	})
	resp := call[*kmsg.ProduceResponse](n.client(), 9, req)
	for _, topic := range resp.Topics {
		for i, p := range topic.Partitions {
			if p.ErrorCode != 0 || p.BaseOffset != 0 || p.Partition != int32(i) {
				t.Errorf("%s: got %+v", topic.Topic, p)
			}
		}
	}
	// And again: they are not cold any more.
	again := call[*kmsg.ProduceResponse](n.client(), 9, req)
	for _, topic := range again.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 || p.BaseOffset != 1 {
				t.Errorf("%s, again: got %+v", topic.Topic, p)
			}
		}
	}
}

// What has not begun when the time-out of the request has passed is told so and not appended.
func TestProduceTimeoutEndsAppends(t *testing.T) {
	fsys := vfs.NewMem()
	n := startNode(t, fsys, "data")
	req := manyPartitions(n, 300)
	req.TimeoutMillis = 20
	passed := make(chan struct{}) // the time-out has
	begin := sync.OnceFunc(func() { time.AfterFunc(50*time.Millisecond, func() { close(passed) }) })
	fsys.SetHook(func(op vfs.Op) error {
		if ofEpoch(op) {
			begin()
			<-passed
		}
		return nil
	})
	resp := call[*kmsg.ProduceResponse](n.client(), 9, req)
	fsys.SetHook(nil)
	late := 0
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			partition, err := n.Replicas.Topic([]byte(topic.Topic)).Partition(p.Partition).Log()
			if err != nil {
				t.Fatal(err)
			}
			end := partition.Offsets().End
			switch {
			case p.ErrorCode == 0 && end == 1:
			case p.ErrorCode == kerr.RequestTimedOut.Code && end == 0:
				late++
			default:
				t.Errorf("%s-%d: got error %d, the log ends at %d", topic.Topic, p.Partition, p.ErrorCode, end)
			}
		}
	}
	if late < 200 || late == 302 {
		t.Errorf("%d of 302 were late", late)
	}
	req.TimeoutMillis = 0 // no time at all is no bound
	for _, topic := range call[*kmsg.ProduceResponse](n.client(), 9, req).Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				t.Errorf("%s-%d: got error %d", topic.Topic, p.Partition, p.ErrorCode)
			}
		}
	}
}
