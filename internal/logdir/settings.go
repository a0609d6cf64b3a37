package logdir

import (
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/record"
)

// BrokerConfig takes a manager's settings out of the broker's. FS, ClusterID, Logger, Now
// and OnDirFailure are left to the caller.
func BrokerConfig(b *config.Broker) Config {
	interval := b.Milliseconds
	return Config{
		Dirs:                   b.LogDirs(),
		Cordoned:               b.CordonedDirs(),
		MetadataDir:            b.String("metadata.log.dir"),
		NodeID:                 nodeIDOf(b),
		RecoveryThreads:        b.Int("num.recovery.threads.per.data.dir"),
		RetentionInterval:      interval("log.retention.check.interval.ms"),
		FlushInterval:          interval("log.flush.scheduler.interval.ms"),
		RecoveryPointInterval:  interval("log.flush.offset.checkpoint.interval.ms"),
		LogStartInterval:       interval("log.flush.start.offset.checkpoint.interval.ms"),
		HighWatermarkInterval:  interval("replica.high.watermark.checkpoint.interval.ms"),
		ProducerExpiryInterval: interval("producer.id.expiration.check.interval.ms"),
		InitialTaskDelay:       interval("log.initial.task.delay.ms"),
		FileDeleteDelay:        interval("log.segment.delete.delay.ms"),
		MoverThreads:           moverThreads(b),
		MoveRate:               b.Long("replica.alter.log.dirs.io.max.bytes.per.second"),
		ProducerIDExpiration:   interval("producer.id.expiration.ms"),
		DiskReserve:            b.Long("gregor.disk.reserve.bytes"),
		ScrubInterval:          interval("gregor.scrub.interval.ms"),
		ScrubBytesPerSecond:    b.Long("gregor.scrub.bytes.per.second"),
	}
}

// moverThreads is 0, which is one for each directory, if nothing was set.
func moverThreads(b *config.Broker) int {
	const key = "num.replica.alter.log.dirs.threads"
	if !b.IsSet(key) {
		return 0
	}
	return b.Int(key)
}

// nodeIDOf is node.id or its old name broker.id, -1 if neither was given.
func nodeIDOf(b *config.Broker) int32 {
	for _, key := range []string{"node.id", "broker.id"} {
		if b.IsSet(key) {
			return int32(b.Int(key))
		}
	}
	return -1
}

// LogConfig takes the settings of a log out of its topic's.
func LogConfig(t config.Topic) commitlog.Config {
	policy := t.List("cleanup.policy")
	return commitlog.Config{
		SegmentBytes:                segmentBytes(t),
		SegmentMs:                   t.Long("segment.ms"),
		SegmentJitterMs:             t.Long("segment.jitter.ms"),
		SegmentIndexBytes:           t.Int("segment.index.bytes"),
		IndexIntervalBytes:          t.Int("index.interval.bytes"),
		FlushMessages:               t.Long("flush.messages"),
		FlushMs:                     t.Long("flush.ms"),
		RetentionBytes:              t.Long("retention.bytes"),
		RetentionMs:                 t.Long("retention.ms"),
		FileDeleteDelayMs:           t.Long("file.delete.delay.ms"),
		Compact:                     slices.Contains(policy, "compact"),
		Delete:                      slices.Contains(policy, "delete"),
		DeleteRetentionMs:           t.Long("delete.retention.ms"),
		MinCompactionLagMs:          t.Long("min.compaction.lag.ms"),
		MaxCompactionLagMs:          t.Long("max.compaction.lag.ms"),
		MinCleanableRatio:           t.Double("min.cleanable.dirty.ratio"),
		CompactionStrategy:          compactionStrategies[t.String("gregor.compaction.strategy")],
		CompactionHeader:            t.String("gregor.compaction.strategy.header"),
		MessageFormat:               config.MessageFormat(t.String("message.format.version")),
		DownConversion:              t.Bool("message.downconversion.enable"),
		MaxMessageBytes:             t.Int("max.message.bytes"),
		MaxDecompressedMessageBytes: t.Int("max.decompressed.message.bytes"),
		Compression:                 codecs[t.String("compression.type")],
		GzipLevel:                   t.Int("compression.gzip.level"),
		LZ4Level:                    t.Int("compression.lz4.level"),
		ZstdLevel:                   t.Int("compression.zstd.level"),
		TimestampType:               timestampTypes[t.String("message.timestamp.type")],
		TimestampBeforeMaxMs:        t.Long("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:         t.Long("message.timestamp.after.max.ms"),
		MinInsyncReplicas:           t.Int("min.insync.replicas"),
		UncleanLeaderElection:       t.Bool("unclean.leader.election.enable"),
		Preallocate:                 t.Bool("preallocate"),
	}
}

// segmentBytes prefers the setting that tests of Kafka's use for segments below 1 MiB.
func segmentBytes(t config.Topic) int {
	if t.IsSet("internal.segment.bytes") {
		return t.Int("internal.segment.bytes")
	}
	return t.Int("segment.bytes")
}

var codecs = map[string]record.Codec{
	"producer":     record.AsProduced,
	"uncompressed": record.None,
	"gzip":         record.Gzip,
	"snappy":       record.Snappy,
	"lz4":          record.LZ4,
	"zstd":         record.Zstd,
}

var timestampTypes = map[string]record.TimestampType{
	"CreateTime":    record.CreateTime,
	"LogAppendTime": record.LogAppendTime,
}

var compactionStrategies = map[string]commitlog.CompactionStrategy{
	"offset":    commitlog.CompactByOffset,
	"timestamp": commitlog.CompactByTimestamp,
	"header":    commitlog.CompactByHeader,
}
