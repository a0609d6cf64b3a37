package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A topic of the same name is another topic: a new id, an empty log, and the old id is
// unknown.
func TestTopicDeletedAndRecreated(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	a := admin(t, b)
	var ids []kadm.TopicID
	for range 3 {
		id := createTopic(t, a, "t")
		c := dial(t, b)
		if first := c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "a", "b")); first != 0 {
			t.Errorf("the first record of topic %s is at %d", id, first)
		}
		for _, old := range ids {
			req := fetchRequest("", 0, 100)
			req.Topics[0].TopicID = old
			got := call[*kmsg.FetchResponse](c, 13, req).Topics[0].Partitions[0]
			if got.ErrorCode != kerr.UnknownTopicID.Code {
				t.Errorf("a fetch of the deleted topic %s: error %d, want %v", old, got.ErrorCode, kerr.UnknownTopicID)
			}
			if old == id {
				t.Errorf("topic id %s again", id)
			}
		}
		ids = append(ids, id)
		if r, err := a.DeleteTopic(testContext(t), "t"); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if got := c.produce("t", logtest.Values(t, record.BuilderOptions{}, "v")); got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("produce to a deleted topic: error %d", got.ErrorCode)
		}
	}
	last := createTopic(t, a, "t")
	stop(t, b)
	b = start(t, dir)
	if details, err := admin(t, b).ListTopics(testContext(t), "t"); err != nil || details["t"].ID != last {
		t.Errorf("after a restart the topic is %+v, %v, want id %s", details["t"], err, last)
	}
	if first := dial(t, b).mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "v")); first != 0 {
		t.Errorf("after a restart the first record is at %d", first)
	}
}

// Changed configs of a topic count from the answer on.
func TestTopicConfigTakesEffect(t *testing.T) {
	b := start(t, t.TempDir(), "log.retention.check.interval.ms=10", "log.initial.task.delay.ms=10")
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	large := logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 2000))

	set := func(key, value string) {
		t.Helper()
		if err := setTopic(t, a, "t", key, value); err != nil {
			t.Fatal(err)
		}
	}
	c.mustProduce("t", large)
	set("max.message.bytes", "1000")
	if got := c.produce("t", large); got.ErrorCode != kerr.MessageTooLarge.Code {
		t.Errorf("above max.message.bytes: error %d, want %v", got.ErrorCode, kerr.MessageTooLarge)
	}
	set("max.message.bytes", "3000")
	c.mustProduce("t", large)

	set("message.timestamp.type", "LogAppendTime")
	if got := c.produce("t", large); got.LogAppendTime < time.Now().Add(-time.Minute).UnixMilli() {
		t.Errorf("message.timestamp.type=LogAppendTime: append time %d", got.LogAppendTime)
	}
	set("compression.type", "zstd")
	at := c.mustProduce("t", large)
	if stored, err := record.First(c.fetch("t", at).RecordBatches); err != nil || stored.Codec() != record.Zstd {
		t.Errorf("compression.type=zstd: stored with %v, %v", stored.Codec(), err)
	}

	set("cleanup.policy", "compact")
	if got := c.produce("t", large); got.ErrorCode != kerr.InvalidRecord.Code {
		t.Errorf("no key in a compacted topic: error %d, want %v", got.ErrorCode, kerr.InvalidRecord)
	}
	set("cleanup.policy", "delete")

	set("message.timestamp.type", "CreateTime")
	old := record.Record{Timestamp: time.Now().Add(-time.Hour).UnixMilli(), Value: []byte("old")}
	createTopic(t, a, "old")
	c.mustProduce("old", logtest.Batch(t, record.BuilderOptions{}, old))
	if err := setTopic(t, a, "old", "retention.ms", "60000"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "retention.ms deletes what is older", func() bool { return startOffset(t, a, "old") == 1 })
	if end := endOffset(t, a, "old"); end != 1 {
		t.Errorf("after retention the log ends at %d, want 1", end)
	}
	if at := startOffset(t, a, "t"); at != 0 {
		t.Errorf("another topic begins at %d", at)
	}
}

// Changed configs of all brokers count at once for the topics that have none of their own,
// and after a restart.
func TestBrokerConfigTakesEffect(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, "log.retention.check.interval.ms=10", "log.initial.task.delay.ms=10")
	a := admin(t, b)
	createTopic(t, a, "t")
	createTopic(t, a, "own", "max.message.bytes", "5000", "retention.ms", "-1")
	c := dial(t, b)
	large := logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 2000))
	check := func(when string) {
		t.Helper()
		if got := c.produce("t", large); got.ErrorCode != kerr.MessageTooLarge.Code {
			t.Errorf("%s: error %d, want %v", when, got.ErrorCode, kerr.MessageTooLarge)
		}
		c.mustProduce("own", large)
	}
	if err := setBrokers(t, a, "message.max.bytes", "1000"); err != nil {
		t.Fatal(err)
	}
	check("message.max.bytes=1000")

	old := record.Record{Timestamp: time.Now().Add(-time.Hour).UnixMilli(), Value: []byte("old")}
	c.mustProduce("t", logtest.Batch(t, record.BuilderOptions{}, old))
	if err := setBrokers(t, a, "log.retention.ms", "60000"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "log.retention.ms deletes what is older", func() bool { return startOffset(t, a, "t") == 1 })
	if at := startOffset(t, a, "own"); at != 0 {
		t.Errorf("a topic with its own retention begins at %d", at)
	}

	stop(t, b)
	b = start(t, dir)
	c, a = dial(t, b), admin(t, b)
	check("after a restart")

	// Back to the default, which is larger.
	r, err := a.AlterBrokerConfigs(testContext(t), []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "message.max.bytes"}})
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r[0].Err)
	}
	c.mustProduce("t", large)

	for name, value := range map[string]string{"log.retention.ms": "soon", "num.partitions": "2"} { // wrong; read-only
		if err := setBrokers(t, a, name, value); !errors.Is(err, kerr.InvalidRequest) {
			t.Errorf("%s=%s for all brokers: %v, want %v", name, value, err, kerr.InvalidRequest)
		}
	}
}

// The settings of groups are checked against the bounds that this broker sets.
func TestGroupConfigBounds(t *testing.T) {
	b := start(t, t.TempDir())
	c := dial(t, b)
	set := func(value string) int16 {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
			ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: "g",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "consumer.session.timeout.ms", Value: &value}},
		}}
		return call[*kmsg.IncrementalAlterConfigsResponse](c, 1, req).Resources[0].ErrorCode
	}
	if got := set("60000"); got != 0 {
		t.Errorf("at the bound: error %d", got)
	}
	if got := set("60001"); got != kerr.InvalidConfig.Code {
		t.Errorf("above the bound: error %d, want %v", got, kerr.InvalidConfig)
	}
}

// A deleted topic takes the offsets that groups committed for it along; the topic that is
// made in its place begins without.
func TestDeletedTopicLosesCommittedOffsets(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	createTopic(t, a, "other")
	committed := func() map[string]int64 {
		t.Helper()
		list, err := a.FetchOffsets(testContext(t), "g")
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int64{}
		list.Each(func(o kadm.OffsetResponse) { at[o.Topic] = o.At })
		return at
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 0, -1)
	offsets.AddOffset("other", 0, 7, -1)
	if err := a.CommitAllOffsets(testContext(t), "g", offsets); err != nil {
		t.Fatal(err)
	}
	if got := committed(); len(got) != 2 {
		t.Fatalf("committed offsets %v", got)
	}
	if r, err := a.DeleteTopic(testContext(t), "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	createTopic(t, a, "t")
	eventually(t, "the committed offset of a deleted topic goes", func() bool {
		at := committed()
		_, there := at["t"]
		return !there && at["other"] == 7
	})
}

// An idempotent producer's batch that is sent again after a restart is not stored twice.
func TestDuplicateAfterRestart(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	createTopic(t, admin(t, b), "t")
	init := call[*kmsg.InitProducerIDResponse](dial(t, b), 4, kmsg.NewPtrInitProducerIDRequest())
	send := func(b *Broker, sequence int32) kmsg.ProduceResponseTopicPartition {
		producer := &record.Producer{ID: init.ProducerID, Epoch: init.ProducerEpoch, BaseSequence: sequence}
		set := logtest.Batch(t, record.BuilderOptions{Producer: producer}, record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("v")})
		return dial(t, b).produce("t", set)
	}
	for sequence := range int32(3) {
		if got := send(b, sequence); got.ErrorCode != 0 || got.BaseOffset != int64(sequence) {
			t.Fatalf("sequence %d: %+v", sequence, got)
		}
	}
	stop(t, b)
	b = start(t, dir)
	if got := send(b, 2); got.ErrorCode != 0 || got.BaseOffset != 2 { // the last one is in the snapshot
		t.Errorf("sequence 2 again: error %d, offset %d, want the offset it has", got.ErrorCode, got.BaseOffset)
	}
	if got := send(b, 5); got.ErrorCode != kerr.OutOfOrderSequenceNumber.Code {
		t.Errorf("sequence 5: error %d, want %v", got.ErrorCode, kerr.OutOfOrderSequenceNumber)
	}
	if got := send(b, 3); got.ErrorCode != 0 || got.BaseOffset != 3 {
		t.Errorf("sequence 3: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	if again := call[*kmsg.InitProducerIDResponse](dial(t, b), 4, kmsg.NewPtrInitProducerIDRequest()); again.ProducerID <= init.ProducerID {
		t.Errorf("producer id %d after %d", again.ProducerID, init.ProducerID)
	}
}

// When no log directory is left the broker says so and can be closed.
func TestLastDirectoryFails(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	createTopic(t, admin(t, b), "t")
	broken := errors.New("the disk is gone")
	b.logs.Fail(dir, broken)
	<-b.Done()
	if err := b.Close(testContext(t)); !errors.Is(err, broken) {
		t.Errorf("Close: %v, want %v", err, broken)
	}
	if b.logs.Log(topic.Partition{Topic: "t"}) != nil {
		t.Error("the log of a failed directory is served")
	}
	b.failure = nil // the test's own Close is not to report it again
}
