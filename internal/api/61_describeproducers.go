package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// describeProducers lists the producers that the leader of a partition remembers (KIP-664).
func (s *Server) describeProducers(_ context.Context, _ *Request, req *kmsg.DescribeProducersRequest) (*kmsg.DescribeProducersResponse, error) {
	resp := kmsg.NewPtrDescribeProducersResponse()
	for _, asked := range req.Topics {
		answer := kmsg.NewDescribeProducersResponseTopic()
		answer.Topic = asked.Topic
		for _, number := range asked.Partitions {
			producers, err := s.producersOf(topic.Partition{Topic: asked.Topic, Partition: number})
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = number, code(err), message(err)
			for i := range producers {
				p.ActiveProducers = append(p.ActiveProducers, activeProducer(&producers[i]))
			}
			answer.Partitions = append(answer.Partitions, p)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp, nil
}

func (s *Server) producersOf(id topic.Partition) ([]commitlog.ProducerInfo, error) {
	if err := topic.ValidateName(id.Topic); err != nil {
		return nil, refuse(kerr.InvalidTopicException, err.Error())
	}
	p, err := s.Replicas.Partition(id)
	if err != nil {
		return nil, err
	}
	if !p.State().Leading {
		return nil, replica.ErrNotLeaderOrFollower
	}
	log, err := p.Log()
	if err != nil {
		return nil, err
	}
	return log.Producers(), nil
}

func activeProducer(info *commitlog.ProducerInfo) kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
	p.ProducerID, p.ProducerEpoch = info.ProducerID, int32(info.ProducerEpoch)
	p.LastSequence, p.LastTimestamp = info.LastSequence, info.LastTimestamp
	p.CoordinatorEpoch, p.CurrentTxnStartOffset = info.CoordinatorEpoch, info.TxnStartOffset
	return p
}
