package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// pushTelemetry drops the metrics of a client, which nobody wanted.
func (s *Server) pushTelemetry(_ context.Context, _ *Request, req *kmsg.PushTelemetryRequest) (*kmsg.PushTelemetryResponse, error) {
	resp := kmsg.NewPtrPushTelemetryResponse()
	switch {
	case uuid.UUID(req.ClientInstanceID).IsZero():
		resp.ErrorCode = kerr.InvalidRequest.Code
	case req.SubscriptionID != telemetrySubscription(req.ClientInstanceID):
		resp.ErrorCode = kerr.UnknownSubscriptionID.Code
	}
	return resp, nil
}
