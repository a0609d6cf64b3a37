package api

import (
	"context"
	"slices"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

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
