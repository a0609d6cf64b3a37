package broker

import (
	"fmt"
	"io"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// groupOptions are the group coordinator's, from the configuration at start.
func (b *Broker) groupOptions() group.Options {
	c := b.settings.now()
	return group.Options{
		Config: groupConfig(c),
		Log: &coordinatorLog{
			replicas:   b.replicas,
			timeout:    func() time.Duration { return b.settings.now().Milliseconds("offsets.commit.timeout.ms") },
			loadBuffer: func() int { return b.settings.now().Int("offsets.load.buffer.size") },
			logger:     b.logger,
		},
		Partitions: func() int32 {
			t := b.quorum.Image().Topic(topic.ConsumerOffsets)
			if t == nil {
				return 0
			}
			return int32(len(t.Partitions))
		},
		MaxBatch: c.Int("message.max.bytes"),
		Codec:    record.Codec(c.Int("offsets.topic.compression.codec")),
		Random: func(partition int32) io.Reader {
			return b.world.Random(fmt.Sprintf("members in partition %d", partition))
		},
		Logger: b.logger,
	}
}

func groupConfig(c *config.Broker) group.Config {
	return group.Config{
		MinSessionTimeout:     c.Milliseconds("group.min.session.timeout.ms"),
		MaxSessionTimeout:     c.Milliseconds("group.max.session.timeout.ms"),
		InitialRebalanceDelay: c.Milliseconds("group.initial.rebalance.delay.ms"),
		MaxSize:               c.Int("group.max.size"),
		OffsetMetadataMax:     c.Int("offset.metadata.max.bytes"),
		OffsetsRetention:      time.Duration(c.Long("offsets.retention.minutes")) * time.Minute,
		ExpiryInterval:        c.Milliseconds("offsets.retention.check.interval.ms"),
	}
}
