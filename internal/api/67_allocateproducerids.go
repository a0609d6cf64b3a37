package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// allocateProducerIDs gives a broker a block of producer ids. (KIP-730)
func (s *Server) allocateProducerIDs(ctx context.Context, _ *Request, req *kmsg.AllocateProducerIDsRequest) (*kmsg.AllocateProducerIDsResponse, error) {
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	first, count, err := s.Controller.AllocateProducerIDs(ctx, req.BrokerID, req.BrokerEpoch)
	resp.ErrorCode = code(err)
	if err == nil {
		resp.ProducerIDStart, resp.ProducerIDLen = first, int32(count)
	}
	return resp, nil
}
