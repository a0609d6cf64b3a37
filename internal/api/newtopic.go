package api

import (
	"context"
	"slices"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// ConfigRules returns the Options of a controller that decides by the configuration, all
// but the Quorum. What a broker's own key is refused for is not told apart from other
// wrong values there: see alterCode.
func ConfigRules(current func() *config.Broker) controller.Options {
	return controller.Options{
		TopicDefaults: func() (int32, int16) {
			c := current()
			return int32(c.Int("num.partitions")), int16(c.Int("default.replication.factor"))
		},
		ValidateConfigs: func(r metadata.ConfigResource, configs map[string]string) error {
			switch r.Type {
			case metadata.ResourceTopic:
				return current().ValidateTopic(configs)
			case metadata.ResourceBroker:
				return current().ValidateDynamic(configs, r.Name != "")
			case metadata.ResourceGroup:
				return config.ValidateGroup(configs)
			default:
				return config.ValidateClientMetrics(configs)
			}
		},
		ListConfig: func(r metadata.ConfigResource, key string) (string, bool) {
			return current().ListDefault(configScopes[r.Type], key)
		},
	}
}

var configScopes = map[int8]config.Scope{
	metadata.ResourceTopic:         config.ScopeTopic,
	metadata.ResourceBroker:        config.ScopeBroker,
	metadata.ResourceGroup:         config.ScopeGroup,
	metadata.ResourceClientMetrics: config.ScopeClientMetrics,
}

// newTopic describes a topic that is created because somebody uses it. Internal topics
// have counts and configurations of their own.
func (s *Server) newTopic(name string) controller.NewTopic {
	t := controller.NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
	switch name {
	case topic.ConsumerOffsets:
		s.internalTopic(&t, "offsets.topic.", map[string]string{"compression.type": "producer"})
	case topic.TransactionState:
		minISR := s.Config().InternalTopicFactor("transaction.state.log.min.isr", s.usableBrokers())
		s.internalTopic(&t, "transaction.state.log.", map[string]string{
			"compression.type": "uncompressed", "unclean.leader.election.enable": "false", "min.insync.replicas": strconv.Itoa(minISR),
		})
	}
	return t
}

// internalTopic sets the counts and configurations that keys with a prefix give.
func (s *Server) internalTopic(t *controller.NewTopic, prefix string, configs map[string]string) {
	c := s.Config()
	t.Partitions = int32(c.Int(prefix + "num.partitions"))
	t.ReplicationFactor = int16(c.InternalTopicFactor(prefix+"replication.factor", s.usableBrokers()))
	configs["cleanup.policy"] = "compact"
	configs["segment.bytes"] = strconv.Itoa(c.Int(prefix + "segment.bytes"))
	t.Configs = make(map[string]*string, len(configs))
	for key, value := range configs {
		t.Configs[key] = &value
	}
}

func (s *Server) usableBrokers() int {
	brokers := s.Metadata().Brokers()
	return len(slices.DeleteFunc(brokers, func(b *metadata.Broker) bool { return !b.Active() }))
}

// autoCreate creates topics that a client asked about. One that cannot be created stays
// unknown to the client.
func (s *Server) autoCreate(ctx context.Context, names []string) {
	slices.Sort(names)
	var topics []controller.NewTopic
	for _, name := range slices.Compact(names) {
		topics = append(topics, s.newTopic(name))
	}
	results, err := s.Controller.CreateTopics(ctx, topics, false)
	if err != nil {
		s.Logger.Warn("topics not created automatically", "topics", names, "err", err)
	}
	for _, r := range results {
		if r.Err != nil {
			s.Logger.Warn("topic not created automatically", "topic", r.Name, "err", r.Err)
		}
	}
}
