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
	mu        sync.Mutex
	next, end int64
	asking    chan struct{} // closed when the request for the next block is answered, or has failed; nil: there is none
}

// take returns an id, if one is left. Else it returns a channel: to wait for if another asks for a
// block, nil if the caller has to and then to call give.
func (p *producerIDs) take() (id int64, ok bool, wait chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next < p.end {
		p.next++
		return p.next - 1, true, nil
	}
	if wait = p.asking; wait == nil {
		p.asking = make(chan struct{})
	}
	return -1, false, wait
}

// give adds what the controller gave, which may be nothing.
func (p *producerIDs) give(first int64, count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if count > 0 {
		p.next, p.end = first, first+int64(count)
	}
	close(p.asking)
	p.asking = nil
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
		s.Logger.Warn("no producer ids could be allocated", "err", err)
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code // clients try again
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp, nil
}

func (s *Server) nextProducerID(ctx context.Context) (int64, error) {
	for {
		id, ok, wait := s.producerIDs.take()
		switch {
		case ok:
			return id, nil
		case wait == nil:
			if err := s.askForProducerIDs(ctx); err != nil {
				return -1, err
			}
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return -1, ctx.Err()
		}
	}
}

// askForProducerIDs gets the next block from the controller.
func (s *Server) askForProducerIDs(ctx context.Context) error {
	epoch := int64(-1)
	if b := s.Metadata().Broker(s.NodeID); b != nil {
		epoch = b.Epoch
	}
	first, count, err := s.Controller.AllocateProducerIDs(ctx, s.NodeID, epoch)
	if err != nil {
		count = 0
	}
	s.producerIDs.give(first, count)
	return err
}
