package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/vfs"
)

// A RunningBroker is a broker of this process as tests see it.
type RunningBroker struct {
	API    *Server
	Addr   string
	Commit func(...metadata.Record)
	Stop   func() error // for tests that want it before their end
}

// StartBroker starts a broker on a file system, which ends with the test. Package broker imports this one:
// broker_test.go, which is outside, says how.
var StartBroker func(t testing.TB, fsys vfs.FS, settings ...string) RunningBroker

// cluster starts a broker in memory.
func cluster(t *testing.T, settings ...string) *Server {
	t.Helper()
	return StartBroker(t, vfs.NewMem(), append([]string{"log.dirs=/data"}, settings...)...).API
}

// createTopic creates a topic and expects an error code.
func createTopic(t *testing.T, s *Server, topic kmsg.CreateTopicsRequestTopic, want int16) kmsg.CreateTopicsResponseTopic {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = []kmsg.CreateTopicsRequestTopic{topic}
	got := ask[kmsg.CreateTopicsResponse](t, s, 7, req).Topics[0]
	if got.ErrorCode != want {
		t.Errorf("create %+v: error %d %s, want %d", topic, got.ErrorCode, textOf(got.ErrorMessage), want)
	}
	if (got.ErrorMessage == nil) != (want == 0) {
		t.Errorf("create %+v: message %q", topic, textOf(got.ErrorMessage))
	}
	return got
}

func newTestTopic(name string, partitions int32, configs ...string) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, -1
	for i := 0; i < len(configs); i += 2 {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	return topic
}
