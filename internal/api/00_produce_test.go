package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// An acknowledgement waits if there is something to wait for, and somebody to tell.
func TestProduceWaitsForSomething(t *testing.T) {
	f := func(acks int16, flushTo int64, want int) {
		t.Helper()
		p := &produceWork{acks: acks}
		p.maybeWait(0, nil, commitlog.AppendInfo{FlushTo: flushTo})
		if len(p.waits) != want {
			t.Errorf("acks %d, to be flushed below %d: %d waits, want %d", acks, flushTo, len(p.waits), want)
		}
	}
	f(1, 0, 0)
	f(1, 5, 1)
	f(0, 0, 0)
	f(0, 5, 0)
}

// With acks=all the answer waits until the high watermark is behind the last record, not at it.
func TestProduceWaitsForTheLastRecord(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	set := logtest.Values(t, record.BuilderOptions{}, "a", "b")
	n.client().produce(9, 1, 0, set) // offsets 0 and 1
	partition, err := n.Replicas.Partition(topic.Partition{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(acks int16, last, want int64) {
		t.Helper()
		p := &produceWork{acks: acks}
		p.maybeWait(0, partition, commitlog.AppendInfo{LastOffset: last})
		got := int64(0)
		if len(p.waits) == 1 {
			got = p.waits[0].required
		}
		if got != want || len(p.waits) > 1 {
			t.Errorf("acks %d, last offset %d: waits %+v, want a high watermark of %d", acks, last, p.waits, want)
		}
	}
	f(-1, 1, 0) // it is there already
	f(-1, 2, 3)
	f(-1, 9, 10)
	f(1, 9, 0)
}

// Kafka's tools write to internal topics, as clients of one name; others must not.
func TestProduceToInternalTopic(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	n.Commit(testTopic("__consumer_offsets", 9, testPartition(testNode, testNode))...)
	c := n.client()
	f := func(clientID, name string, want int16) {
		t.Helper()
		req := produceRequest(1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
		req.Topics[0].Topic = name
		req.SetVersion(9)
		if _, err := c.c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, req, 1)); err != nil {
			t.Fatal(err)
		}
		resp, ok := c.receive(req)
		if !ok {
			t.Fatal("no answer")
		}
		if got := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != want {
			t.Errorf("client %s, topic %s: got error %d, want %d", clientID, name, got, want)
		}
	}
	f("test", "__consumer_offsets", kerr.InvalidTopicException.Code)
	f("__admin_client", "__consumer_offsets", 0)
	f("__admin_client", "t", 0)
}

// Whoever speaks as Kafka 4 does, to a log of today's format, is no old client.
func TestProduceOfTodayIsNoOldClient(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	for v := int16(3); v <= 13; v++ {
		c.produce(v, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	}
	if got := n.OldClients(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	c.produce(2, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	if got := n.OldClients(); len(got) != 1 || got[0].Version != 2 {
		t.Errorf("got %+v", got)
	}
}
