package api

import (
	"context"
	"hash/crc32"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// What Kafka 4.4 tells a client of which it wants no metrics.
const (
	telemetryPushIntervalMs = 300_000
	telemetryBytesMax       = 1 << 20
)

// getTelemetrySubscriptions tells a client that no metrics are wanted (KIP-714). Like a Kafka
// without a receiver of metrics, gregor answers and does not list it in ApiVersions.
func (s *Server) getTelemetrySubscriptions(_ context.Context, _ *Request, req *kmsg.GetTelemetrySubscriptionsRequest) (*kmsg.GetTelemetrySubscriptionsResponse, error) {
	resp := kmsg.NewPtrGetTelemetrySubscriptionsResponse()
	resp.ClientInstanceID = req.ClientInstanceID
	if uuid.UUID(req.ClientInstanceID).IsZero() {
		resp.ClientInstanceID = uuid.From(s.Random)
	}
	resp.SubscriptionID = telemetrySubscription(resp.ClientInstanceID)
	resp.AcceptedCompressionTypes = []int8{4, 3, 1, 2} // zstd, lz4, gzip, snappy
	resp.PushIntervalMillis, resp.TelemetryMaxBytes = telemetryPushIntervalMs, telemetryBytesMax
	resp.DeltaTemporality = true
	return resp, nil
}

// telemetrySubscription is the id of a client's subscription: of the metrics, which are none, and
// the client.
func telemetrySubscription(client [16]byte) int32 {
	return int32(crc32.ChecksumIEEE(client[:]) & math.MaxInt32)
}
