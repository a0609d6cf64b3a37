package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A ClusterController is the controller of a node that has others beside it: what this broker itself asks for is
// decided by the active one, wherever it is, by Kafka's requests. What clients ask for is sent on as they said it
// (sendOn); the methods for that are this node's.
type ClusterController struct {
	*controller.Controller
	Active      ActiveController
	ClusterID   string
	NodeID      int32
	BrokerEpoch func() int64 // this broker's
}

// CreateTopics creates topics that clients use (auto.create.topics.enable) or that are gregor's own.
func (c *ClusterController) CreateTopics(ctx context.Context, topics []controller.NewTopic, validateOnly bool) ([]controller.CreatedTopic, error) {
	if c.Active.Leads() {
		return c.Controller.CreateTopics(ctx, topics, validateOnly)
	}
	req := createTopicsOf(topics, validateOnly)
	r := &Request{Key: req.Key(), Version: req.Version, CorrelationID: 1, Body: req.AppendTo(nil)}
	body, err := sendOn(ctx, c.Active, r)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrCreateTopicsResponse()
	resp.Version = req.Version
	if err := resp.ReadFrom(body); err != nil {
		return nil, err
	}
	created := make([]controller.CreatedTopic, len(resp.Topics))
	for i, t := range resp.Topics {
		created[i] = controller.CreatedTopic{
			Name: t.Topic, ID: uuid.UUID(t.TopicID), Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor,
			Err: refusalOf(t.ErrorCode, t.ErrorMessage),
		}
	}
	return created, nil
}

func createTopicsOf(topics []controller.NewTopic, validateOnly bool) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.ValidateOnly = 7, validateOnly
	for _, t := range topics {
		asked := kmsg.NewCreateTopicsRequestTopic()
		asked.Topic, asked.NumPartitions, asked.ReplicationFactor = t.Name, t.Partitions, t.ReplicationFactor
		for _, a := range t.Assignments {
			asked.ReplicaAssignment = append(asked.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: a.Partition, Replicas: a.Brokers})
		}
		for _, key := range slices.Sorted(maps.Keys(t.Configs)) {
			asked.Configs = append(asked.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: t.Configs[key]})
		}
		req.Topics = append(req.Topics, asked)
	}
	return req
}

// registerPause is waited for between two attempts to register.
const registerPause = 100 * time.Millisecond

// RegisterBroker registers this broker, again and again until somebody decides it or ctx ends.
func (c *ClusterController) RegisterBroker(ctx context.Context, r controller.Registration) (epoch int64, err error) {
	for {
		epoch, err = c.tryToRegister(ctx, r)
		switch controller.KindOf(err) {
		case "", controller.NotController, controller.DuplicateBrokerRegistration: // which ends with a session
			if err == nil {
				return epoch, nil
			}
		default:
			return epoch, err
		}
		select {
		case <-ctx.Done():
			return -1, fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-time.After(registerPause):
		}
	}
}

func (c *ClusterController) tryToRegister(ctx context.Context, r controller.Registration) (epoch int64, err error) {
	if c.Active.Leads() {
		return c.Controller.RegisterBroker(ctx, r)
	}
	answer, err := c.Active.Ask(ctx, registrationRequest(&r, c.ClusterID), 4)
	if err != nil {
		return -1, err
	}
	resp := answer.(*kmsg.BrokerRegistrationResponse)
	return resp.BrokerEpoch, refusalOf(resp.ErrorCode, nil)
}

// Heartbeat tells the active controller how this broker does.
func (c *ClusterController) Heartbeat(ctx context.Context, h controller.Heartbeat) (a controller.HeartbeatAnswer, err error) {
	if c.Active.Leads() {
		return c.Controller.Heartbeat(ctx, h)
	}
	answer, err := c.Active.Ask(ctx, heartbeatRequest(&h), 2)
	if err != nil {
		return a, err
	}
	resp := answer.(*kmsg.BrokerHeartbeatResponse)
	return controller.HeartbeatAnswer{CaughtUp: resp.IsCaughtUp, Fenced: resp.IsFenced, Shutdown: resp.ShouldShutdown}, refusalOf(resp.ErrorCode, nil)
}

// AssignDirectories tells the active controller where this broker has its replicas.
func (c *ClusterController) AssignDirectories(ctx context.Context, broker int32, list []controller.DirectoryAssignment) error {
	if c.Active.Leads() {
		return c.Controller.AssignDirectories(ctx, broker, list)
	}
	answer, err := c.Active.Ask(ctx, assignmentRequest(broker, c.BrokerEpoch(), list), 0)
	if err != nil {
		return err
	}
	return refusalOf(answer.(*kmsg.AssignReplicasToDirsResponse).ErrorCode, nil)
}

// AllocateProducerIDs implements Controller.
func (c *ClusterController) AllocateProducerIDs(ctx context.Context, broker int32, brokerEpoch int64) (first int64, count int, err error) {
	if c.Active.Leads() {
		return c.Controller.AllocateProducerIDs(ctx, broker, brokerEpoch)
	}
	req := kmsg.NewPtrAllocateProducerIDsRequest()
	req.BrokerID, req.BrokerEpoch = broker, brokerEpoch
	answer, err := c.Active.Ask(ctx, req, 0)
	if err != nil {
		return 0, 0, err
	}
	resp := answer.(*kmsg.AllocateProducerIDsResponse)
	return resp.ProducerIDStart, int(resp.ProducerIDLen), refusalOf(resp.ErrorCode, nil)
}

// refusalOf is the opposite of code for what a controller says.
func refusalOf(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	k := kerr.TypedErrorForCode(code)
	if message == nil {
		message = &k.Description
	}
	return &controller.Error{Kind: controller.Kind(k.Message), Message: *message}
}
