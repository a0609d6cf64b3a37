package leader

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/peer"
	"github.com/gregor-kafka/gregor/internal/replica"
)

// A Leader implements replica.Leader.
type Leader struct {
	client *peer.Client
	node   int32 // that follows
	level  func() int16
	fetch  fetchRequest
}

// New returns a Leader that is asked by node over client, in the versions that level, the metadata.version, allows.
func New(client *peer.Client, node int32, level func() int16) *Leader {
	return &Leader{client: client, node: node, level: level}
}

// Close implements replica.Leader.
func (l *Leader) Close() { l.client.Close() }

// Fetch implements replica.Leader.
func (l *Leader) Fetch(ctx context.Context, q *replica.LeaderFetch) (*replica.LeaderAnswer, error) {
	l.fetch.q = q
	resp, err := l.client.Request(ctx, &l.fetch, FetchVersion(l.level()))
	if err != nil {
		return nil, err
	}
	return &resp.(*fetchResponse).answer, nil
}

// LogOffsets implements replica.Leader.
func (l *Leader) LogOffsets(ctx context.Context, topic string, index, epoch int32) (start, end int64, err error) {
	if start, err = l.offset(ctx, topic, index, epoch, earliest); err != nil {
		return -1, -1, err
	}
	end, err = l.offset(ctx, topic, index, epoch, latest)
	return start, end, err
}

// Timestamps of ListOffsets that mean an end of the log.
const (
	latest   = -1
	earliest = -2
)

func (l *Leader) offset(ctx context.Context, topic string, index, epoch int32, timestamp int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = l.node
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.Timestamp = index, epoch, timestamp
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	resp, err := l.client.Request(ctx, req, ListOffsetsVersion(l.level()))
	if err != nil {
		return -1, err
	}
	topics := resp.(*kmsg.ListOffsetsResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 || topics[0].Topic != topic || topics[0].Partitions[0].Partition != index {
		return -1, fmt.Errorf("%w: ListOffsets of %s-%d", ErrMalformed, topic, index)
	}
	answer := &topics[0].Partitions[0]
	return answer.Offset, errorOf(answer.ErrorCode)
}

// errorOf returns the error of package replica, or of the log, that a code stands for; nil for none.
func errorOf(code int16) error {
	if code == 0 {
		return nil
	}
	if err := errs[code]; err != nil {
		return err
	}
	return kerr.ErrorForCode(code)
}
