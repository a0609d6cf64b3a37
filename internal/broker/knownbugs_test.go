package broker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Reports from the histories of Kafka and of those who built it again, one test each, over
// the wire. The name says where the report is.

// A batch whose last offset does not fit its number of records is refused, and leaves no
// trace.
func TestKAFKA6554(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	good := logtest.Values(t, record.BuilderOptions{}, "a", "b", "c")
	for _, delta := range []int32{-1, 0, 1, 3, 100, math.MaxInt32, math.MinInt32} {
		refused(t, c, a, fmt.Sprint("last offset delta ", delta), logtest.Lying(good, logtest.LastOffsetDeltaPosition, delta))
	}
	if first := c.mustProduce("t", good); first != 0 {
		t.Errorf("the first good batch is at %d", first)
	}
}

// refused sends a batch with the right CRC that is no valid batch of records.
func refused(t *testing.T, c *wireClient, a *kadm.Client, what string, b record.Batch) {
	t.Helper()
	if got := c.produce("t", b); got.ErrorCode != kerr.InvalidRecord.Code || got.BaseOffset != -1 {
		t.Errorf("%s: error %v, offset %d, want %v and -1", what, kerr.ErrorForCode(got.ErrorCode), got.BaseOffset, kerr.InvalidRecord)
	}
	if end := endOffset(t, a, "t"); end != 0 {
		t.Errorf("%s: the log ends at %d", what, end)
	}
}

// A batch whose header counts other records than it holds, or a record whose number of
// headers is wrong, is refused.
func TestKAFKA5031(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	good := logtest.Values(t, record.BuilderOptions{}, "a", "b", "c")
	for _, count := range []int32{-1, 0, 2, 4, math.MaxInt32} {
		lying := logtest.Lying(logtest.Lying(good, logtest.CountPosition, count), logtest.LastOffsetDeltaPosition, count-1)
		refused(t, c, a, fmt.Sprint("record count ", count), lying)
	}
	// The last byte of a record without headers is their number, as a zigzag varint.
	for _, headers := range []byte{1, 2, 20} { // -1, 1 and 10
		lying := append(record.Batch(nil), good...)
		lying[len(lying)-1] = headers
		refused(t, c, a, fmt.Sprint("header count ", headers), logtest.Lying(lying, logtest.CountPosition, 3))
	}
}

// An index that is full after a few entries, segments that roll after a millisecond: an
// append after a long silence finds a segment, and never one of the same name.
func TestKAFKA6388(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t", "segment.index.bytes", "4", "segment.ms", "1", "index.interval.bytes", "0")
	c := dial(t, b)
	for i := range int64(20) {
		for n := range int64(5) {
			old := record.Record{Timestamp: time.Now().Add(-time.Hour).UnixMilli() + i*10, Value: []byte("v")}
			if first := c.mustProduce("t", logtest.Batch(t, record.BuilderOptions{}, old)); first != i*5+n {
				t.Fatalf("offset %d, want %d", first, i*5+n)
			}
		}
	}
	if n := b.logs.Log(topic.Partition{Topic: "t"}).NumSegments(); n < 20 {
		t.Errorf("%d segments", n)
	}
	next := int64(0)
	for next < 100 {
		for _, v := range values(t, c.fetch("t", next).RecordBatches) {
			if v != fmt.Sprintf("%d=v", next) {
				t.Fatalf("read %s, want offset %d", v, next)
			}
			next++
		}
	}
}

// Names of 249 characters and with dots are created, deleted, and gone after a restart.
func TestKAFKA5232(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	names := []string{strings.Repeat("x", 249), strings.Repeat("a.b-", 62), "with.dots-1"}
	for _, name := range names {
		createTopic(t, admin(t, b), name)
		dial(t, b).mustProduce(name, logtest.Values(t, record.BuilderOptions{}, "v"))
	}
	createTopic(t, admin(t, b), "stays")
	r, err := admin(t, b).DeleteTopics(testContext(t), names...)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop(t, b)

	topics, err := admin(t, start(t, dir)).ListTopics(testContext(t))
	if err != nil || !slices.Equal(topics.Names(), []string{"stays"}) {
		t.Errorf("topics %v, %v", topics.Names(), err)
	}
}

// retention.bytes below segment.bytes is allowed.
func TestKAFKA4092(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t", "segment.bytes", "1048576")
	if err := setTopic(t, a, "t", "retention.bytes", "10"); err != nil {
		t.Error(err)
	}
}

// Values outside their range are refused when a topic is created and when it is changed.
func TestKAFKA6637(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	for _, bad := range [][2]string{{"segment.ms", "0"}, {"retention.ms", "abc"}, {"retention.ms", "-2"}, {"no.such.key", "1"}} { // KAFKA-7781
		key, value := bad[0], bad[1]
		if err := setTopic(t, a, "t", key, value); !errors.Is(err, kerr.InvalidConfig) {
			t.Errorf("alter %s=%s: %v, want %v", key, value, err, kerr.InvalidConfig)
		}
		r, err := a.CreateTopic(testContext(t), 1, 1, map[string]*string{key: &value}, "u")
		if !errors.Is(err, kerr.InvalidConfig) || !strings.Contains(r.ErrMessage, key) {
			t.Errorf("create with %s=%s: %v %q, want %v", key, value, err, r.ErrMessage, kerr.InvalidConfig)
		}
	}
}

// Old librdkafka looks whether Produce version 0 is in the range that is served before it
// compresses.
func TestKAFKA18659(t *testing.T) {
	b := start(t, t.TempDir())
	c := dial(t, b)
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "librdkafka", "1.8.2"
	for _, version := range []int16{0, 3} {
		resp := call[*kmsg.ApiVersionsResponse](c, version, req)
		served := map[kmsg.Key][2]int16{}
		for _, k := range resp.ApiKeys {
			served[kmsg.Key(k.ApiKey)] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		if p := served[kmsg.Produce]; resp.ErrorCode != 0 || p[0] != 0 || p[1] < 7 {
			t.Errorf("version %d: error %d, Produce %v, want 0 to at least 7", version, resp.ErrorCode, p)
		}
		if f := served[kmsg.Fetch]; f[0] > 4 || f[1] < 11 {
			t.Errorf("version %d: Fetch %v, want 4 to 11 in it", version, f)
		}
		// Nothing that is not built is promised.
		for _, key := range []kmsg.Key{kmsg.AlterClientQuotas, kmsg.AlterUserSCRAMCredentials, kmsg.UpdateFeatures} {
			if v, ok := served[key]; ok {
				t.Errorf("version %d: %s %v is advertised", version, kmsg.NameForKey(int16(key)), v)
			}
		}
	}
	// The version that a future client speaks is answered with those that are served.
	future := c.frame(4, req)
	future[7] = 99 // the version, behind the size and the key
	c.write(future)
	req.SetVersion(0)
	resp, err := c.read(c.correlation, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.(*kmsg.ApiVersionsResponse); got.ErrorCode != kerr.UnsupportedVersion.Code || len(got.ApiKeys) != 1 || got.ApiKeys[0].ApiKey != 18 {
		t.Errorf("an unknown version of ApiVersions: %+v", got)
	}
}

// Times out of order, within a batch and between batches: the first record in the order of
// offsets that is late enough.
func TestRedpanda6604(t *testing.T) {
	b := start(t, t.TempDir(), "log.retention.ms=-1")
	a := admin(t, b)
	for name, sizes := range map[string][]int{"in-one-batch": {4}, "in-two": {2, 2}, "alone": {1, 1, 1, 1}, "crosswise": {1, 2, 1}} {
		createTopic(t, a, name)
		for codec := range record.Zstd + 1 {
			c := dial(t, b)
			base := endOffset(t, a, name)
			hour := int64(codec) * 3_600_000 // later than all of the codec before
			times := []int64{1000, 5000, 2000, 3000}
			for _, size := range sizes {
				var records []record.Record
				for _, at := range times[:size] {
					records = append(records, record.Record{Timestamp: hour + at, Value: []byte("v")})
				}
				times = times[size:]
				c.mustProduce(name, logtest.Batch(t, record.BuilderOptions{Codec: codec}, records...))
			}
			for asked, want := range map[int64][2]int64{0: {0, 1000}, 1000: {0, 1000}, 1001: {1, 5000}, 2500: {1, 5000}, 5000: {1, 5000}} {
				if asked == 0 && hour > 0 {
					continue // belongs to the codec before
				}
				if offset, at := c.offsetAt(name, hour+asked); offset != base+want[0] || at != hour+want[1] {
					t.Errorf("%s, %v, time %d: offset %d, time %d, want %d, %d", name, codec, asked, offset-base, at-hour, want[0], want[1])
				}
			}
		}
	}
}

// A time after the last record, or any time in a log whose records are all gone, has no
// offset, which is no error.
func TestRedpanda4308(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	if offset, at := c.offsetAt("t", 0); offset != -1 || at != -1 {
		t.Errorf("empty log: %d at %d", offset, at)
	}
	c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "a", "b"))
	if offset, at := c.offsetAt("t", time.Now().Add(time.Hour).UnixMilli()); offset != -1 || at != -1 {
		t.Errorf("after the last record: %d at %d", offset, at)
	}
	deleteRecords(t, a, "t", 2)
	if offset, at := c.offsetAt("t", 0); offset != -1 || at != -1 {
		t.Errorf("all records deleted: %d at %d", offset, at)
	}
}

func deleteRecords(t *testing.T, a *kadm.Client, topic string, before int64) {
	t.Helper()
	r, err := a.DeleteRecords(testContext(t), kadm.Offsets{topic: {0: {Topic: topic, At: before, LeaderEpoch: -1}}})
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	if low := r[topic][0].LowWatermark; low != before {
		t.Errorf("%s begins at %d, want %d", topic, low, before)
	}
}

// A fetch from the middle of a batch, the last one included, returns the whole batch, at
// once, and the client drops what is before.
func TestNisshiFetchInsideBatch(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t")
	c := dial(t, b)
	c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "a", "b", "c"))
	c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "d", "e", "f"))
	all := []string{"0=a", "1=b", "2=c", "3=d", "4=e", "5=f"}
	for offset := range int64(6) {
		got := c.fetch("t", offset)
		if diff := cmp.Diff(all[offset/3*3:], values(t, got.RecordBatches)); got.ErrorCode != 0 || diff != "" {
			t.Errorf("fetch at %d: error %d, (-want +got):\n%s", offset, got.ErrorCode, diff)
		}
	}
	client := connect(t, b, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(4)}}))
	var got []string
	for len(got) < 2 {
		fetches := client.PollFetches(testContext(t))
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			got = append(got, string(r.Value))
		}
	}
	if diff := cmp.Diff([]string{"e", "f"}, got); diff != "" {
		t.Errorf("a consumer from 4 on (-want +got):\n%s", diff)
	}
}

// A log that begins inside a batch after DeleteRecords: a fetch there returns the batch, a
// fetch before it the place to go on, and never an endless empty answer.
func TestSarama1005(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "a", "b", "c"))
	c.mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "d", "e", "f"))
	deleteRecords(t, a, "t", 4)
	if got := startOffset(t, a, "t"); got != 4 {
		t.Errorf("the log begins at %d, want 4", got)
	}
	for offset := range int64(4) {
		if got := c.fetch("t", offset); got.ErrorCode != kerr.OffsetOutOfRange.Code || len(got.RecordBatches) > 0 {
			t.Errorf("fetch at %d: error %d and %d bytes, want %v", offset, got.ErrorCode, len(got.RecordBatches), kerr.OffsetOutOfRange)
		}
	}
	for offset := int64(4); offset < 6; offset++ {
		got := c.fetch("t", offset)
		if diff := cmp.Diff([]string{"3=d", "4=e", "5=f"}, values(t, got.RecordBatches)); got.ErrorCode != 0 || got.LogStartOffset != 4 || diff != "" {
			t.Errorf("fetch at %d: error %d, log start %d (-want +got):\n%s", offset, got.ErrorCode, got.LogStartOffset, diff)
		}
	}
	if got := c.fetch("t", 6); got.ErrorCode != 0 || len(got.RecordBatches) > 0 {
		t.Errorf("fetch at the end: error %d and %d bytes", got.ErrorCode, len(got.RecordBatches))
	}
}

// A Produce without acknowledgement has no answer; the requests behind it have theirs, in
// order, also when all of them arrive at once.
func TestKfakeD990b5f8(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t")
	c := dial(t, b)
	var sent []byte
	type pending struct {
		nth int32
		req kmsg.Request
	}
	var answered []pending
	for range 50 {
		sent = append(sent, c.frame(9, produceRequest("t", 0, logtest.Values(t, record.BuilderOptions{}, "quiet")))...)
		for _, req := range []kmsg.Request{produceRequest("t", 1, logtest.Values(t, record.BuilderOptions{}, "loud")), kmsg.NewPtrApiVersionsRequest(), fetchRequest("t", 0, 100)} {
			version := map[kmsg.Key]int16{kmsg.Produce: 9, kmsg.Fetch: 12, kmsg.ApiVersions: 2}[kmsg.Key(req.Key())]
			sent = append(sent, c.frame(version, req)...)
			answered = append(answered, pending{c.correlation, req})
		}
	}
	c.write(sent)
	for i, p := range answered {
		resp, err := c.read(p.nth, p.req)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if r, ok := resp.(*kmsg.ProduceResponse); ok {
			if got := r.Topics[0].Partitions[0]; got.ErrorCode != 0 || got.BaseOffset != int64(i/3*2+1) {
				t.Errorf("answer %d: error %d, offset %d, want offset %d", i, got.ErrorCode, got.BaseOffset, i/3*2+1)
			}
		}
	}
}

// group.max.size is read when the broker starts, as in Kafka; a member too many is refused
// before it is given an id.
func TestGroupMaxSize(t *testing.T) {
	b := start(t, t.TempDir(), "group.max.size=1", "group.initial.rebalance.delay.ms=0")
	a := admin(t, b)
	createTopic(t, a, "t")
	if err := setBrokers(t, a, "group.max.size", "2"); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("group.max.size set while the broker runs: %v, want %v", err, kerr.InvalidRequest)
	}
	dial(t, b).mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "v"))
	member := connect(t, b, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if fetches := member.PollFetches(testContext(t)); fetches.NumRecords() != 1 {
		t.Fatalf("the first member got %v", fetches.Errors())
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "g", "consumer", 10_000, 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "cooperative-sticky"}}
	for _, version := range []int16{3, 4, 9} {
		if got := call[*kmsg.JoinGroupResponse](dial(t, b), version, join); got.ErrorCode != kerr.GroupMaxSizeReached.Code {
			t.Errorf("version %d: %v, want %v", version, kerr.ErrorForCode(got.ErrorCode), kerr.GroupMaxSizeReached)
		}
	}
}

// A record without a key has no place in a compacted topic. The answer says which one it is, and
// nothing of the batch is kept.
func TestNisshiKeylessRecord(t *testing.T) {
	b := start(t, t.TempDir())
	a := admin(t, b)
	createTopic(t, a, "t", "cleanup.policy", "compact")
	c := dial(t, b)
	set := logtest.Batch(t, record.BuilderOptions{}, record.Record{Key: []byte("k"), Value: []byte("v")}, record.Record{Offset: 1, Value: []byte("v")})
	answer := c.produce("t", set)
	if answer.ErrorCode != kerr.InvalidRecord.Code || len(answer.ErrorRecords) != 1 || answer.ErrorRecords[0].RelativeOffset != 1 {
		t.Errorf("got %+v, want INVALID_RECORD for record 1", answer)
	}
	if end := endOffset(t, a, "t"); end != 0 {
		t.Errorf("log end %d, want 0", end)
	}
}
