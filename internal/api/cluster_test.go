package api

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// cluster starts the parts below the API on a file system in memory: log directory,
// quorum, controller, replicas, and a registered broker.
func cluster(t *testing.T, settings ...string) *Server {
	t.Helper()
	c, _, err := config.Parse(nil, "", append([]string{"log.dirs=/data", fmt.Sprintf("node.id=%d", testNode)}, settings...))
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	logConfig := logdir.BrokerConfig(c)
	logConfig.FS = fs
	logs, err := logdir.Open(logConfig)
	if err != nil {
		t.Fatal(err)
	}
	q, err := quorum.Open(quorum.Options{FS: fs, Dir: "/data", NodeID: testNode, ClusterID: logs.ClusterID()})
	if err != nil {
		t.Fatal(err)
	}
	control := controller.New(controller.Options{Quorum: q, Rules: configRules(c)})
	current := func() *config.Broker {
		img := q.Image()
		now, _ := c.With(img.Configs(metadata.ConfigResource{Type: metadata.ResourceBroker}),
			img.Configs(metadata.ConfigResource{Type: metadata.ResourceBroker, Name: strconv.Itoa(testNode)}))
		return now
	}
	replicas := replica.NewManager(replica.Options{NodeID: testNode, Logs: logs, LogConfig: func(name string) commitlog.Config {
		return logdir.LogConfig(current().Topic(q.Image().TopicConfigs(name)))
	}})
	q.Subscribe(func(_ *metadata.Image, d *metadata.Delta) {
		if err := replicas.Apply(d); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		control.Close()
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := logs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := logs.Load(t.Context(), logdir.LoadOptions{
		LogConfig: func(string) commitlog.Config { return logdir.LogConfig(c.Topic(nil)) },
		Fate:      func(logdir.FoundPartition) logdir.Decision { return logdir.Decision{} },
	}); err != nil {
		t.Fatal(err)
	}
	_, err = control.RegisterBroker(t.Context(), controller.Registration{
		ID: testNode, IncarnationID: uuid.New(), LogDirs: []uuid.UUID{logs.Dirs()[0].ID}, PreviousEpoch: -1,
		Endpoints: []metadata.BrokerEndpoint{{Name: testListener, Host: "localhost", Port: 9092}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(Deps{
		NodeID: testNode, ClusterID: logs.ClusterID(), Config: current, Metadata: replicas.Image,
		Controller: control, Logs: logs, Replicas: replicas,
	})
}

// configRules are the rules of a broker with a fixed configuration.
func configRules(c *config.Broker) controller.Rules {
	return controller.Rules{
		TopicDefaults: func() (int32, int16) {
			return int32(c.Int("num.partitions")), int16(c.Int("default.replication.factor"))
		},
		ValidateConfigs: func(r metadata.ConfigResource, configs map[string]string) error {
			if r.Type == metadata.ResourceTopic {
				return c.ValidateTopic(configs)
			}
			return c.ValidateDynamic(configs, r.Name != "")
		},
		ListConfig: func(r metadata.ConfigResource, key string) (string, bool) {
			if r.Type == metadata.ResourceTopic {
				return c.ListDefault(config.ScopeTopic, key)
			}
			return c.ListDefault(config.ScopeBroker, key)
		},
	}
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
