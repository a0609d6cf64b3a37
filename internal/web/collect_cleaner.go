package web

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/metrics"
)

const (
	cleanerMetrics        = "kafka_log_logcleaner_"
	cleanerManagerMetrics = "kafka_log_logcleanermanager_"
)

var (
	cleanerDead           = gauge(cleanerMetrics+"deadthreadcount", "Threads of the cleaner that ended and should not have.")
	cleanerRecopy         = gauge(cleanerMetrics+"cleaner_recopy_percent", "Bytes written for 100 bytes read, of the last cleaning of each thread and the last that was asked for.")
	cleanerMaxTime        = gauge(cleanerMetrics+"max_clean_time_secs", "The longest of these cleanings.")
	cleanerUtilization    = gauge(cleanerMetrics+"max_buffer_utilization_percent", "The fullest offset map of these cleanings.")
	cleanerMaxDelay       = gauge(cleanerMetrics+"max_compaction_delay_secs", "The longest time by which a log exceeds max.compaction.lag.ms.")
	cleanerMaxDirty       = gauge(cleanerManagerMetrics+"max_dirty_percent", "Dirty part of the dirtiest log.")
	cleanerSinceChoice    = gauge(cleanerManagerMetrics+"time_since_last_run_ms", "Time since all logs were looked at; -1 when they never were.")
	cleanerUncleanable    = gauge(cleanerManagerMetrics+"uncleanable_partitions_count", "Partitions whose cleaning failed.", "logdirectory")
	cleanerUncleanableB   = gauge(cleanerManagerMetrics+"uncleanable_bytes", "What is dirty in them.", "logdirectory")
	cleanerThreads        = gauge("gregor_cleaner_threads", "Threads of the cleaner.")
	cleanerCleanings      = counter("gregor_cleaner_cleanings_total", "Cleanings by how they ended.", "outcome")
	cleanerBytesRead      = counter("gregor_cleaner_read_bytes_total", "Bytes that cleanings read to rewrite them.")
	cleanerBytesWritten   = counter("gregor_cleaner_written_bytes_total", "Bytes that they wrote.")
	cleanerRecordsRead    = counter("gregor_cleaner_records_read_total", "Records that they read.")
	cleanerRecordsKept    = counter("gregor_cleaner_records_kept_total", "Records that they kept.")
	cleanerRemoved        = counter("gregor_cleaner_removed_records_total", "Records that they removed, by reason.", "reason")
	cleanerSkipped        = gauge("gregor_cleaner_skipped_partitions", "Compacted logs that were not due at the last look, by reason.", "reason")
	cleanerNext           = gauge("gregor_cleaner_next_dirty_ratio", "Dirty ratio of the partition that was chosen last, with its name.", "partition")
	cleanerProgress       = gauge("gregor_cleaner_progress_ratio", "How far a thread is with its partition and phase.", "thread", "partition", "phase")
	cleanerBytesPerSecond = gauge("gregor_cleaner_bytes_per_second", "How fast a thread reads.", "thread", "partition")
)

// Cleaner collects what compaction does.
func Cleaner(m *cleaner.Manager) Collector {
	return func(w *metrics.Writer) {
		s := m.Stats()
		float := func(f *metrics.Family, value float64) {
			w.Begin(f)
			w.Float(value)
		}
		w.Single(cleanerThreads, int64(len(s.Threads)))
		w.Single(cleanerDead, int64(s.DeadThreads))
		float(cleanerRecopy, 100*s.RecopyRatio)
		float(cleanerMaxTime, s.MaxCleanTime.Seconds())
		float(cleanerUtilization, 100*s.MaxUtilization)
		float(cleanerMaxDelay, s.MaxCompactionDelay.Seconds())
		float(cleanerMaxDirty, 100*s.MaxDirtyRatio)
		w.Single(cleanerSinceChoice, max(-1, int64(s.SinceLastChoice/time.Millisecond)))
		writeByLabel(w, cleanerUncleanable, s.Uncleanable)
		writeByLabel(w, cleanerUncleanableB, s.UncleanableBytes)
		writeByLabel(w, cleanerSkipped, s.Skipped)
		w.Begin(cleanerNext)
		if s.Next != nil {
			w.Float(s.Next.DirtyRatio, s.Next.Partition)
		}
		writeCleanerTotals(w, &s.Totals)
		writeCleanerThreads(w, s.Threads)
	}
}

// writeByLabel writes a sample for each key, in order.
func writeByLabel[K ~string, V int | int64](w *metrics.Writer, f *metrics.Family, values map[K]V) {
	w.Begin(f)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		w.Int(int64(values[key]), string(key))
	}
}

func writeCleanerTotals(w *metrics.Writer, t *cleaner.Totals) {
	w.Begin(cleanerCleanings)
	w.Int(t.Cleanings, "done")
	w.Int(t.Aborted, "aborted")
	w.Int(t.Failed, "failed")
	w.Single(cleanerBytesRead, t.BytesRead)
	w.Single(cleanerBytesWritten, t.BytesWritten)
	w.Single(cleanerRecordsRead, t.RecordsRead)
	w.Single(cleanerRecordsKept, t.RecordsKept)
	w.Begin(cleanerRemoved)
	w.Int(t.Removed.Superseded, "superseded")
	w.Int(t.Removed.Tombstones, "tombstone")
	w.Int(t.Removed.Aborted, "aborted")
	w.Int(t.Removed.Keyless, "keyless")
	w.Int(t.Removed.Markers, "marker")
}

func writeCleanerThreads(w *metrics.Writer, threads []cleaner.ThreadStats) {
	w.Begin(cleanerProgress)
	for i := range threads {
		if t := &threads[i]; t.Partition != "" {
			w.Float(done(&t.Progress), strconv.Itoa(i), t.Partition, t.Progress.Phase)
		}
	}
	w.Begin(cleanerBytesPerSecond)
	for i := range threads {
		if t := &threads[i]; t.Partition != "" {
			w.Float(t.Progress.BytesPerSecond, strconv.Itoa(i), t.Partition)
		}
	}
}

// done is the part of a phase that is done.
func done(p *cleaner.ProgressReport) float64 {
	read, total := p.ReadBytes, p.ReadTotal
	if p.Phase == "map" {
		read, total = p.MapBytes, p.MapTotal
	}
	if total <= 0 {
		return 0
	}
	return float64(read) / float64(total)
}
