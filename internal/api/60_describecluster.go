package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Endpoint types of DescribeCluster (KIP-919).
const (
	endpointsOfBrokers     = 1
	endpointsOfControllers = 2
)

// describeCluster lists the brokers as Metadata does, fenced ones too when asked.
func (s *Server) describeCluster(_ context.Context, r *Request, req *kmsg.DescribeClusterRequest) (*kmsg.DescribeClusterResponse, error) {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ControllerID = -1
	if r.Version >= 1 && req.EndpointType != endpointsOfBrokers {
		refused := kerr.UnsupportedEndpointType
		if req.EndpointType == endpointsOfControllers {
			refused = kerr.MismatchedEndpointType
		}
		resp.ErrorCode, resp.ErrorMessage = refused.Code, kmsg.StringPtr("this listener is for brokers: want endpoint type 1")
		return resp, nil
	}
	img := s.Metadata()
	resp.ClusterID = s.ClusterID
	resp.ControllerID = s.controllerID(img)
	resp.ClusterAuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, clusterOperations)
	for _, b := range img.Brokers() {
		host, port, ok := endpoint(b, r.Listener)
		if !ok || b.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		broker := kmsg.NewDescribeClusterResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack, broker.IsFenced = b.ID, host, port, b.Rack, b.Fenced
		resp.Brokers = append(resp.Brokers, broker)
	}
	return resp, nil
}
