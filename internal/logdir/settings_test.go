package logdir

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/record"
)

func TestLogConfigDefaults(t *testing.T) {
	got := LogConfig(config.Default().Topic(nil))
	if d := cmp.Diff(commitlog.DefaultConfig(), got); d != "" {
		t.Errorf("(-commitlog +config)\n%s", d)
	}
}

func TestLogConfig(t *testing.T) {
	got := LogConfig(config.Default().Topic(map[string]string{
		"segment.bytes": "1048576", "segment.ms": "2", "segment.jitter.ms": "1", "segment.index.bytes": "83",
		"index.interval.bytes": "4", "flush.messages": "5", "flush.ms": "6", "retention.bytes": "7", "retention.ms": "-1",
		"file.delete.delay.ms": "8", "cleanup.policy": "compact", "delete.retention.ms": "9", "min.compaction.lag.ms": "10",
		"max.compaction.lag.ms": "11", "min.cleanable.dirty.ratio": "0.25", "max.message.bytes": "12",
		"max.decompressed.message.bytes": "13", "compression.type": "uncompressed", "compression.gzip.level": "1",
		"compression.lz4.level": "2", "compression.zstd.level": "-3", "message.timestamp.type": "LogAppendTime",
		"message.timestamp.before.max.ms": "14", "message.timestamp.after.max.ms": "15", "min.insync.replicas": "2",
		"unclean.leader.election.enable": "true", "preallocate": "true",
		"message.format.version": "0.10.2", "message.downconversion.enable": "false",
		"gregor.compaction.strategy": "header", "gregor.compaction.strategy.header": "version",
	}))
	want := commitlog.Config{
		SegmentBytes: 1048576, SegmentMs: 2, SegmentJitterMs: 1, SegmentIndexBytes: 83,
		IndexIntervalBytes: 4, FlushMessages: 5, FlushMs: 6, RetentionBytes: 7, RetentionMs: -1,
		FileDeleteDelayMs: 8, Compact: true, DeleteRetentionMs: 9, MinCompactionLagMs: 10,
		MaxCompactionLagMs: 11, MinCleanableRatio: 0.25, MaxMessageBytes: 12,
		MaxDecompressedMessageBytes: 13, Compression: record.None, GzipLevel: 1,
		LZ4Level: 2, ZstdLevel: -3, MessageFormat: 1, TimestampType: record.LogAppendTime,
		TimestampBeforeMaxMs: 14, TimestampAfterMaxMs: 15, MinInsyncReplicas: 2,
		UncleanLeaderElection: true, Preallocate: true,
		CompactionStrategy: commitlog.CompactByHeader, CompactionHeader: "version",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	small := LogConfig(config.Default().Topic(map[string]string{"internal.segment.bytes": "1000", "compression.type": "zstd"}))
	if small.SegmentBytes != 1000 || small.Compression != record.Zstd {
		t.Errorf("got %d, %v, want 1000, zstd", small.SegmentBytes, small.Compression)
	}
}

func TestBrokerConfig(t *testing.T) {
	parse := func(overrides ...string) Config {
		t.Helper()
		b, _, err := config.Parse(nil, "", overrides)
		if err != nil {
			t.Fatal(err)
		}
		return BrokerConfig(b)
	}
	got := parse("log.dirs=/a,/b", "metadata.log.dir=/m", "node.id=4", "cordoned.log.dirs=/b")
	want := DefaultConfig()
	want.Dirs, want.Cordoned, want.MetadataDir, want.NodeID = []string{"/a", "/b"}, []string{"/b"}, "/m", 4
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b func() time.Time) bool { return (a == nil) == (b == nil) })); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	got = parse("log.dir=/c", "broker.id=5", "log.flush.scheduler.interval.ms=50")
	if !cmp.Equal(got.Dirs, []string{"/c"}) || got.NodeID != 5 || got.FlushInterval != 50*time.Millisecond {
		t.Errorf("got %v, %d, %v, want [/c], 5, 50ms", got.Dirs, got.NodeID, got.FlushInterval)
	}
	if got := parse("log.dir=/c").NodeID; got != -1 {
		t.Errorf("no id given: got %d, want -1", got)
	}
}
