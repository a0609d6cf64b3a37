package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// alterPartition changes which replicas are in sync, as the leaders of partitions ask. (KIP-497)
func (s *Server) alterPartition(ctx context.Context, r *Request, req *kmsg.AlterPartitionRequest) (*kmsg.AlterPartitionResponse, error) {
	states, err := s.Partitions.AlterPartition(ctx, req.BrokerID, req.BrokerEpoch, isrChangesOf(req, r.Version))
	resp := kmsg.NewPtrAlterPartitionResponse()
	if resp.ErrorCode = code(err); err != nil {
		return resp, nil
	}
	for _, t := range req.Topics {
		topic := kmsg.NewAlterPartitionResponseTopic()
		topic.TopidID = t.TopicID
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, isrAnswer(p.Partition, &states[0]))
			states = states[1:]
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp, nil
}

func isrAnswer(partition int32, s *controller.ISRState) kmsg.AlterPartitionResponseTopicPartition {
	p := kmsg.NewAlterPartitionResponseTopicPartition()
	p.Partition, p.ErrorCode, p.ISR = partition, code(s.Err), []int32{}
	if s.Err == nil {
		p.LeaderID, p.LeaderEpoch, p.PartitionEpoch, p.ISR = s.Leader, s.LeaderEpoch, s.PartitionEpoch, s.ISR
		p.LeaderRecoveryState = recoveryState(s.Recovering)
	}
	return p
}

func recoveryState(recovering bool) int8 {
	if recovering {
		return metadata.Recovering
	}
	return metadata.Recovered
}

func isrChangesOf(req *kmsg.AlterPartitionRequest, version int16) (changes []controller.ISRChange) {
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			c := controller.ISRChange{
				TopicID: uuid.UUID(t.TopicID), Partition: p.Partition, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
				ISR: p.NewISR, Recovering: p.LeaderRecoveryState == metadata.Recovering,
			}
			if version >= 3 {
				c.ISR = nil
				for _, m := range p.NewEpochISR {
					c.ISR, c.BrokerEpochs = append(c.ISR, m.BrokerID), append(c.BrokerEpochs, m.BrokerEpoch)
				}
			}
			changes = append(changes, c)
		}
	}
	return changes
}

// AlterPartition asks the active controller for other replicas in sync. It is what package replica asks by.
func (c *ClusterController) AlterPartition(ctx context.Context, changes []replica.ISRRequest) ([]replica.ISRAnswer, error) {
	if !c.Active.Leads() {
		return c.askForISRs(ctx, changes)
	}
	asked := make([]controller.ISRChange, len(changes))
	for i, r := range changes {
		asked[i] = controller.ISRChange{
			TopicID: r.TopicID, Partition: r.Index, LeaderEpoch: r.LeaderEpoch, PartitionEpoch: r.PartitionEpoch, ISR: r.ISR, BrokerEpochs: r.BrokerEpochs,
		}
	}
	states, err := c.Controller.AlterPartition(ctx, c.NodeID, c.BrokerEpoch(), asked)
	if err != nil {
		return nil, err
	}
	answers := make([]replica.ISRAnswer, len(changes))
	for i, s := range states {
		answers[i] = replica.ISRAnswer{Err: isrError(code(s.Err)), ISR: s.ISR, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch}
	}
	return answers, nil
}

// askForISRs asks another node. Partitions of one topic come together in the request; who is missing in the answer, or
// not asked for, makes all of it void.
func (c *ClusterController) askForISRs(ctx context.Context, changes []replica.ISRRequest) ([]replica.ISRAnswer, error) {
	answer, err := c.Active.Ask(ctx, c.isrRequest(changes), 3)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.AlterPartitionResponse)
	if err := refusalOf(resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	answers := make([]replica.ISRAnswer, len(changes))
	for i := range answers {
		answers[i].Err = replica.ErrOperationNotAttempted
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			i := slices.IndexFunc(changes, func(r replica.ISRRequest) bool { return r.TopicID == uuid.UUID(t.TopidID) && r.Index == p.Partition })
			if i >= 0 {
				answers[i] = replica.ISRAnswer{Err: isrError(p.ErrorCode), ISR: p.ISR, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch}
			}
		}
	}
	return answers, nil
}

func (c *ClusterController) isrRequest(changes []replica.ISRRequest) *kmsg.AlterPartitionRequest {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.BrokerID, req.BrokerEpoch = c.NodeID, c.BrokerEpoch()
	for _, r := range changes {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].TopicID != r.TopicID {
			req.Topics = append(req.Topics, kmsg.AlterPartitionRequestTopic{TopicID: r.TopicID})
		}
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.PartitionEpoch, p.NewISR = r.Index, r.LeaderEpoch, r.PartitionEpoch, r.ISR
		for i, id := range r.ISR {
			m := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			m.BrokerID, m.BrokerEpoch = id, r.BrokerEpochs[i]
			p.NewEpochISR = append(p.NewEpochISR, m)
		}
		topic := &req.Topics[len(req.Topics)-1]
		topic.Partitions = append(topic.Partitions, p)
	}
	return req
}

// isrErrors are the controller's refusals that a leader acts on.
var isrErrors = []struct {
	code *kerr.Error
	err  error
}{
	{kerr.IneligibleReplica, replica.ErrIneligibleReplica},
	{kerr.OperationNotAttempted, replica.ErrOperationNotAttempted},
	{kerr.FencedLeaderEpoch, replica.ErrFencedLeaderEpoch},
	{kerr.InvalidUpdateVersion, replica.ErrInvalidUpdateVersion},
	{kerr.InvalidRequest, replica.ErrInvalidRequest},
	{kerr.NewLeaderElected, replica.ErrNewLeaderElected},
	{kerr.UnknownTopicOrPartition, replica.ErrUnknownTopicOrPartition},
	{kerr.UnknownTopicID, replica.ErrUnknownTopicID},
}

func isrError(code int16) error {
	for _, e := range isrErrors {
		if e.code.Code == code {
			return e.err
		}
	}
	return refusalOf(code, nil)
}
