package commitlog

import (
	"math"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A Config holds the topic-level settings that concern a log, under Kafka's names
// (doc/format.md 8, Kafka class LogConfig). It is a value; a Log takes a new one with
// SetConfig.
type Config struct {
	SegmentBytes       int   // segment.bytes: a segment never grows beyond it
	SegmentMs          int64 // segment.ms: distance of create times that rolls a segment
	SegmentJitterMs    int64 // segment.jitter.ms: at most this much less, drawn per segment
	SegmentIndexBytes  int   // segment.index.bytes: size limit of one index file
	IndexIntervalBytes int   // index.interval.bytes

	FlushMessages int64 // flush.messages: unflushed records that force a flush
	FlushMs       int64 // flush.ms: for the task that flushes by time

	RetentionBytes    int64 // retention.bytes: negative is no limit
	RetentionMs       int64 // retention.ms: negative is no limit
	FileDeleteDelayMs int64 // file.delete.delay.ms

	Compact            bool    // cleanup.policy has "compact"
	Delete             bool    // cleanup.policy has "delete"
	DeleteRetentionMs  int64   // delete.retention.ms: life of a tombstone
	MinCompactionLagMs int64   // min.compaction.lag.ms
	MaxCompactionLagMs int64   // max.compaction.lag.ms
	MinCleanableRatio  float64 // min.cleanable.dirty.ratio

	CompactionStrategy CompactionStrategy // gregor.compaction.strategy
	CompactionHeader   string             // gregor.compaction.strategy.header, for CompactByHeader

	MessageFormat               int8                 // message.format.version: 0, 1 or 2
	DownConversion              bool                 // message.downconversion.enable
	MaxMessageBytes             int                  // max.message.bytes: size limit of a batch, header included
	MaxDecompressedMessageBytes int                  // max.decompressed.message.bytes
	Compression                 record.Codec         // compression.type; record.AsProduced for producer
	GzipLevel                   int                  // compression.gzip.level
	LZ4Level                    int                  // compression.lz4.level
	ZstdLevel                   int                  // compression.zstd.level
	TimestampType               record.TimestampType // message.timestamp.type
	TimestampBeforeMaxMs        int64                // message.timestamp.before.max.ms
	TimestampAfterMaxMs         int64                // message.timestamp.after.max.ms

	MinInsyncReplicas     int  // min.insync.replicas
	UncleanLeaderElection bool // unclean.leader.election.enable
	Preallocate           bool // preallocate
}

// A CompactionStrategy says which record of a key compaction keeps (KIP-280). Among records
// that are equal by it the one with the largest offset stays.
type CompactionStrategy int8

const (
	CompactByOffset    CompactionStrategy = iota // the last one, as Kafka
	CompactByTimestamp                           // the one with the newest timestamp
	CompactByHeader                              // the one with the highest version in a header
)

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		SegmentBytes:                1 << 30,
		SegmentMs:                   7 * 24 * 3600 * 1000,
		SegmentIndexBytes:           10 << 20,
		IndexIntervalBytes:          4096,
		FlushMessages:               math.MaxInt64,
		FlushMs:                     math.MaxInt64,
		RetentionBytes:              -1,
		RetentionMs:                 7 * 24 * 3600 * 1000,
		FileDeleteDelayMs:           60_000,
		Delete:                      true,
		DeleteRetentionMs:           24 * 3600 * 1000,
		MaxCompactionLagMs:          math.MaxInt64,
		MinCleanableRatio:           0.5,
		MessageFormat:               2,
		DownConversion:              true,
		MaxMessageBytes:             1<<20 + record.LogOverhead,
		MaxDecompressedMessageBytes: math.MaxInt32 - 8,
		Compression:                 record.AsProduced,
		GzipLevel:                   -1,
		LZ4Level:                    9,
		ZstdLevel:                   3,
		TimestampBeforeMaxMs:        math.MaxInt64,
		TimestampAfterMaxMs:         3600 * 1000,
		MinInsyncReplicas:           1,
	}
}

// Level is the level of a codec that sets are compressed with. With compression.type=producer nothing is
// compressed again, save sets whose offsets are not 0, 1, 2 ...
func (c *Config) Level(codec record.Codec) int {
	switch codec {
	case record.Gzip:
		return c.GzipLevel
	case record.LZ4:
		return c.LZ4Level
	case record.Zstd:
		return c.ZstdLevel
	}
	return 0
}

// maxSegmentMs is the age at which a segment rolls: sooner than segment.ms when a record
// must not wait longer than max.compaction.lag.ms for its cleaning.
func (c *Config) maxSegmentMs() int64 {
	if c.Compact && c.MaxCompactionLagMs > 0 {
		return min(c.SegmentMs, c.MaxCompactionLagMs)
	}
	return c.SegmentMs
}

// segment is the configuration of segments with caches.
func (c *Config) segment(caches segment.Caches) segment.Config {
	sc := segment.Config{
		IndexIntervalBytes: c.indexInterval(), MaxIndexSize: c.SegmentIndexBytes,
		Files: caches.Files, Indexes: caches.Indexes,
	}
	if c.Preallocate {
		sc.Preallocate = int64(c.SegmentBytes)
	}
	return sc
}

// indexInterval is index.interval.bytes as package segment wants it, where 0 is the default.
func (c *Config) indexInterval() int {
	if c.IndexIntervalBytes == 0 {
		return -1
	}
	return c.IndexIntervalBytes
}
