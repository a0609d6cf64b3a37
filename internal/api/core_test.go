package api

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A node is a broker with topics that come as metadata records, so that others can lead them too.
type node struct {
	*Server
	RunningBroker
	t testing.TB
}

// startNode starts a broker on a file system, with a topic "t" of three partitions: it leads 0 and
// 1, and node 2 leads the last. Configs are those of the topic, pairs of key and value.
func startNode(t testing.TB, fsys vfs.FS, dir string, configs ...string) *node {
	t.Helper()
	n := newNode(t, fsys, dir)
	for i := 0; i < len(configs); i += 2 {
		n.Commit(testConfig(metadata.ResourceTopic, "t", configs[i], configs[i+1]))
	}
	n.Commit(testBroker(testNode, false, testListener), testBroker(2, false, testListener))
	n.Commit(testTopic("t", 7, testPartition(testNode, testNode), testPartition(testNode, testNode), testPartition(2, 2))...)
	return n
}

// newNode starts a broker with what is on a file system.
func newNode(t testing.TB, fsys vfs.FS, dir string) *node {
	t.Helper()
	b := StartBroker(t, fsys, "log.dirs="+dir)
	return &node{b.API, b, t}
}

// A client speaks to a node over a socket.
type client struct {
	t           testing.TB
	c           net.Conn
	correlation int32
}

func (n *node) client() *client {
	n.t.Helper()
	c, err := net.Dial("tcp", n.Addr)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{t: n.t, c: c}
}

func (c *client) send(version int16, req kmsg.Request) {
	c.t.Helper()
	req.SetVersion(version)
	c.correlation++
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	if _, err := c.c.Write(f.AppendRequest(nil, req, c.correlation)); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads the next answer; ok is false when the connection was closed instead.
func (c *client) receive(req kmsg.Request) (resp kmsg.Response, ok bool) {
	c.t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return nil, false
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.c, b); err != nil {
		c.t.Fatal(err)
	}
	b = b[4:]
	if req.IsFlexible() && req.Key() != apiVersionsKey {
		b = b[1:]
	}
	resp = req.ResponseKind()
	if err := resp.ReadFrom(b); err != nil {
		c.t.Fatalf("answer of %T version %d: %v", req, req.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, b) {
		c.t.Errorf("answer of %T version %d is not what kmsg writes:\n got %x\nwant %x", req, req.GetVersion(), b, again)
	}
	return resp, true
}

func call[A kmsg.Response](c *client, version int16, req kmsg.Request) A {
	c.t.Helper()
	c.send(version, req)
	resp, ok := c.receive(req)
	if !ok {
		c.t.Fatalf("%T version %d: the connection was closed", req, version)
	}
	return resp.(A)
}

var testTopicID = uuid.UUID{15: 7}

func produceRequest(acks int16, partition int32, sets ...[]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = "t", testTopicID
	for i, set := range sets {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = partition+int32(i), set
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

func (c *client) produce(version, acks int16, partition int32, set []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := call[*kmsg.ProduceResponse](c, version, produceRequest(acks, partition, set))
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].Partition != partition {
		c.t.Fatalf("got %+v, want an answer for partition %d", resp.Topics, partition)
	}
	if version >= 13 && resp.Topics[0].TopicID != testTopicID || version < 13 && resp.Topics[0].Topic != "t" {
		c.t.Errorf("got topic %q %v", resp.Topics[0].Topic, resp.Topics[0].TopicID)
	}
	return resp.Topics[0].Partitions[0]
}

func fetchRequest(partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 0, 1, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = "t", testTopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func (c *client) fetch(version int16, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	resp := call[*kmsg.FetchResponse](c, version, fetchRequest(partition, offset))
	if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		c.t.Fatalf("got error %d and %+v, want an answer for one partition", resp.ErrorCode, resp.Topics)
	}
	return resp.Topics[0].Partitions[0]
}

// values reads the records of a record set from an offset on.
func values(t testing.TB, set []byte, from int64) (list []string) {
	t.Helper()
	for b, err := range record.Batches(set) {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range b.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset >= from {
				list = append(list, string(r.Value))
			}
		}
	}
	return list
}

func TestProduceAndFetchEveryVersion(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	next := int64(0)
	for v := int16(3); v <= 13; v++ {
		for _, acks := range []int16{1, -1} {
			got := c.produce(v, acks, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b"))
			if got.ErrorCode != 0 || got.BaseOffset != next || got.LogAppendTime != -1 {
				t.Errorf("produce version %d: got %+v, want offset %d", v, got, next)
			}
			next += 2
		}
	}
	for v := int16(4); v <= 18; v++ {
		got := c.fetch(v, 0, next-2)
		if got.ErrorCode != 0 || got.HighWatermark != next || got.LastStableOffset != next {
			t.Errorf("fetch version %d: got %+v", v, got)
		}
		if list := values(t, got.RecordBatches, next-2); fmt.Sprint(list) != "[a b]" {
			t.Errorf("fetch version %d: got records %v", v, list)
		}
	}
	for v := int16(0); v < 4; v++ {
		if got := c.fetch(v, 1, 0); got.ErrorCode != 0 || got.HighWatermark != 0 {
			t.Errorf("fetch version %d of an empty partition: got %+v", v, got)
		}
	}
}

func TestProduceErrors(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data", "max.message.bytes", "500")
	c := n.client()
	good := logtest.Values(t, record.BuilderOptions{}, "v")
	f := func(version, acks int16, partition int32, set []byte, want *kerr.Error) {
		t.Helper()
		got := c.produce(version, acks, partition, bytes.Clone(set))
		if got.ErrorCode != want.Code || got.BaseOffset != -1 {
			t.Errorf("got error %d and offset %d, want error %d (%s)", got.ErrorCode, got.BaseOffset, want.Code, want.Message)
		}
	}
	for v := int16(3); v <= 13; v++ {
		f(v, 1, 2, good, kerr.NotLeaderForPartition)
		f(v, 1, 3, good, kerr.UnknownTopicOrPartition)
		f(v, 1, -1, good, kerr.UnknownTopicOrPartition)
		f(v, 2, 0, good, kerr.InvalidRequiredAcks)
		f(v, 1, 0, nil, kerr.InvalidRecord)
		f(v, 1, 0, append(bytes.Clone(good), good...), kerr.InvalidRecord)
		f(v, 1, 0, logtest.Values(t, record.BuilderOptions{}, string(make([]byte, 600))), kerr.MessageTooLarge)
	}
	broken := bytes.Clone(good)
	broken[len(broken)-1] ^= 1
	f(9, 1, 0, broken, kerr.CorruptMessage)
	f(9, 1, 0, good[:30], kerr.CorruptMessage)
	f(6, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: record.Zstd}, "v"), kerr.UnsupportedCompressionType)
	transactional := logtest.Values(t, record.BuilderOptions{Transactional: true, Producer: &record.Producer{ID: 5}}, "v")
	f(9, 1, 0, transactional, kerr.TransactionalIDAuthorizationFailed)
	if got := c.fetch(13, 0, 0); got.HighWatermark != 0 {
		t.Errorf("high watermark %d after errors, want 0", got.HighWatermark)
	}
	if got := c.produce(7, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: record.Zstd}, "v")); got.ErrorCode != 0 {
		t.Errorf("zstd in version 7: error %d", got.ErrorCode)
	}
	req := produceRequest(1, 0, transactional)
	req.TransactionID = kmsg.StringPtr("payments")
	if got := call[*kmsg.ProduceResponse](c, 9, req).Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidTxnState.Code {
		t.Errorf("no transaction: got %d", got)
	}
	req = produceRequest(1, 0, good)
	req.Topics[0].Topic, req.Topics[0].TopicID = "unknown", uuid.UUID{1}
	if got := call[*kmsg.ProduceResponse](c, 12, req).Topics[0].Partitions[0].ErrorCode; got != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("unknown topic: got %d", got)
	}
	if got := call[*kmsg.ProduceResponse](c, 13, req).Topics[0].Partitions[0].ErrorCode; got != kerr.UnknownTopicID.Code {
		t.Errorf("unknown topic id: got %d", got)
	}
}

func TestProduceToElsewhereNamesTheLeader(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	for v := int16(10); v <= 13; v++ {
		resp := call[*kmsg.ProduceResponse](c, v, produceRequest(1, 2, logtest.Values(t, record.BuilderOptions{}, "v")))
		p := resp.Topics[0].Partitions[0]
		if p.CurrentLeader.LeaderID != 2 || p.CurrentLeader.LeaderEpoch != 3 {
			t.Errorf("version %d: got leader %+v, want node 2 in epoch 3", v, p.CurrentLeader)
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].Host != "hostPLAINTEXT" || resp.Brokers[0].Port != 9002 {
			t.Errorf("version %d: got brokers %+v", v, resp.Brokers)
		}
	}
}

// One partition that fails does not keep the others from being written.
func TestProducePartialSuccess(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	good := logtest.Values(t, record.BuilderOptions{}, "v")
	resp := call[*kmsg.ProduceResponse](n.client(), 9, produceRequest(-1, 0, bytes.Clone(good), good[:20], bytes.Clone(good)))
	var got []int16
	for _, p := range resp.Topics[0].Partitions {
		got = append(got, p.ErrorCode)
	}
	if fmt.Sprint(got) != "[0 2 6]" {
		t.Errorf("got errors %v, want [0 2 6]", got)
	}
}

func TestProduceWithoutAcks(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data")
	c := n.client()
	good := logtest.Values(t, record.BuilderOptions{}, "v")
	c.send(9, produceRequest(0, 0, bytes.Clone(good)))
	if got := c.produce(9, 1, 0, bytes.Clone(good)); got.BaseOffset != 1 { // the next answer is this one's
		t.Errorf("got offset %d, want 1", got.BaseOffset)
	}
	bad := produceRequest(0, 2, bytes.Clone(good))
	c.send(9, bad)
	if _, ok := c.receive(bad); ok {
		t.Error("a failed request without acks was answered, want a closed connection")
	}
}

// Acknowledgements that wait for the disk do not stop the connection, and stay in order.
func TestProduceWithFlush(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data", "flush.messages", "1")
	c := n.client()
	const count = 50
	for i := range count {
		c.send(9, produceRequest(int16(-1+2*(i%2)), int32(i%2), logtest.Values(t, record.BuilderOptions{}, "v")))
	}
	req := produceRequest(1, 0, nil)
	req.SetVersion(9)
	for i := range count {
		resp, ok := c.receive(req)
		if !ok {
			t.Fatal("the connection was closed")
		}
		p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(i/2) || p.Partition != int32(i%2) {
			t.Fatalf("answer %d: got %+v", i, p)
		}
	}
}

func TestProduceFlushFails(t *testing.T) {
	fsys := vfs.NewMem()
	n := startNode(t, fsys, "data", "flush.messages", "1")
	c := n.client()
	broken := errors.New("broken disk")
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return broken
		}
		return nil
	})
	got := c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	if got.ErrorCode != kerr.KafkaStorageError.Code || got.BaseOffset != -1 {
		t.Errorf("got error %d and offset %d, want error 56 and -1", got.ErrorCode, got.BaseOffset)
	}
	// The log takes no more. Clients before version 4 do not know the error.
	for version, want := range map[int16]*kerr.Error{3: kerr.NotLeaderForPartition, 4: kerr.KafkaStorageError} {
		if got := c.produce(version, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v")); got.ErrorCode != want.Code {
			t.Errorf("version %d: got error %d, want %d", version, got.ErrorCode, want.Code)
		}
	}
	fsys.SetHook(nil)
	if err := n.Stop(); !errors.Is(err, broken) { // it was the only directory
		t.Errorf("the broker ended with %v, want the reason", err)
	}
}
