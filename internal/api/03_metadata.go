package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// metadata answers from this node's image: brokers by the listener of the connection, and
// the topics asked for. Topics that are asked for by name and do not exist are created
// when both the broker and the client allow it.
func (s *Server) metadata(ctx context.Context, r *Request, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	resp := kmsg.NewPtrMetadataResponse()
	if !metadataRequestValid(r.Version, req) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		for _, t := range req.Topics {
			topic := kmsg.NewMetadataResponseTopic()
			topic.ErrorCode, topic.Topic, topic.TopicID = kerr.InvalidRequest.Code, nameOrEmpty(t.Topic), t.TopicID
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil
	}
	img := s.Metadata()
	if r.Version < 4 || req.AllowAutoTopicCreation {
		img = s.createMissing(ctx, img, req.Topics)
	}
	m := metadataAnswer{server: s, img: img, version: r.Version, listener: r.Listener, withOperations: req.IncludeTopicAuthorizedOperations}
	resp.Brokers = m.brokers()
	resp.ClusterID = kmsg.StringPtr(s.ClusterID)
	resp.ControllerID = s.controllerID(img)
	resp.AuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, clusterOperations)
	if req.Topics == nil || r.Version == 0 && len(req.Topics) == 0 {
		resp.Topics = m.allTopics()
	} else {
		resp.Topics = m.topicsOf(req.Topics)
	}
	return resp, nil
}

// metadataRequestValid refuses topics by id from clients that are too old for them.
func metadataRequestValid(version int16, req *kmsg.MetadataRequest) bool {
	if version < 10 || version > 11 {
		return true
	}
	return !slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool {
		return t.Topic == nil || t.TopicID != uuid.Zero
	})
}

func nameOrEmpty(name *string) *string {
	if name == nil {
		return kmsg.StringPtr("")
	}
	return name
}

// createMissing creates the topics that are asked for by a valid name and do not exist,
// if the broker does that, and returns the image with those that could be created.
func (s *Server) createMissing(ctx context.Context, img *metadata.Image, asked []kmsg.MetadataRequestTopic) *metadata.Image {
	if !s.Config().Bool("auto.create.topics.enable") {
		return img
	}
	var names []string
	for _, t := range asked {
		if t.TopicID == uuid.Zero && t.Topic != nil && img.Topic(*t.Topic) == nil && topic.ValidateName(*t.Topic) == nil {
			names = append(names, *t.Topic)
		}
	}
	if len(names) == 0 {
		return img
	}
	s.autoCreate(ctx, names)
	return s.Metadata()
}

// A metadataAnswer builds the parts of one answer from one image.
type metadataAnswer struct {
	server         *Server
	img            *metadata.Image
	version        int16
	listener       string
	withOperations bool
}

// brokers lists those that can be connected to by the listener.
func (m *metadataAnswer) brokers() []kmsg.MetadataResponseBroker {
	brokers := []kmsg.MetadataResponseBroker{}
	for _, b := range m.img.Brokers() {
		host, port, ok := endpoint(b, m.listener)
		if !ok || b.Fenced {
			continue
		}
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = b.ID, host, port, b.Rack
		brokers = append(brokers, broker)
	}
	return brokers
}

func (m *metadataAnswer) allTopics() []kmsg.MetadataResponseTopic {
	topics := make([]kmsg.MetadataResponseTopic, 0, m.img.NumTopics())
	for _, name := range m.img.TopicNames() {
		topics = append(topics, m.topic(m.img.Topic(name)))
	}
	return topics
}

// topicsOf answers each topic that is asked for once.
func (m *metadataAnswer) topicsOf(asked []kmsg.MetadataRequestTopic) []kmsg.MetadataResponseTopic {
	topics := make([]kmsg.MetadataResponseTopic, 0, len(asked))
	seen := make(map[askedTopic]bool, len(asked))
	for _, a := range asked {
		key := askedTopic{id: a.TopicID}
		if a.Topic != nil {
			key.name = *a.Topic
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		if t := m.find(a); t != nil {
			topics = append(topics, m.topic(t))
		} else {
			topics = append(topics, m.missing(a))
		}
	}
	return topics
}

// An askedTopic is a topic as a client named it.
type askedTopic struct {
	name string
	id   uuid.UUID
}

func (m *metadataAnswer) find(a kmsg.MetadataRequestTopic) *metadata.Topic {
	if a.TopicID != uuid.Zero {
		return m.img.TopicByID(a.TopicID)
	}
	if a.Topic == nil {
		return nil
	}
	return m.img.Topic(*a.Topic)
}

func (m *metadataAnswer) missing(a kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = a.Topic, a.TopicID
	switch {
	case a.TopicID != uuid.Zero:
		t.Topic = nil
		t.ErrorCode = kerr.UnknownTopicID.Code
	case a.Topic == nil:
		t.ErrorCode = kerr.InvalidTopicException.Code
	default:
		t.ErrorCode = whyMissing(*a.Topic).Code
		t.IsInternal = topic.IsInternal(*a.Topic)
	}
	if m.version < 12 {
		t.Topic = nameOrEmpty(t.Topic)
	}
	return t
}

func (m *metadataAnswer) topic(t *metadata.Topic) kmsg.MetadataResponseTopic {
	answer := kmsg.NewMetadataResponseTopic()
	answer.Topic, answer.TopicID = &t.Name, t.ID
	answer.IsInternal = topic.IsInternal(t.Name)
	answer.AuthorizedOperations = operations(m.withOperations, topicOperations)
	answer.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		answer.Partitions[i] = m.partition(int32(i), p)
	}
	return answer
}

func (m *metadataAnswer) partition(number int32, p *metadata.Partition) kmsg.MetadataResponseTopicPartition {
	answer := kmsg.NewMetadataResponseTopicPartition()
	answer.Partition = number
	answer.Leader, answer.LeaderEpoch = p.Leader, p.LeaderEpoch
	answer.Replicas, answer.ISR = p.Replicas, p.ISR
	answer.OfflineReplicas = offline(m.img, p)
	answer.ErrorCode = m.leaderError(p)
	if answer.ErrorCode != 0 {
		answer.Leader = metadata.NoLeader
	}
	if m.version == 0 { // clients of version 0 cannot bear replicas that are not there
		answer.Replicas, answer.ISR = m.alive(p.Replicas), m.alive(p.ISR)
		if answer.ErrorCode == 0 && (len(answer.Replicas) < len(p.Replicas) || len(answer.ISR) < len(p.ISR)) {
			answer.ErrorCode = kerr.ReplicaNotAvailable.Code
		}
	}
	return answer
}

// leaderError says why the leader cannot be reached by the listener; 0 when it can.
func (m *metadataAnswer) leaderError(p *metadata.Partition) int16 {
	leader := m.img.Broker(p.Leader)
	if leader == nil || leader.Fenced {
		return kerr.LeaderNotAvailable.Code
	}
	if _, _, ok := endpoint(leader, m.listener); ok {
		return 0
	}
	if m.version < 6 {
		return kerr.LeaderNotAvailable.Code
	}
	return kerr.ListenerNotFound.Code
}

func (m *metadataAnswer) alive(replicas []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(replicas), func(id int32) bool {
		b := m.img.Broker(id)
		return b == nil || b.Fenced
	})
}
