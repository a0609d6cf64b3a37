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
	c, brokers := s.Config(), s.usableBrokers()
	switch name {
	case topic.ConsumerOffsets:
		return internalTopic(name, c.Int("offsets.topic.num.partitions"), c.InternalTopicFactor("offsets.topic.replication.factor", brokers),
			map[string]string{
				"compression.type": "producer",
				"segment.bytes":    strconv.Itoa(c.Int("offsets.topic.segment.bytes")),
			})
	case topic.TransactionState:
		return internalTopic(name, c.Int("transaction.state.log.num.partitions"), c.InternalTopicFactor("transaction.state.log.replication.factor", brokers),
			map[string]string{
				"compression.type":               "uncompressed",
				"segment.bytes":                  strconv.Itoa(c.Int("transaction.state.log.segment.bytes")),
				"min.insync.replicas":            strconv.Itoa(c.InternalTopicFactor("transaction.state.log.min.isr", brokers)),
				"unclean.leader.election.enable": "false",
			})
	}
	return controller.NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
}

// internalTopic describes a topic that keeps the last record of each key.
func internalTopic(name string, partitions, replicas int, configs map[string]string) controller.NewTopic {
	t := controller.NewTopic{
		Name: name, Partitions: int32(partitions), ReplicationFactor: int16(replicas),
		Configs: make(map[string]*string, len(configs)+1),
	}
	configs["cleanup.policy"] = "compact"
	for key, value := range configs {
		t.Configs[key] = &value
	}
	return t
}

func (s *Server) usableBrokers() int {
	brokers := s.Metadata().Brokers()
	return len(slices.DeleteFunc(brokers, func(b *metadata.Broker) bool { return !b.Active() }))
}

// autoCreate creates topics that a client asked about. One that cannot be created stays
// unknown to the client; one that another client has just created is there.
func (s *Server) autoCreate(ctx context.Context, names []string) {
	slices.Sort(names)
	var topics []controller.NewTopic
	for _, name := range slices.Compact(names) {
		topics = append(topics, s.newTopic(name))
	}
	results, err := s.Controller.CreateTopics(ctx, topics, false)
	if err != nil {
		s.Logger.Warn("topics could not be created automatically", "topics", names, "err", err)
	}
	for _, r := range results {
		if r.Err != nil && controller.KindOf(r.Err) != controller.TopicAlreadyExists {
			s.Logger.Warn("topic could not be created automatically", "topic", r.Name, "err", r.Err)
		}
	}
}
