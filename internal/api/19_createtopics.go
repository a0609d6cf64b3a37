package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
)

// createTopics creates topics, or only checks them, and answers with the configuration
// each has from then on. A topic that is asked for twice is refused once.
func (s *Server) createTopics(ctx context.Context, r *Request, req *kmsg.CreateTopicsRequest) (*kmsg.CreateTopicsResponse, error) {
	ctx, cancel := within(ctx, req.TimeoutMillis)
	defer cancel()
	topics := make([]controller.NewTopic, len(req.Topics))
	for i := range req.Topics {
		topics[i] = newTopicOf(&req.Topics[i])
	}
	created, err := s.Controller.CreateTopics(ctx, topics, req.ValidateOnly)
	resp := kmsg.NewPtrCreateTopicsResponse()
	seen := make(map[string]bool, len(topics))
	for i := range topics {
		name := topics[i].Name
		if seen[name] {
			continue
		}
		seen[name] = true
		if err != nil { // of the request as a whole
			resp.Topics = append(resp.Topics, createdTopic(name, err))
			continue
		}
		resp.Topics = append(resp.Topics, s.createdTopic(&created[i]))
		if old := config.OldTopicKeys(created[i].Configs); len(old) > 0 && created[i].Err == nil {
			s.Logger.Warn("topic has keys of older Kafka releases, which have no effect", "topic", name, "keys", old)
		}
	}
	return resp, nil
}

func newTopicOf(asked *kmsg.CreateTopicsRequestTopic) controller.NewTopic {
	t := controller.NewTopic{
		Name: asked.Topic, Partitions: asked.NumPartitions, ReplicationFactor: asked.ReplicationFactor,
		Configs: make(map[string]*string, len(asked.Configs)),
	}
	for _, a := range asked.ReplicaAssignment {
		t.Assignments = append(t.Assignments, controller.Assignment{Partition: a.Partition, Brokers: a.Replicas})
	}
	for _, c := range asked.Configs {
		t.Configs[c.Name] = c.Value
	}
	return t
}

// createdTopic answers a topic without counts and configurations.
func createdTopic(name string, err error) kmsg.CreateTopicsResponseTopic {
	t := kmsg.NewCreateTopicsResponseTopic()
	t.Topic, t.ErrorCode, t.ErrorMessage = name, code(err), message(err)
	t.NumPartitions, t.ReplicationFactor = -1, -1
	t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	return t
}

func (s *Server) createdTopic(c *controller.CreatedTopic) kmsg.CreateTopicsResponseTopic {
	t := createdTopic(c.Name, c.Err)
	if c.Err != nil {
		return t
	}
	t.TopicID, t.NumPartitions, t.ReplicationFactor = c.ID, c.Partitions, c.ReplicationFactor
	for _, e := range s.Config().Topic(c.Configs).Describe() {
		entry := kmsg.NewCreateTopicsResponseTopicConfig()
		entry.Name, entry.Value, entry.Source = e.Name, e.Value, int8(e.Source)
		entry.ReadOnly, entry.IsSensitive = e.ReadOnly, e.Sensitive
		t.Configs = append(t.Configs, entry)
	}
	return t
}
