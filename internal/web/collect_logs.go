package web

import (
	"cmp"
	"slices"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// partitionsMax bounds the partitions that have samples of their own; those behind it, in
// the order of their names, are only counted. A scrape of so many has some 50 MB.
const partitionsMax = 100_000

var (
	logSize     = gauge("kafka_log_log_size", "Bytes of all segments of a partition.", "topic", "partition")
	logStart    = gauge("kafka_log_log_logstartoffset", "First offset of a partition.", "topic", "partition")
	logEnd      = gauge("kafka_log_log_logendoffset", "Offset that the next record gets.", "topic", "partition")
	logSegments = gauge("kafka_log_log_numlogsegments", "Segments of a partition.", "topic", "partition")
	stableLag   = gauge("kafka_cluster_partition_laststableoffsetlag",
		"Records that readers of committed records do not see yet.", "topic", "partition")
	logsLeftOut = gauge("gregor_partitions_without_samples",
		"Partitions that have no samples of their own, because there are more than 100000.")

	producerCount = gauge("kafka_server_replicamanager_produceridcount",
		"Producer ids that the logs know, as of the last count, which is one a minute.")
	flushTimes = histogram("kafka_log_logflushstats_logflushrateandtimems", "Milliseconds that syncs of logs took.")
	logsFailed = gauge("gregor_logs_failed",
		"Logs that refuse appends because a write or sync failed, until the broker starts again.")
)

// A logState is what the samples of a partition are made of.
type logState struct {
	partition topic.Partition
	size      int64
	segments  int
	offsets   *commitlog.Offsets
}

// Logs collects what the log directories know: partitions, directories, damage, loading.
func Logs(m *logdir.Manager) Collector {
	return func(w *metrics.Writer) {
		var states []logState
		var damage damaged
		failed := 0
		for p, l := range m.Logs() {
			states = append(states, logState{p, l.Size(), l.NumSegments(), l.Offsets()})
			damage.add(p, l)
			if l.Failed() != nil {
				failed++
			}
		}
		sortPartitions(states, func(s logState) topic.Partition { return s.partition })
		w.Single(logsLeftOut, int64(max(0, len(states)-partitionsMax)))
		writeLogs(w, states[:min(len(states), partitionsMax)])
		w.Single(logsFailed, int64(failed))
		w.Single(producerCount, m.ProducerCount())
		w.Begin(flushTimes)
		w.Histogram(m.FlushTimes())
		damage.write(w)
		writeScrub(w, m.Scrubber().Progress(), m.Scrubber().Last())
		writeDirs(w, m)
		writeLoading(w, m.Progress())
	}
}

func writeLogs(w *metrics.Writer, states []logState) {
	each := eachOf(w, states, func(s *logState) []string { return partitionLabels(s.partition) })
	each(logSize, func(s *logState) int64 { return s.size })
	each(logStart, func(s *logState) int64 { return s.offsets.LogStart })
	each(logEnd, func(s *logState) int64 { return s.offsets.End })
	each(logSegments, func(s *logState) int64 { return int64(s.segments) })
	each(stableLag, func(s *logState) int64 { return max(0, s.offsets.HighWatermark-s.offsets.LastStable) })
}

// sortPartitions sorts by topic and number.
func sortPartitions[T any](list []T, partition func(T) topic.Partition) {
	slices.SortFunc(list, func(a, b T) int {
		p, q := partition(a), partition(b)
		return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition))
	})
}
