package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Types of coordinators. That of groups is the only one that there is up to now.
const (
	coordinatorOfGroup       = 0
	coordinatorOfTransaction = 1
)

// errNoTransactions is what a transactional producer is told when it looks for a coordinator or
// for an id. Of all codes this one ends every client known at once, with the text: librdkafka
// tries again after INVALID_REQUEST and UNSUPPORTED_VERSION until its time is up.
var errNoTransactions = refuse(kerr.TransactionalIDAuthorizationFailed, "gregor has no transactions yet")

// findCoordinator names the broker that leads the partition of __consumer_offsets in which
// a group is kept. The first request of all creates the topic.
func (s *Server) findCoordinator(ctx context.Context, r *Request, req *kmsg.FindCoordinatorRequest) (*kmsg.FindCoordinatorResponse, error) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if r.Version < 4 {
		c := s.coordinatorOf(ctx, r, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage = c.ErrorCode, c.ErrorMessage
		resp.NodeID, resp.Host, resp.Port = c.NodeID, c.Host, c.Port
		return resp, nil
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, s.coordinatorOf(ctx, r, req.CoordinatorType, key))
	}
	return resp, nil
}

func (s *Server) coordinatorOf(ctx context.Context, r *Request, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.FindCoordinatorResponseCoordinator{Key: key}
	b, err := s.findGroupCoordinator(ctx, kind, key)
	if err == nil {
		var ok bool
		c.NodeID = b.ID
		if c.Host, c.Port, ok = endpoint(b, r.Listener); ok {
			return c
		}
		err = kerr.CoordinatorNotAvailable
	}
	c.NodeID, c.Host, c.Port = -1, "", -1
	c.ErrorCode, c.ErrorMessage = code(err), message(err)
	return c
}

// findGroupCoordinator returns a broker that clients may connect to.
func (s *Server) findGroupCoordinator(ctx context.Context, kind int8, key string) (*metadata.Broker, error) {
	switch kind {
	case coordinatorOfGroup:
	case coordinatorOfTransaction:
		return nil, errNoTransactions
	default:
		return nil, refuse(kerr.InvalidRequest, "gregor has coordinators of groups only")
	}
	offsets := s.Metadata().Topic(topic.ConsumerOffsets)
	if offsets == nil {
		s.autoCreate(ctx, []string{topic.ConsumerOffsets})
		offsets = s.Metadata().Topic(topic.ConsumerOffsets)
	}
	if offsets == nil {
		return nil, kerr.CoordinatorNotAvailable
	}
	p := offsets.Partitions[topic.PartitionFor(key, int32(len(offsets.Partitions)))]
	b := s.Metadata().Broker(p.Leader)
	if b == nil || b.Fenced {
		return nil, kerr.CoordinatorNotAvailable
	}
	return b, nil
}
