package leader

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

func topicID(n byte) uuid.UUID { return uuid.UUID{6: 0x40, 15: n} }

func id(topic byte, index int32) replica.PartitionID {
	return replica.PartitionID{TopicID: topicID(topic), Index: index}
}

func aFetch() *replica.LeaderFetch {
	return &replica.LeaderFetch{
		Follower: replica.Follower{ID: 7, BrokerEpoch: 1 << 40}, MaxWait: 500 * time.Millisecond, MinBytes: 1, MaxBytes: 10 << 20, PartitionMax: 1 << 20,
		SessionID: 99, SessionEpoch: 3,
		Partitions: []replica.AskedPartition{
			{PartitionID: id(1, 0), Offset: 5, LogStart: 2, LeaderEpoch: 4, LastEpoch: 3},
			{PartitionID: id(1, 2), Offset: 1 << 40, LogStart: 0, LeaderEpoch: 1, LastEpoch: -1},
			{PartitionID: id(2, 0), Offset: 0, LogStart: 0, LeaderEpoch: 0, LastEpoch: -1},
		},
		Forgotten: []replica.PartitionID{id(3, 1), id(3, 2)},
	}
}

// What is written is what another codec writes.
func TestRequest(t *testing.T) {
	for version := int16(oldestFetch); version <= 18; version++ {
		r := &fetchRequest{q: aFetch(), version: version}
		want := kmsg.NewPtrFetchRequest()
		want.Version, want.MaxWaitMillis, want.MinBytes, want.MaxBytes, want.SessionID, want.SessionEpoch = version, 500, 1, 10<<20, 99, 3
		if version <= 14 {
			want.ReplicaID = 7
		} else {
			want.ReplicaState.ID, want.ReplicaState.Epoch = 7, 1<<40
		}
		p := func(index int32, offset, start int64, epoch, last int32) kmsg.FetchRequestTopicPartition {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.LogStartOffset, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes = index, offset, start, epoch, last, 1<<20
			return p
		}
		want.Topics = []kmsg.FetchRequestTopic{
			{TopicID: topicID(1), Partitions: []kmsg.FetchRequestTopicPartition{p(0, 5, 2, 4, 3), p(2, 1<<40, 0, 1, -1)}},
			{TopicID: topicID(2), Partitions: []kmsg.FetchRequestTopicPartition{p(0, 0, 0, 0, -1)}},
		}
		want.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{TopicID: topicID(3), Partitions: []int32{1, 2}}}
		if got, want := r.AppendTo(nil), want.AppendTo(nil); !bytes.Equal(got, want) {
			t.Errorf("version %d: got %x, want %x", version, got, want)
		}
	}
}

func anAnswer(version int16) *kmsg.FetchResponse {
	r := kmsg.NewPtrFetchResponse()
	r.Version, r.SessionID = version, 5
	p := func(index int32, code int16, records string) kmsg.FetchResponseTopicPartition {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset, p.RecordBatches = index, code, 10, 9, 8, []byte(records)
		return p
	}
	diverging := p(2, 0, "")
	diverging.DivergingEpoch.Epoch, diverging.DivergingEpoch.EndOffset = 3, 77
	diverging.CurrentLeader.LeaderID, diverging.CurrentLeader.LeaderEpoch = 2, 9
	aborted := p(3, 0, "xyz")
	aborted.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1, FirstOffset: 2}, {ProducerID: 3, FirstOffset: 4}}
	r.Topics = []kmsg.FetchResponseTopic{
		{TopicID: topicID(1), Partitions: []kmsg.FetchResponseTopicPartition{p(0, 0, "records"), p(1, kerr.OffsetOutOfRange.Code, ""), diverging}},
		{TopicID: topicID(2), Partitions: []kmsg.FetchResponseTopicPartition{aborted}},
	}
	if version >= 16 {
		r.Brokers = []kmsg.FetchResponseBroker{{NodeID: 2, Host: "h", Port: 1}}
	}
	return r
}

func TestAnswer(t *testing.T) {
	for version := int16(oldestFetch); version <= 18; version++ {
		r := &fetchResponse{version: version}
		if err := r.ReadFrom(anAnswer(version).AppendTo(nil)); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		want := replica.LeaderAnswer{SessionID: 5, Partitions: []replica.AnsweredPartition{
			{PartitionID: id(1, 0), HighWatermark: 10, LogStart: 8, Records: []byte("records")},
			{PartitionID: id(1, 1), Err: commitlog.ErrOffsetOutOfRange, HighWatermark: 10, LogStart: 8},
			{PartitionID: id(1, 2), Diverging: &replica.EpochEnd{Epoch: 3, End: 77}, HighWatermark: 10, LogStart: 8},
			{PartitionID: id(2, 3), HighWatermark: 10, LogStart: 8, Records: []byte("xyz")},
		}}
		if diff := cmp.Diff(want, r.answer, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("version %d: %s", version, diff)
		}
	}
}

// Records are not copied.
func TestRecordsAreViews(t *testing.T) {
	body := anAnswer(17).AppendTo(nil)
	r := &fetchResponse{version: 17}
	if err := r.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got := r.answer.Partitions[0].Records; len(got) != 7 || got[0] != 0 {
		t.Errorf("the records are %q", got)
	}
}

// An answer that is cut off, or goes on, is refused.
func TestMalformedAnswers(t *testing.T) {
	body := anAnswer(17).AppendTo(nil)
	for n := range body {
		if err := (&fetchResponse{version: 17}).ReadFrom(body[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d of %d bytes: %v", n, len(body), err)
		}
	}
	if err := (&fetchResponse{version: 17}).ReadFrom(append(body, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a byte more: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(anAnswer(17).AppendTo(nil))
	f.Add(anAnswer(13).AppendTo(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &fetchResponse{version: 17}
		if r.ReadFrom(body) == nil && len(r.answer.Partitions)*partitionBytes > len(body) {
			t.Errorf("%d partitions in %d bytes", len(r.answer.Partitions), len(body))
		}
	})
}

func TestErrors(t *testing.T) {
	f := func(code int16, want error) {
		t.Helper()
		if err := errorOf(code); !errors.Is(err, want) {
			t.Errorf("code %d: got %v, want %v", code, err, want)
		}
	}
	f(0, nil)
	f(1, commitlog.ErrOffsetOutOfRange)
	f(3, replica.ErrUnknownTopicOrPartition)
	f(6, replica.ErrNotLeaderOrFollower)
	f(56, kerr.KafkaStorageError)
	f(70, replica.ErrSessionNotFound)
	f(71, replica.ErrSessionEpoch)
	f(74, replica.ErrFencedLeaderEpoch)
	f(75, replica.ErrUnknownLeaderEpoch)
	f(100, replica.ErrUnknownTopicID)
	f(103, replica.ErrInconsistentTopicID)
	f(106, replica.ErrSessionTopicID)
	if errorOf(math.MaxInt16) == nil {
		t.Error("an unknown code is no error")
	}
}

// kraft-interop.md, section 7.
func TestVersions(t *testing.T) {
	fetch, list := map[int16]int16{}, map[int16]int16{}
	for level := int16(7); level <= 33; level++ {
		fetch[level], list[level] = FetchVersion(level), ListOffsetsVersion(level)
	}
	want := map[int16][2]int16{7: {13, 7}, 8: {13, 7}, 9: {14, 8}, 10: {15, 8}, 18: {15, 8}, 19: {16, 8}, 20: {16, 8}, 21: {17, 9}, 24: {17, 9}, 25: {17, 10}, 26: {17, 10}, 27: {18, 10}, 28: {18, 10}, 29: {18, 11}, 33: {18, 11}}
	for level, w := range want {
		if fetch[level] != w[0] || list[level] != w[1] {
			t.Errorf("level %d: Fetch %d, ListOffsets %d, want %v", level, fetch[level], list[level], w)
		}
	}
}
