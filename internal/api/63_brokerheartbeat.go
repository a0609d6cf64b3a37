package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// brokerHeartbeat hears a broker and tells it what has become of it. (KIP-631)
func (s *Server) brokerHeartbeat(ctx context.Context, _ *Request, req *kmsg.BrokerHeartbeatRequest) (*kmsg.BrokerHeartbeatResponse, error) {
	a, err := s.Brokers.Heartbeat(ctx, heartbeatOf(req))
	resp := kmsg.NewPtrBrokerHeartbeatResponse()
	resp.ErrorCode = code(err)
	if err == nil {
		resp.IsCaughtUp, resp.IsFenced, resp.ShouldShutdown = a.CaughtUp, a.Fenced, a.Shutdown
	}
	return resp, nil
}

func heartbeatOf(req *kmsg.BrokerHeartbeatRequest) controller.Heartbeat {
	return controller.Heartbeat{
		Broker: req.BrokerID, BrokerEpoch: req.BrokerEpoch, MetadataOffset: req.CurrentMetadataOffset,
		WantFence: req.WantFence, WantShutdown: req.WantShutdown,
		OfflineDirs: uuidsOf(req.OfflineLogDirs), CordonedDirs: uuidsOf(req.CordonedLogDirs),
	}
}

// heartbeatRequest is the opposite of heartbeatOf.
func heartbeatRequest(h *controller.Heartbeat) *kmsg.BrokerHeartbeatRequest {
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.BrokerID, req.BrokerEpoch, req.CurrentMetadataOffset = h.Broker, h.BrokerEpoch, h.MetadataOffset
	req.WantFence, req.WantShutdown = h.WantFence, h.WantShutdown
	req.OfflineLogDirs, req.CordonedLogDirs = bytesOf(h.OfflineDirs), bytesOf(h.CordonedDirs)
	return req
}

// uuidsOf keeps nil apart from an empty list.
func uuidsOf(list [][16]byte) []uuid.UUID {
	if list == nil {
		return nil
	}
	ids := make([]uuid.UUID, len(list))
	for i, id := range list {
		ids[i] = uuid.UUID(id)
	}
	return ids
}

func bytesOf(ids []uuid.UUID) [][16]byte {
	if ids == nil {
		return nil
	}
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}
