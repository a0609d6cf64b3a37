package api

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A layout is the partitions of each topic entry of a request, all of the same topic.
type layout [][]int32

var twiceLayouts = []struct {
	asked layout
	want  []int32 // partitions of the answer
	last  []int   // which of the asked ones counts, in the order of want
}{
	{layout{{0, 0}}, []int32{0}, []int{1}},
	{layout{{0}, {0}}, []int32{0}, []int{1}},
	{layout{{0, 1, 0}}, []int32{0, 1}, []int{2, 1}},
	{layout{{1}, {2, 0}, {1, 1}}, []int32{1, 2, 0}, []int{4, 1, 2}},
	{layout{{2, 1, 0}}, []int32{2, 1, 0}, []int{0, 1, 2}},
}

func nodeOfThree(t testing.TB) *node {
	n := startNode(t, vfs.OS, t.TempDir())
	n.Commit(testTopic("three", 9, testPartition(testNode, testNode), testPartition(testNode, testNode), testPartition(testNode, testNode))...)
	return n
}

var threeID = uuid.UUID{15: 9}

// Kafka 4.4.0 appends the record set that came last, and answers once.
func TestProducePartitionTwice(t *testing.T) {
	for _, version := range []int16{3, 8, 9, 12, 13} {
		for _, l := range twiceLayouts {
			c := nodeOfThree(t).client()
			req := produceRequest(1, 0)
			req.Topics = nil
			sent := 0
			for _, list := range l.asked {
				topic := kmsg.NewProduceRequestTopic()
				topic.Topic, topic.TopicID = "three", threeID
				for _, i := range list {
					p := kmsg.NewProduceRequestTopicPartition()
					p.Partition, p.Records = i, logtest.Values(t, record.BuilderOptions{}, fmt.Sprint(sent))
					topic.Partitions = append(topic.Partitions, p)
					sent++
				}
				req.Topics = append(req.Topics, topic)
			}
			resp := call[*kmsg.ProduceResponse](c, version, req)
			if len(resp.Topics) != 1 {
				t.Fatalf("version %d, %v: %d topics in the answer", version, l.asked, len(resp.Topics))
			}
			for i, p := range resp.Topics[0].Partitions {
				if p.Partition != l.want[i] || p.ErrorCode != 0 || p.BaseOffset != 0 {
					t.Errorf("version %d, %v: got %+v", version, l.asked, p)
				}
				if got := fetchThree(c, p.Partition); !slices.Equal(got, []string{fmt.Sprint(l.last[i])}) {
					t.Errorf("version %d, %v: partition %d has %q, want %d", version, l.asked, p.Partition, got, l.last[i])
				}
			}
			if len(resp.Topics[0].Partitions) != len(l.want) {
				t.Errorf("version %d, %v: got %+v", version, l.asked, resp.Topics[0].Partitions)
			}
		}
	}
}

func fetchThree(c *client, partition int32) []string {
	c.t.Helper()
	req := fetchRequest(partition, 0)
	req.Topics[0].Topic, req.Topics[0].TopicID = "three", threeID
	resp := call[*kmsg.FetchResponse](c, 13, req)
	return values(c.t, resp.Topics[0].Partitions[0].RecordBatches, 0)
}

// One of two topics, and a partition of each, are no double.
func TestProduceTwoTopics(t *testing.T) {
	n := nodeOfThree(t)
	n.Commit(testTopic("other", 10, testPartition(testNode, testNode))...)
	req := produceRequest(1, 0, logtest.Values(t, record.BuilderOptions{}, "x"))
	req.Topics[0].Topic = "three"
	other := req.Topics[0]
	other.Topic, other.Partitions = "other", slices.Clone(other.Partitions)
	other.Partitions[0].Records = bytes.Clone(other.Partitions[0].Records)
	req.Topics = append(req.Topics, other)
	resp := call[*kmsg.ProduceResponse](n.client(), 9, req)
	if len(resp.Topics) != 2 || resp.Topics[0].Topic != "three" || resp.Topics[1].Topic != "other" {
		t.Errorf("got %+v", resp.Topics)
	}
}

func TestFetchPartitionTwice(t *testing.T) {
	c := nodeOfThree(t).client()
	for p := range int32(3) {
		req := produceRequest(1, p, logtest.Values(t, record.BuilderOptions{}, "0", "1", "2", "3", "4", "5"))
		req.Topics[0].Topic = "three"
		call[*kmsg.ProduceResponse](c, 9, req)
	}
	for _, version := range []int16{1, 3, 4, 11, 12, 13, 18} {
		for _, epoch := range []int32{-1, 0} { // without a session and with
			for _, l := range twiceLayouts {
				req := fetchRequest(0, 0)
				req.SessionEpoch, req.Topics = epoch, nil
				sent := int64(0)
				for _, list := range l.asked {
					topic := kmsg.NewFetchRequestTopic()
					topic.Topic, topic.TopicID = "three", threeID
					for _, i := range list {
						p := kmsg.NewFetchRequestTopicPartition()
						p.Partition, p.FetchOffset, p.PartitionMaxBytes = i, sent, 1<<20
						topic.Partitions = append(topic.Partitions, p)
						sent++
					}
					req.Topics = append(req.Topics, topic)
				}
				resp := call[*kmsg.FetchResponse](c, version, req)
				var got []int32
				for _, topic := range resp.Topics {
					for _, p := range topic.Partitions {
						if first := values(t, p.RecordBatches, int64(l.last[len(got)]))[0]; first != fmt.Sprint(l.last[len(got)]) && version >= 4 {
							t.Errorf("version %d, %v: partition %d begins with %s", version, l.asked, p.Partition, first)
						}
						got = append(got, p.Partition)
					}
				}
				if len(resp.Topics) != 1 || !slices.Equal(got, l.want) {
					t.Errorf("version %d, epoch %d, %v: got %v, want %v", version, epoch, l.asked, got, l.want)
				}
			}
		}
	}
}

// A topic that goes by its id has one: zeros are no topic, and none without a name.
func TestFetchTopicIDOfZeros(t *testing.T) {
	c := nodeOfThree(t).client()
	for _, version := range []int16{13, 18} {
		for _, epoch := range []int32{-1, 0} {
			req := fetchRequest(0, 0)
			req.SessionEpoch, req.Topics[0].TopicID = epoch, uuid.UUID{}
			resp := call[*kmsg.FetchResponse](c, version, req)
			if got := resp.Topics[0].Partitions[0].ErrorCode; got != kerr.UnknownTopicID.Code {
				t.Errorf("version %d, session epoch %d: got %v, want UNKNOWN_TOPIC_ID", version, epoch, kerr.ErrorForCode(got))
			}
		}
	}
}

func TestListOffsetsPartitionTwice(t *testing.T) {
	c := nodeOfThree(t).client()
	for _, asked := range []layout{{{0, 1, 0}}, {{0, 1}, {0}}, {{0, 0, 1, 0}}} {
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		for _, list := range asked {
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = "three"
			for _, i := range list {
				p := kmsg.NewListOffsetsRequestTopicPartition()
				p.Partition, p.Timestamp, p.CurrentLeaderEpoch = i, -1, -1
				topic.Partitions = append(topic.Partitions, p)
			}
			req.Topics = append(req.Topics, topic)
		}
		resp := call[*kmsg.ListOffsetsResponse](c, 11, req)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("%v: got %+v", asked, resp.Topics)
		}
		twice, once := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
		if twice.Partition != 0 || twice.ErrorCode != kerr.InvalidRequest.Code || once.Partition != 1 || once.ErrorCode != 0 || once.Offset != 0 {
			t.Errorf("%v: got %+v", asked, resp.Topics[0].Partitions)
		}
	}
}

func TestDeleteRecordsPartitionTwice(t *testing.T) {
	c := nodeOfThree(t).client()
	req := produceRequest(1, 0, logtest.Values(t, record.BuilderOptions{}, "0", "1", "2"))
	req.Topics[0].Topic = "three"
	call[*kmsg.ProduceResponse](c, 9, req)
	f := func(offsets []int64, want int64) {
		t.Helper()
		req := kmsg.NewPtrDeleteRecordsRequest()
		topic := kmsg.NewDeleteRecordsRequestTopic()
		topic.Topic = "three"
		for _, offset := range offsets {
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Offset = offset
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
		resp := call[*kmsg.DeleteRecordsResponse](c, 2, req)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].LowWatermark != want {
			t.Errorf("%v: got %+v, want %d once", offsets, resp.Topics, want)
		}
	}
	f([]int64{99, 1}, 1)
	f([]int64{3, 2}, 2)
	f([]int64{1, 99}, -1)
}

// A request that nobody sends is refused before it takes memory for each partition.
func TestProduceManyTwice(t *testing.T) {
	n := nodeOfThree(t)
	req := produceRequest(1, 0)
	for i := range int32(producedTwiceMax) {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: i})
	}
	c := n.client()
	if resp := call[*kmsg.ProduceResponse](c, 9, req); len(resp.Topics[0].Partitions) != producedTwiceMax {
		t.Errorf("got %d answers", len(resp.Topics[0].Partitions))
	}
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{})
	c.send(9, req)
	if resp, ok := c.receive(req); ok {
		t.Errorf("got an answer: %T", resp)
	}
}

// BenchmarkManyPartitions is what looking for doubles costs, among what else a request costs.
func BenchmarkManyPartitions(b *testing.B) {
	n := startNode(b, vfs.OS, b.TempDir())
	const partitions = 100
	var list []*metadata.PartitionRecord
	for range partitions {
		list = append(list, testPartition(testNode, testNode))
	}
	n.Commit(testTopic("many", 9, list...)...)
	produce, fetch := produceRequest(1, 0), fetchRequest(0, 0)
	produce.Topics[0].Topic, fetch.Topics[0].Topic = "many", "many"
	set, asked := logtest.Values(b, record.BuilderOptions{}, "v"), fetch.Topics[0].Partitions[0]
	fetch.Topics[0].Partitions = nil
	for i := range int32(partitions) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i*37%partitions, set
		asked.Partition = p.Partition
		produce.Topics[0].Partitions = append(produce.Topics[0].Partitions, p)
		fetch.Topics[0].Partitions = append(fetch.Topics[0].Partitions, asked)
	}
	b.Run("produce", func(b *testing.B) { benchmarkHandle(b, n, 9, produce) })
	b.Run("fetch", func(b *testing.B) { benchmarkHandle(b, n, 12, fetch) })
}
