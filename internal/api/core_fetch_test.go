package api

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestFetchErrors(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	f := func(partition int32, offset int64, want *kerr.Error) {
		t.Helper()
		for v := int16(4); v <= 18; v++ {
			got := c.fetch(v, partition, offset)
			if got.ErrorCode != want.Code || got.HighWatermark != -1 || got.RecordBatches == nil || len(got.RecordBatches) != 0 {
				t.Errorf("version %d: got %+v, want error %d", v, got, want.Code)
			}
		}
	}
	f(0, 2, kerr.OffsetOutOfRange)
	f(0, -1, kerr.OffsetOutOfRange)
	f(2, 0, kerr.NotLeaderForPartition)
	f(3, 0, kerr.UnknownTopicOrPartition)
	f(-5, 0, kerr.UnknownTopicOrPartition)

	req := fetchRequest(0, 1)
	for epoch, want := range map[int32]int16{-1: 0, 2: kerr.FencedLeaderEpoch.Code, 3: 0, 4: kerr.UnknownLeaderEpoch.Code} {
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		if got := call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions[0].ErrorCode; got != want {
			t.Errorf("leader epoch %d: got error %d, want %d", epoch, got, want)
		}
	}
	req = fetchRequest(2, 0)
	resp := call[*kmsg.FetchResponse](c, 16, req)
	if p := resp.Topics[0].Partitions[0]; p.CurrentLeader.LeaderID != 2 || len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 2 {
		t.Errorf("got leader %+v and brokers %+v, want node 2", p.CurrentLeader, resp.Brokers)
	}
}

func TestFetchDivergingEpoch(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b")) // in epoch 3
	req := fetchRequest(0, 5)
	p := &req.Topics[0].Partitions[0]
	p.LastFetchedEpoch = 3
	got := call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || got.DivergingEpoch.Epoch != 3 || got.DivergingEpoch.EndOffset != 2 {
		t.Errorf("got error %d and %+v, want epoch 3 that ends at 2", got.ErrorCode, got.DivergingEpoch)
	}
	p.FetchOffset = 2
	if got := call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions[0]; got.DivergingEpoch.Epoch != -1 {
		t.Errorf("got %+v, want no diverging epoch", got.DivergingEpoch)
	}
}

// The first partition with records answers one batch whatever the limits; later ones stay
// within them.
func TestFetchLimits(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	for p := range int32(2) {
		for range 3 {
			c.produce(9, 1, p, logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 1000)))
		}
	}
	size := len(logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 1000)))
	f := func(maxBytes, partitionMax int32, want ...int) {
		t.Helper()
		req := fetchRequest(0, 0)
		req.MaxBytes = maxBytes
		second := req.Topics[0].Partitions[0]
		second.Partition = 1
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, second)
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = partitionMax
		}
		var got []int
		for _, p := range call[*kmsg.FetchResponse](c, 12, req).Topics[0].Partitions {
			got = append(got, len(p.RecordBatches))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("max %d, partition max %d: got %v bytes, want %v", maxBytes, partitionMax, got, want)
		}
	}
	f(1<<20, 1<<20, 3*size, 3*size)
	f(0, 0, size, 0)
	f(-1, -1, size, 0)
	f(1<<20, 1, size, 0)
	f(1<<20, int32(size+1), size+1, size+1)
	f(int32(4*size), 1<<20, 3*size, size)
	f(int32(4*size-1), 1<<20, 3*size, 0)
}

func TestFetchWaits(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	producer, consumer := n.client(), n.client()
	req := fetchRequest(0, 0)
	req.MaxWaitMillis, req.MinBytes = 60_000, 200
	second := req.Topics[0].Partitions[0]
	second.Partition = 1
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, second)
	consumer.send(12, req)
	set := logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 50)) // less than 200 bytes
	producer.produce(9, 1, 0, bytes.Clone(set))
	producer.produce(9, 1, 1, bytes.Clone(set))
	resp, ok := consumer.receive(req)
	if !ok {
		t.Fatal("the connection was closed")
	}
	for _, p := range resp.(*kmsg.FetchResponse).Topics[0].Partitions {
		if len(p.RecordBatches) != len(set) {
			t.Errorf("got %d bytes of partition %d, want %d", len(p.RecordBatches), p.Partition, len(set))
		}
	}
}

func TestFetchTimesOutWithoutError(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	req := fetchRequest(0, 0)
	req.MaxWaitMillis = 20
	start := time.Now()
	resp := call[*kmsg.FetchResponse](n.client(), 12, req)
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) != 0 {
		t.Errorf("got %+v, want an empty answer", p)
	}
	if waited := time.Since(start); waited < 20*time.Millisecond {
		t.Errorf("answered after %v, want 20ms at least", waited)
	}
}

// A waiting fetch learns that its topic is gone, or has another leader.
func TestFetchWokenByMetadata(t *testing.T) {
	f := func(version int16, epoch int32, want *kerr.Error, change metadata.Record) {
		t.Helper()
		n := startNode(t, vfs.NewMem(), "data")
		c := n.client()
		req := fetchRequest(0, 0)
		req.MaxWaitMillis = 60_000
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		c.send(version, req)
		p, err := n.Replicas.Partition(topic.Partition{Topic: "t"})
		if err != nil {
			t.Fatal(err)
		}
		for p.Waiting() == 0 {
			runtime.Gosched()
		}
		n.Commit(change)
		resp, ok := c.receive(req)
		if !ok {
			t.Fatal("the connection was closed")
		}
		if got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode; got != want.Code {
			t.Errorf("got error %d, want %d", got, want.Code)
		}
		if p.Waiting() != 0 {
			t.Error("the partition still has a waiting fetch")
		}
	}
	remove := metadata.NewRemoveTopicRecord()
	remove.TopicID = testTopicID
	f(12, -1, kerr.UnknownTopicOrPartition, remove)
	moved := testPartition(2, testNode, 2)
	moved.TopicID, moved.PartitionID, moved.LeaderEpoch, moved.PartitionEpoch = testTopicID, 0, 4, 5
	f(10, -1, kerr.NotLeaderForPartition, moved)
	f(12, 3, kerr.FencedLeaderEpoch, moved) // one that names no epoch goes on at the follower (KIP-392)
}

func TestFetchFromFiles(t *testing.T) {
	n := startNode(t, vfs.OS, t.TempDir())
	c := n.client()
	const count = 40
	for i := range count {
		c.produce(9, 1, int32(i%2), logtest.Values(t, record.BuilderOptions{}, strings.Repeat(fmt.Sprint(i%10), 20_000)))
	}
	req := fetchRequest(0, 0)
	second := req.Topics[0].Partitions[0]
	second.Partition, second.FetchOffset = 1, 18 // the first is sent from the file, this one is read
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, second)
	for _, v := range []int16{4, 11, 12, 18} {
		for range 2 { // pipelined
			c.send(v, req)
		}
		for range 2 {
			resp, ok := c.receive(req)
			if !ok {
				t.Fatal("the connection was closed")
			}
			for i, p := range resp.(*kmsg.FetchResponse).Topics[0].Partitions {
				list := values(t, p.RecordBatches, 0)
				if want := []int{20, 2}[i]; len(list) != want {
					t.Fatalf("version %d: got %d records of partition %d, want %d", v, len(list), i, want)
				}
				for k, value := range list {
					offset := []int{0, 18}[i] + k
					if want := strings.Repeat(fmt.Sprint((2*offset+i)%10), 20_000); value != want {
						t.Errorf("version %d: wrong record at offset %d of partition %d", v, offset, i)
					}
				}
			}
		}
	}
}

func TestFetchSession(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	fetch := func(version int16, id, epoch int32, parts map[int32]int64, forget ...int32) *kmsg.FetchResponse {
		t.Helper()
		req := fetchRequest(0, 0)
		req.SessionID, req.SessionEpoch = id, epoch
		req.Topics[0].Partitions = nil
		for p, offset := range parts {
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchRequest(p, offset).Topics[0].Partitions[0])
		}
		if len(parts) == 0 {
			req.Topics = nil
		}
		if len(forget) > 0 {
			f := kmsg.NewFetchRequestForgottenTopic()
			f.Topic, f.TopicID, f.Partitions = "t", testTopicID, forget
			req.ForgottenTopics = append(req.ForgottenTopics, f)
		}
		return call[*kmsg.FetchResponse](c, version, req)
	}
	// summary lists the partitions of an answer with the size of their records.
	summary := func(r *kmsg.FetchResponse) string {
		var list []string
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				list = append(list, fmt.Sprintf("%d:%d/%d", p.Partition, p.ErrorCode, len(p.RecordBatches)))
			}
		}
		return fmt.Sprint(r.ErrorCode, list)
	}
	want := func(r *kmsg.FetchResponse, text string) {
		t.Helper()
		if got := summary(r); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	for _, v := range []int16{7, 12, 13, 18} {
		start := startOf(t, c)
		set := logtest.Values(t, record.BuilderOptions{}, "v")
		open := fetch(v, 0, 0, map[int32]int64{0: start})
		want(open, "0 [0:0/0]")
		id := open.SessionID
		if id == 0 {
			t.Fatal("no session was opened")
		}
		want(fetch(v, id, 1, nil), "0 []")
		c.produce(9, 1, 0, bytes.Clone(set))
		want(fetch(v, id, 2, nil), fmt.Sprintf("0 [0:0/%d]", len(set)))
		want(fetch(v, id, 3, nil), fmt.Sprintf("0 [0:0/%d]", len(set))) // the offset was not moved
		want(fetch(v, id, 4, map[int32]int64{0: start + 1}), "0 []")
		want(fetch(v, id, 5, map[int32]int64{2: 0}), "0 [2:6/0]")
		want(fetch(v, id, 6, nil), "0 [2:6/0]") // an error is told every time
		want(fetch(v, id, 6, nil), "71 []")
		want(fetch(v, id+1, 1, nil), "70 []")
		want(fetch(v, id, 7, nil, 2), "0 []")
		last := fetch(v, id, 8, nil, 0)
		want(last, "0 []")
		if last.SessionID != 0 {
			t.Errorf("got session %d after the last partition was forgotten, want 0", last.SessionID)
		}
		want(fetch(v, id, 9, nil), "70 []")
	}
	first := fetch(12, 0, 0, map[int32]int64{0: 0})
	second := fetch(12, first.SessionID, 0, map[int32]int64{0: 0})
	if second.SessionID == first.SessionID || second.SessionID == 0 {
		t.Errorf("got session %d after %d", second.SessionID, first.SessionID)
	}
	want(fetch(12, first.SessionID, 1, nil), "70 []")
	want(fetch(13, second.SessionID, 1, nil), "106 []")
	third := fetch(12, 0, 0, map[int32]int64{0: 0})
	if last := fetch(12, third.SessionID, -1, map[int32]int64{0: 0}); last.SessionID != 0 {
		t.Errorf("got session %d, want none", last.SessionID)
	}
	if n.Sessions.Stats().Sessions != 0 {
		t.Errorf("%d sessions are left, want none", n.Sessions.Stats().Sessions)
	}
}

// startOf returns the end of partition 0.
func startOf(t *testing.T, c *client) int64 {
	t.Helper()
	return c.fetch(12, 0, 0).HighWatermark
}

// An unknown topic id stays in the session; a topic that the session knew is told apart.
func TestFetchSessionOfDeletedTopic(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	req := fetchRequest(0, 0)
	req.SessionEpoch = 0
	unknown := req.Topics[0]
	unknown.TopicID = uuid.UUID{3: 9}
	req.Topics = append(req.Topics, unknown)
	id := call[*kmsg.FetchResponse](c, 13, req).SessionID
	epoch := int32(0)
	f := func(want string) {
		t.Helper()
		req := kmsg.NewPtrFetchRequest()
		epoch++
		req.ReplicaID, req.MaxBytes, req.SessionID, req.SessionEpoch = -1, 1<<20, id, epoch
		var list []int16
		for _, t := range call[*kmsg.FetchResponse](c, 13, req).Topics {
			list = append(list, t.Partitions[0].ErrorCode)
		}
		if got := fmt.Sprint(list); got != want {
			t.Errorf("got errors %s, want %s", got, want)
		}
	}
	f("[100]")
	remove := metadata.NewRemoveTopicRecord()
	remove.TopicID = testTopicID
	n.Commit(remove)
	f("[3 100]")
	n.Commit(testTopic("t", 8, testPartition(testNode, testNode))...)
	f("[103 100]")
}

func TestListOffsets(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	list := func(version int16, partition int32, timestamp int64) (int16, int64) {
		t.Helper()
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = "t"
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, timestamp, -1
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		got := call[*kmsg.ListOffsetsResponse](c, version, req).Topics[0].Partitions[0]
		return got.ErrorCode, got.Offset
	}
	f := func(version int16, partition int32, timestamp int64, wantCode int16, wantOffset int64) {
		t.Helper()
		if code, offset := list(version, partition, timestamp); code != wantCode || offset != wantOffset {
			t.Errorf("version %d, timestamp %d: got error %d and offset %d, want %d and %d", version, timestamp, code, offset, wantCode, wantOffset)
		}
	}
	f(1, 0, -1, 0, 0)
	f(7, 0, -3, 0, -1)
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b", "c"))
	for v := int16(1); v <= 11; v++ {
		f(v, 0, -1, 0, 3)
		f(v, 0, -2, 0, 0)
		f(v, 0, 1, 0, 0)
		f(v, 0, time.Now().Add(time.Hour).UnixMilli(), 0, -1)
		f(v, 2, -1, kerr.NotLeaderForPartition.Code, -1)
		f(v, 9, -1, kerr.UnknownTopicOrPartition.Code, -1)
	}
	f(6, 0, -3, kerr.UnsupportedVersion.Code, -1)
	f(8, 0, -4, 0, 0)
	f(9, 0, -5, 0, -1)
	f(11, 0, -6, 0, -1)
	f(11, 0, -7, kerr.UnsupportedVersion.Code, -1)
}

func TestDeleteRecords(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b", "c"))
	f := func(partition int32, offset, wantLow int64, wantCode int16) {
		t.Helper()
		req := kmsg.NewPtrDeleteRecordsRequest()
		topic := kmsg.NewDeleteRecordsRequestTopic()
		topic.Topic = "t"
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = partition, offset
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		got := call[*kmsg.DeleteRecordsResponse](c, 2, req).Topics[0].Partitions[0]
		if got.LowWatermark != wantLow || got.ErrorCode != wantCode {
			t.Errorf("delete to %d: got %d, error %d, want %d, error %d", offset, got.LowWatermark, got.ErrorCode, wantLow, wantCode)
		}
	}
	f(0, 4, -1, kerr.OffsetOutOfRange.Code)
	f(0, 1, 1, 0)
	f(0, 0, 1, 0)
	f(0, -1, 3, 0)
	f(2, 0, -1, kerr.NotLeaderForPartition.Code)
	if got := c.fetch(12, 0, 0); got.ErrorCode != kerr.OffsetOutOfRange.Code {
		t.Errorf("fetch below the log start: got error %d", got.ErrorCode)
	}
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	f := func(epoch, wantEpoch int32, wantEnd int64) {
		t.Helper()
		for v := int16(0); v <= 4; v++ {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.ReplicaID = -1
			topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
			topic.Topic = "t"
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = 0, -1, epoch
			topic.Partitions = append(topic.Partitions, p)
			req.Topics = append(req.Topics, topic)
			got := call[*kmsg.OffsetForLeaderEpochResponse](c, v, req).Topics[0].Partitions[0]
			if v == 0 {
				got.LeaderEpoch = wantEpoch // not in this version
			}
			if got.ErrorCode != 0 || got.LeaderEpoch != wantEpoch || got.EndOffset != wantEnd {
				t.Errorf("version %d, epoch %d: got %+v, want epoch %d, end %d", v, epoch, got, wantEpoch, wantEnd)
			}
		}
	}
	f(3, 3, 0) // the leader's epoch, in which nothing was written yet
	f(4, -1, -1)
	f(-1, -1, -1)
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b"))
	f(3, 3, 2)
	f(4, -1, -1)
}

func TestApiVersions(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	for v := int16(0); v <= 5; v++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1.0"
		resp := call[*kmsg.ApiVersionsResponse](c, v, req)
		if resp.ErrorCode != 0 || len(resp.ApiKeys) < 5 {
			t.Errorf("version %d: got %+v", v, resp)
		}
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "bad name", "-"
	if resp := call[*kmsg.ApiVersionsResponse](c, 3, req); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("bad name: got error %d", resp.ErrorCode)
	}
	// A version of the future, with a body that we cannot read.
	future := []byte{0, 0, 0, 13, 0, 18, 0, 99, 0, 0, 0, 77, 0xff, 0xff, 0xff, 0xff, 0xff}
	if _, err := c.c.Write(future); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4+4+2+4+6)
	if _, err := c.c.Read(answer); err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 0, 0, 16, 0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}
	if !bytes.Equal(answer, want) {
		t.Errorf("got %x, want %x", answer, want)
	}
}

// What Kafka 4.4 answers a client that names the cluster and the broker it means (KIP-1242).
func TestApiVersionsMisrouted(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	f := func(version int16, cluster *string, node int32, want int16) {
		t.Helper()
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1.0"
		req.ClusterID, req.NodeID = cluster, node
		resp := call[*kmsg.ApiVersionsResponse](c, version, req)
		if resp.ErrorCode != want || (len(resp.ApiKeys) > 0) != (want == 0) {
			t.Errorf("node %d: got error %d and %d keys, want %d", node, resp.ErrorCode, len(resp.ApiKeys), want)
		}
	}
	own, other, none := &n.ClusterID, kmsg.StringPtr("other"), kmsg.StringPtr("")
	f(5, nil, -1, 0)
	f(5, own, n.NodeID, 0)
	f(4, other, n.NodeID+1, 0) // which do not travel
	for _, node := range []int32{n.NodeID, 0, -2} {
		f(5, nil, node, kerr.InvalidRequest.Code)
	}
	for _, cluster := range []*string{own, other, none} {
		f(5, cluster, -1, kerr.InvalidRequest.Code)
		f(5, cluster, n.NodeID+1, kerr.RebootstrapRequired.Code)
		f(5, cluster, -2, kerr.RebootstrapRequired.Code)
	}
	f(5, other, n.NodeID, kerr.RebootstrapRequired.Code)
	f(5, none, n.NodeID, kerr.RebootstrapRequired.Code)
}

// A short body that claims a long array must not cost the memory of that array.
func TestHostileArrayLength(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	for _, a := range n.apis {
		if a == nil {
			continue
		}
		for _, length := range [][]byte{{0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0x80, 0x80, 0x04}} {
			body := bytes.Repeat(length, 20)
			r := &Request{Key: a.key, Version: a.max, Listener: testListener, Body: body}
			if a.key != apiVersionsKey {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				n.Handle(context.Background(), r, new(wire.Response))
				runtime.ReadMemStats(&after)
				if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
					t.Errorf("key %d: %d bytes allocated for a body of %d", a.key, grown, len(body))
				}
			}
		}
	}
}

// What cannot be read closes its connection, and no other.
func TestMalformedRequests(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	f := func(key, version int16, body []byte) {
		t.Helper()
		r := &Request{Key: key, Version: version, Listener: testListener, Body: body}
		if err := n.Handle(context.Background(), r, new(wire.Response)); err == nil {
			t.Errorf("key %d version %d was answered with a body of %x", key, version, body)
		}
	}
	f(-1, 0, nil)
	f(1000, 0, nil)
	f(4, 0, nil) // LeaderAndIsr
	f(0, 14, nil)
	f(0, -1, nil)
	f(1, 19, nil)
	produce, fetch := produceRequest(1, 0, logtest.Values(t, record.BuilderOptions{}, "v")), fetchRequest(0, 0)
	for _, req := range []kmsg.Request{produce, fetch} {
		for v := int16(3); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			body := req.AppendTo(nil)
			for i := range body {
				f(req.Key(), v, body[:i])
			}
			f(req.Key(), v, append(body, 0))
		}
	}
	if got := n.client().fetch(12, 0, 0); got.HighWatermark != 0 {
		t.Errorf("high watermark %d: a broken request was appended", got.HighWatermark)
	}
}

// What a handler keeps of its request does not change when the next one is read.
func TestDecodedRequestMayBeKept(t *testing.T) {
	req := kmsg.NewPtrSyncGroupRequest()
	assignment := kmsg.NewSyncGroupRequestGroupAssignment()
	assignment.MemberID, assignment.MemberAssignment = "m", []byte("assignment")
	req.GroupAssignment = append(req.GroupAssignment, assignment)
	req.SetVersion(5)
	body := req.AppendTo(nil)
	kept := kmsg.NewPtrSyncGroupRequest()
	kept.SetVersion(5)
	if err := new(Server).decode(kept, body); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got := kept.GroupAssignment[0]; got.MemberID != "m" || string(got.MemberAssignment) != "assignment" {
		t.Errorf("got %+v", got)
	}
}

// Fetch carries who asks to the partition: a follower sees the log end, and where it is counts; another broker is none.
func TestFetchByFollowers(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	followed := testPartition(testNode, testNode, 2)
	followed.TopicID, followed.PartitionID, followed.LeaderEpoch, followed.PartitionEpoch = testTopicID, 0, 4, 5
	n.Commit(followed)
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	f := func(version int16, id, epoch int32, offset int64, want *kerr.Error) (hw int64, size int) {
		t.Helper()
		req := fetchRequest(0, offset)
		req.IsolationLevel = 1
		req.ReplicaID, req.ReplicaState.ID = id, id
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		p := call[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
		code := int16(0)
		if want != nil {
			code = want.Code
		}
		if p.ErrorCode != code {
			t.Errorf("version %d, broker %d in epoch %d: got error %d, want %d", version, id, epoch, p.ErrorCode, code)
		}
		return p.HighWatermark, len(p.RecordBatches)
	}
	for _, v := range []int16{5, 9, 12, 15, 18} {
		epoch := int32(4)
		if v < 9 {
			epoch = -1
		} else {
			f(v, 3, epoch, 0, kerr.UnknownLeaderEpoch)
			f(v, 2, 3, 0, kerr.FencedLeaderEpoch)
		}
		f(v, 3, -1, 0, kerr.NotLeaderForPartition)
		if hw, size := f(v, 2, epoch, 0, nil); hw != 0 || size == 0 {
			t.Errorf("version %d: a follower got high watermark %d and %d bytes", v, hw, size)
		}
		if hw, size := f(v, -1, epoch, 0, nil); hw != 0 || size != 0 {
			t.Errorf("version %d: a consumer got high watermark %d and %d bytes", v, hw, size)
		}
	}
	f(15, 2, 4, 1, nil)
	if hw, size := f(12, -1, -1, 0, nil); hw != 1 || size == 0 {
		t.Errorf("a consumer got high watermark %d and %d bytes, want what the follower has", hw, size)
	}
	followed.Leader, followed.LeaderEpoch, followed.PartitionEpoch = 2, 5, 6
	n.Commit(followed)
	f(10, -1, 5, 0, kerr.NotLeaderForPartition)
	f(12, 2, 5, 0, kerr.NotLeaderForPartition)
	for _, v := range []int16{11, 18} { // KIP-392
		if hw, size := f(v, -1, 5, 0, nil); hw != 1 || size == 0 {
			t.Errorf("version %d: a consumer got high watermark %d and %d bytes from a follower", v, hw, size)
		}
	}
}
