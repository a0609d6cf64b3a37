package group

import (
	"math"
	"time"
)

// Config holds the settings of the coordinator, named as in server.properties.
type Config struct {
	MinSessionTimeout     time.Duration // group.min.session.timeout.ms
	MaxSessionTimeout     time.Duration // group.max.session.timeout.ms
	InitialRebalanceDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize               int           // group.max.size: members of a group
	OffsetMetadataMax     int           // offset.metadata.max.bytes
	OffsetsRetention      time.Duration // offsets.retention.minutes
	ExpiryInterval        time.Duration // offsets.retention.check.interval.ms
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		MinSessionTimeout:     6 * time.Second,
		MaxSessionTimeout:     30 * time.Minute,
		InitialRebalanceDelay: 3 * time.Second,
		MaxSize:               math.MaxInt32,
		OffsetMetadataMax:     4096,
		OffsetsRetention:      7 * 24 * time.Hour,
		ExpiryInterval:        10 * time.Minute,
	}
}

// newMemberTimeout limits how long a member waits for its first generation, instead of
// its session timeout: it cannot send heartbeats yet.
const newMemberTimeout = 5 * time.Minute
