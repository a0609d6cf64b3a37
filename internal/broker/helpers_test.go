package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds everything a test waits for.
const testTimeout = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// start starts a broker on a free port. It is stopped with the test at the latest.
func start(t testing.TB, dir string, set ...string) *Broker {
	t.Helper()
	c, warnings, err := config.Parse(nil, "", append([]string{"log.dirs=" + dir, "listeners=PLAINTEXT://127.0.0.1:0"}, set...))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	b, err := Start(testContext(t), Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

func stop(t testing.TB, b *Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, b *Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func admin(t *testing.T, b *Broker) *kadm.Client {
	t.Helper()
	return kadm.NewClient(connect(t, b))
}

// createTopic creates a topic of one partition. Configs are pairs of key and value.
func createTopic(t *testing.T, a *kadm.Client, name string, configs ...string) kadm.TopicID {
	t.Helper()
	set := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	r, err := a.CreateTopic(testContext(t), 1, 1, set, name)
	if err != nil {
		t.Fatalf("topic %s: %v: %s", name, err, r.ErrMessage)
	}
	return r.ID
}

// setTopic sets a config of a topic.
func setTopic(t *testing.T, a *kadm.Client, topic, key, value string) error {
	t.Helper()
	r, err := a.AlterTopicConfigs(testContext(t), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
	if err != nil {
		t.Fatal(err)
	}
	return r[0].Err
}

// setBrokers sets a config of all brokers.
func setBrokers(t *testing.T, a *kadm.Client, key, value string) error {
	t.Helper()
	r, err := a.AlterBrokerConfigs(testContext(t), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}})
	if err != nil {
		t.Fatal(err)
	}
	return r[0].Err
}

func startOffset(t *testing.T, a *kadm.Client, topic string) int64 {
	t.Helper()
	return listed(t, topic)(a.ListStartOffsets(testContext(t), topic))
}

func endOffset(t *testing.T, a *kadm.Client, topic string) int64 {
	t.Helper()
	return listed(t, topic)(a.ListEndOffsets(testContext(t), topic))
}

func listed(t *testing.T, topic string) func(kadm.ListedOffsets, error) int64 {
	return func(l kadm.ListedOffsets, err error) int64 {
		t.Helper()
		if err == nil {
			err = l.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		o, ok := l.Lookup(topic, 0)
		if !ok {
			t.Fatalf("no offsets of %s in %v", topic, l)
		}
		return o.Offset
	}
}

// eventually asks until what a task of the broker does has happened.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("in vain: " + what)
		}
	}
}

// A wireClient speaks to a broker over one connection, byte by byte if need be.
type wireClient struct {
	t           *testing.T
	c           net.Conn
	correlation int32
}

func dial(t *testing.T, b *Broker) *wireClient {
	t.Helper()
	c, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testTimeout))
	return &wireClient{t: t, c: c}
}

func (c *wireClient) frame(version int16, req kmsg.Request) []byte {
	req.SetVersion(version)
	c.correlation++
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, c.correlation)
}

func (c *wireClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// read reads the answer to a request that was the nth on this connection.
func (c *wireClient) read(nth int32, req kmsg.Request) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.c, b); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != nth {
		return nil, fmt.Errorf("an answer to request %d, want %d", got, nth)
	}
	b = b[4:]
	if req.IsFlexible() && kmsg.Key(req.Key()) != kmsg.ApiVersions {
		b = b[1:]
	}
	resp := req.ResponseKind()
	return resp, resp.ReadFrom(b)
}

// call sends a request and reads its answer.
func call[A kmsg.Response](c *wireClient, version int16, req kmsg.Request) A {
	c.t.Helper()
	c.write(c.frame(version, req))
	resp, err := c.read(c.correlation, req)
	if err != nil {
		c.t.Fatalf("%T version %d: %v", req, version, err)
	}
	return resp.(A)
}

func produceRequest(topic string, acks int16, set []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: set}}}}
	return req
}

// produce sends a record set to partition 0 of a topic.
func (c *wireClient) produce(topic string, set []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return call[*kmsg.ProduceResponse](c, 9, produceRequest(topic, -1, set)).Topics[0].Partitions[0]
}

// mustProduce sends a record set that has to be accepted, and returns its first offset.
func (c *wireClient) mustProduce(topic string, set []byte) int64 {
	c.t.Helper()
	p := c.produce(topic, set)
	if p.ErrorCode != 0 {
		c.t.Fatal(kerr.ErrorForCode(p.ErrorCode))
	}
	return p.BaseOffset
}

func fetchRequest(topic string, offset int64, sizeMax int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 0, 1, sizeMax, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, sizeMax
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return req
}

// fetch reads partition 0 of a topic.
func (c *wireClient) fetch(topic string, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	return call[*kmsg.FetchResponse](c, 12, fetchRequest(topic, offset, 1<<20)).Topics[0].Partitions[0]
}

// offsetAt asks for the first record of a time or later.
func (c *wireClient) offsetAt(topic string, timestamp int64) (offset, at int64) {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = timestamp
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	got := call[*kmsg.ListOffsetsResponse](c, 7, req).Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		c.t.Fatal(kerr.ErrorForCode(got.ErrorCode))
	}
	return got.Offset, got.Timestamp
}

// values lists the offsets and values of a record set.
func values(t *testing.T, set []byte) (list []string) {
	t.Helper()
	for b, err := range record.Batches(set) {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range b.Records() {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%d=%s", r.Offset, r.Value))
		}
	}
	return list
}
