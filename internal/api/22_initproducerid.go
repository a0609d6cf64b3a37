package api

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerIDs hands out the producer ids of a block that the controller gave this broker.
// Ids of a block that was not used up are never used again.
type producerIDs struct {
	mu        sync.Mutex // held while the controller commits the next block
	next, end int64
}

// initProducerID gives an idempotent producer its id, with epoch 0.
func (s *Server) initProducerID(ctx context.Context, _ *Request, req *kmsg.InitProducerIDRequest) (*kmsg.InitProducerIDResponse, error) {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = code(errNoTransactions)
		return resp, nil
	}
	if (req.ProducerID == -1) != (req.ProducerEpoch == -1) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	id, err := s.nextProducerID(ctx)
	if err != nil {
		s.Logger.Warn("no producer id", "err", err)
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code // clients try again
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp, nil
}

func (s *Server) nextProducerID(ctx context.Context) (int64, error) {
	p := &s.producerIDs
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == p.end {
		epoch := int64(-1)
		if b := s.Metadata().Broker(s.NodeID); b != nil {
			epoch = b.Epoch
		}
		first, count, err := s.Controller.AllocateProducerIDs(ctx, s.NodeID, epoch)
		if err != nil {
			return 0, err
		}
		p.next, p.end = first, first+int64(count)
	}
	p.next++
	return p.next - 1, nil
}
