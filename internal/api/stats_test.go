package api

import (
	"bytes"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/vfs"
)

// statsOf returns what was counted for an API, or the zero value.
func (n *node) statsOf(api string) RequestStats {
	for _, r := range n.RequestStats() {
		if r.API == api {
			return r
		}
	}
	return RequestStats{}
}

func TestRequestStats(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data", "flush.messages", "2")
	c := n.client()
	for range 3 { // some of them are answered at once, some after a sync
		c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	}
	c.produce(3, -1, 2, logtest.Values(t, record.BuilderOptions{}, "v"))
	if got := n.statsOf("Fetch"); got.API != "" {
		t.Errorf("fetches were counted before there was one: %v", got)
	}
	call[*kmsg.FetchResponse](c, 12, fetchRequest(2, 0))
	call[*kmsg.DescribeACLsResponse](c, 3, kmsg.NewPtrDescribeACLsRequest())

	f := func(api string, versions map[int16]int64, errors map[string]int64) {
		t.Helper()
		got := n.statsOf(api)
		if diff := cmp.Diff(versions, got.Versions); diff != "" {
			t.Errorf("%s: versions -want +got\n%s", api, diff)
		}
		if diff := cmp.Diff(errors, got.Errors); diff != "" {
			t.Errorf("%s: errors -want +got\n%s", api, diff)
		}
		want := int64(0)
		for _, count := range versions {
			want += count
		}
		if total, local := got.Total.Count(), got.Local.Count(); total != want || local != want {
			t.Errorf("%s: times of %d requests, local ones of %d, want of %d", api, total, local, want)
		}
	}
	f("Produce", map[int16]int64{9: 3, 3: 1}, map[string]int64{"NOT_LEADER_OR_FOLLOWER": 1})
	f("Fetch", map[int16]int64{12: 1}, map[string]int64{"NOT_LEADER_OR_FOLLOWER": 1})
	f("DescribeACLs", map[int16]int64{3: 1}, map[string]int64{"SECURITY_DISABLED": 1})

	waiting := fetchRequest(0, 3)
	waiting.MaxWaitMillis = 20
	call[*kmsg.FetchResponse](c, 12, waiting)
	f("Fetch", map[int16]int64{12: 2}, map[string]int64{"NOT_LEADER_OR_FOLLOWER": 1})
	waited := func(api string, want int64) {
		t.Helper()
		if got := n.statsOf(api).Remote.Count(); got != want {
			t.Errorf("%s: %d requests waited, want %d", api, got, want)
		}
	}
	waited("Produce", 1) // for a sync
	waited("Fetch", 1)
	waited("DescribeACLs", 0)
}

// The time of a request that waits is local before and remote from then on.
func TestLocalAndRemoteTimes(t *testing.T) {
	var times requestTimes
	times.observe(time.Millisecond, 0)
	times.observe(time.Hour, time.Second)
	f := func(name string, got *metrics.Histogram, list ...time.Duration) {
		t.Helper()
		var want metrics.Histogram
		for _, d := range list {
			want.Observe(d)
		}
		if *got != want {
			t.Errorf("%s times are not %v", name, list)
		}
	}
	f("total", times.total(), time.Millisecond, time.Hour)
	f("local", times.local(), time.Millisecond, time.Second)
	f("remote", &times.waiting.remote, time.Hour-time.Second)
}

func TestTopicStats(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data", "max.message.bytes", "1000")
	c := n.client()
	set := logtest.Values(t, record.BuilderOptions{}, "a", "b", "c")
	size := int64(len(set))
	c.produce(9, 1, 0, bytes.Clone(set))
	broken := bytes.Clone(set)
	broken[len(broken)-1]++
	c.produce(9, 1, 0, broken)
	large := logtest.Values(t, record.BuilderOptions{}, string(make([]byte, 2000)))
	c.produce(9, 1, 0, bytes.Clone(large))
	old := messages(t, record.SetOptions{Magic: 1}, "a")
	c.produce(9, 1, 0, bytes.Clone(old))
	c.produce(2, 1, 0, bytes.Clone(old)) // is converted
	call[*kmsg.FetchResponse](c, 12, fetchRequest(0, 0))
	call[*kmsg.FetchResponse](c, 12, fetchRequest(0, 1000))
	call[*kmsg.FetchResponse](c, 3, fetchRequest(0, 0))

	stats := n.Replicas.Stats()
	f := func(name string, stat replica.TopicStat, want int64) {
		t.Helper()
		if got := stats[stat].Load(); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	f("ProduceRequests", replica.ProduceRequests, 5)
	f("FailedProduceRequests", replica.FailedProduceRequests, 3)
	f("MessagesIn", replica.MessagesIn, 4)
	f("BytesIn", replica.BytesIn, size+int64(len(old)))
	f("BytesRejected", replica.BytesRejected, int64(len(large)))
	f("InvalidCRC", replica.InvalidCRC, 1)
	f("InvalidMagic", replica.InvalidMagic, 1)
	f("ProduceConversions", replica.ProduceConversions, 1)
	f("FetchRequests", replica.FetchRequests, 3)
	f("FailedFetchRequests", replica.FailedFetchRequests, 1)
	f("FetchConversions", replica.FetchConversions, 2)
	if out := stats[replica.BytesOut].Load(); out < 2*size {
		t.Errorf("BytesOut: got %d, want what two fetches got, at least %d", out, 2*size)
	}
}

// Every code of Kafka has a name and a place.
func TestErrorNames(t *testing.T) {
	f := func(code int16, want string) {
		t.Helper()
		if got := errorName(code); got != want {
			t.Errorf("%d: got %s, want %s", code, got, want)
		}
	}
	f(-1, "UNKNOWN_SERVER_ERROR")
	f(1, "OFFSET_OUT_OF_RANGE")
	f(6, "NOT_LEADER_OR_FOLLOWER")
	f(maxErrorCode, strconv.Itoa(maxErrorCode))
	for code := int16(maxErrorCode + 1); code < 1000; code++ {
		if e := kerr.TypedErrorForCode(code); e != nil && e.Code == code {
			t.Errorf("%s has code %d, above maxErrorCode", e.Message, code)
		}
	}
}

// Error codes are found wherever a response has them.
func TestCountCodes(t *testing.T) {
	count := func(response any) map[int16]int64 {
		v := reflect.ValueOf(response)
		stats := &requestStats{versions: make([]atomic.Int64, 1)}
		findCodes(v.Type()).count(v, stats)
		counted := map[int16]int64{}
		for i := range stats.errors {
			if n := stats.errors[i].Load(); n > 0 {
				counted[int16(i-1)] = n
			}
		}
		return counted
	}
	f := func(response any, want map[int16]int64) {
		t.Helper()
		if diff := cmp.Diff(want, count(response)); diff != "" {
			t.Errorf("%T: -want +got\n%s", response, diff)
		}
	}
	f(kmsg.HeartbeatResponse{ErrorCode: 27}, map[int16]int64{27: 1})
	f(kmsg.HeartbeatResponse{ErrorCode: 30_000}, map[int16]int64{-1: 1})
	f(kmsg.HeartbeatResponse{}, map[int16]int64{})
	f(kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{
		{Partitions: []kmsg.OffsetCommitResponseTopicPartition{{ErrorCode: 3}, {ErrorCode: 0}, {ErrorCode: 3}}},
		{Partitions: []kmsg.OffsetCommitResponseTopicPartition{{ErrorCode: -1}}},
	}}, map[int16]int64{3: 2, -1: 1})
	f(kmsg.SASLAuthenticateResponse{ErrorCode: 58}, map[int16]int64{58: 1})
	if found := findCodes(reflect.TypeFor[kmsg.DescribeLogDirsResponseDirTopic]()); found != nil {
		t.Errorf("found error codes %+v where there are none", found)
	}
}
