package api

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAlterReplicaLogDirs(t *testing.T) {
	s := cluster(t, "log.dirs=/data,/other", "metadata.log.dir=/meta")
	long := strings.Repeat("x", 249)
	createTopic(t, s, newTestTopic("orders", 1), 0)
	createTopic(t, s, newTestTopic(long, 1), 0)
	f := func(dir, topic string, want *kerr.Error) {
		t.Helper()
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		d := kmsg.NewAlterReplicaLogDirsRequestDir()
		d.Dir = dir
		d.Topics = []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: []int32{0}}}
		req.Dirs = append(req.Dirs, d)
		resp := ask[kmsg.AlterReplicaLogDirsResponse](t, s, 2, req)
		if len(resp.Topics) != 1 || resp.Topics[0].Topic != topic || len(resp.Topics[0].Partitions) != 1 {
			t.Fatalf("got %+v", resp)
		}
		wantCode := int16(0)
		if want != nil {
			wantCode = want.Code
		}
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != wantCode {
			t.Errorf("%s to %s: got %v, want %v", topic, dir, kerr.ErrorForCode(got), want)
		}
	}
	f("/nowhere", "orders", kerr.LogDirNotFound)
	f("/other", "unknown", kerr.UnknownTopicOrPartition)
	home, away := homeOf(t, s, "orders"), "/other"
	if home == away {
		away = "/data"
	}
	f(home, "orders", nil)
	if got := dirsOf(t, s, "orders"); len(got[away]) > 0 {
		t.Errorf("a copy in %s: %+v", away, got)
	}
	f(away, "orders", nil)
	if got := dirsOf(t, s, "orders")[away]; len(got) != 1 || got[0].OffsetLag != 0 { // a copy, or the replica already
		t.Errorf("nothing in %s: %+v", away, got)
	}
	f(home, "orders", nil) // the copy is given up, or the replica comes back
	awaitOnly(t, s, "orders", home)
	other := "/other"
	if homeOf(t, s, long) == other {
		other = "/data"
	}
	f(other, long, kerr.InvalidTopicException)
	if err := s.Logs.Fail(home, errors.New("disk on fire")); err != nil {
		t.Fatal(err)
	}
	f(home, "orders", kerr.LogDirNotFound)
	f(away, "orders", kerr.KafkaStorageError)
}

// awaitOnly waits until the only partition of a topic is in a directory, and no copy of it anywhere.
func awaitOnly(t *testing.T, s *Server, topic, dir string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := dirsOf(t, s, topic)
		if len(got) == 1 && len(got[dir]) == 1 && !got[dir][0].IsFuture {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not only in %s: %+v", topic, dir, got)
		}
	}
}

// homeOf returns the directory that the only partition of a topic is in.
func homeOf(t *testing.T, s *Server, topic string) string {
	t.Helper()
	for dir := range dirsOf(t, s, topic) {
		return dir
	}
	t.Fatalf("%s is nowhere", topic)
	return ""
}

// dirsOf returns what each log directory has of a topic.
func dirsOf(t *testing.T, s *Server, topic string) map[string][]kmsg.DescribeLogDirsResponseDirTopicPartition {
	t.Helper()
	found := make(map[string][]kmsg.DescribeLogDirsResponseDirTopicPartition)
	for _, d := range ask[kmsg.DescribeLogDirsResponse](t, s, 4, kmsg.NewPtrDescribeLogDirsRequest()).Dirs {
		for _, described := range d.Topics {
			if described.Topic == topic {
				found[d.Dir] = append(found[d.Dir], described.Partitions...)
			}
		}
	}
	return found
}

// The directory that was named last counts, as in Kafka.
func TestAlterReplicaLogDirsPartitionTwice(t *testing.T) {
	s := cluster(t, "log.dirs=/data,/other")
	createTopic(t, s, newTestTopic("orders", 2), 0)
	f := func(dirs []string, want int16) {
		t.Helper()
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		for _, path := range dirs {
			d := kmsg.NewAlterReplicaLogDirsRequestDir()
			d.Dir = path
			d.Topics = []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: "orders", Partitions: []int32{0, 0, 1}}}
			req.Dirs = append(req.Dirs, d)
		}
		resp := ask[kmsg.AlterReplicaLogDirsResponse](t, s, 2, req)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("%v: got %+v", dirs, resp.Topics)
		}
		for _, p := range resp.Topics[0].Partitions {
			if p.ErrorCode != want {
				t.Errorf("%v: got %v, want %v", dirs, kerr.ErrorForCode(p.ErrorCode), kerr.ErrorForCode(want))
			}
		}
	}
	f([]string{"/data"}, 0)
	f([]string{"/data", "/nowhere"}, kerr.LogDirNotFound.Code)
	f([]string{"/nowhere", "/data"}, 0)
}
