package web

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// damageRowsMax bounds the stretches, and the partitions that were cut, that have a sample of
// their own. The sums count all.
const damageRowsMax = 1000

var (
	quarantinedStretches = gauge("gregor_log_quarantined_stretches",
		"Damaged stretches of segments: who reads there gets CORRUPT_MESSAGE.")
	quarantinedBytes = gauge("gregor_log_quarantined_bytes",
		"Bytes in quarantine by file and the position where they begin; without labels, all of them.",
		"topic", "partition", "file", "position")
	undecidedTxns = gauge("gregor_log_undecided_transactions",
		"Transactions whose end is lost in damage, and that nobody has decided, as far as they were met since the start; without labels, all of them.",
		"topic", "partition")
	cutBytes = counter("gregor_log_recovery_cut_bytes_total",
		"Bytes that recovery cut off the ends of logs at this start: a torn tail with nothing good behind it.",
		"topic", "partition")
)

var (
	scrubRunning = gauge("gregor_scrub_running", "1 while all logs are read in search of damage.")
	scrubLogs    = gauge("gregor_scrub_logs", "Logs of this pass, or of the last one.")
	scrubDone    = gauge("gregor_scrub_logs_done", "Those of them that were read.")
	scrubBytes   = gauge("gregor_scrub_read_bytes", "Bytes that were read in it.")
	scrubEnded   = gauge("gregor_scrub_last_end_timestamp_seconds", "When the last whole pass ended; 0 if there was none.")
	scrubDamage  = gauge("gregor_scrub_last_damaged_stretches", "Damaged stretches that were known then.")
)

func writeScrub(w *metrics.Writer, p logdir.ScrubProgress, last *logdir.ScrubReport) {
	w.Begin(scrubRunning)
	w.Bool(p.Running)
	w.Single(scrubLogs, p.Logs)
	w.Single(scrubDone, p.LogsDone)
	w.Single(scrubBytes, p.Bytes)
	var ended, stretches int64
	if last != nil {
		ended, stretches = last.Ended.Unix(), int64(len(last.Damage))
	}
	w.Single(scrubEnded, ended)
	w.Single(scrubDamage, stretches)
}

// damaged gathers the damage of all logs.
type damaged struct {
	rows      []damagedRow
	cut       []partitionRow
	undecided []partitionRow
	stretches int
	bytes     int64
	cutBytes  int64
	txns      int64
}

type damagedRow struct {
	partition topic.Partition
	file      string
	position  int64
	size      int64
}

type partitionRow struct {
	partition topic.Partition
	value     int64
}

func (d *damaged) add(p topic.Partition, l *commitlog.Log) {
	for _, q := range l.Quarantine() {
		d.stretches++
		d.bytes += q.Size
		if len(d.rows) < damageRowsMax {
			file := filepath.Join(l.Dir(), fmt.Sprintf("%020d.log", q.Segment))
			d.rows = append(d.rows, damagedRow{p, file, q.Position, q.Size})
		}
	}
	if n := l.BytesCut(); n > 0 {
		d.cutBytes += n
		if len(d.cut) < damageRowsMax {
			d.cut = append(d.cut, partitionRow{p, n})
		}
	}
	if n := int64(l.UndecidedKnown()); n > 0 {
		d.txns += n
		if len(d.undecided) < damageRowsMax {
			d.undecided = append(d.undecided, partitionRow{p, n})
		}
	}
}

func (d *damaged) write(w *metrics.Writer) {
	sortPartitions(d.rows, func(r damagedRow) topic.Partition { return r.partition })
	w.Single(quarantinedStretches, int64(d.stretches))
	w.Begin(quarantinedBytes)
	w.Int(d.bytes)
	for _, r := range d.rows {
		w.Int(r.size, r.partition.Topic, strconv.Itoa(int(r.partition.Partition)), r.file, strconv.FormatInt(r.position, 10))
	}
	writePartitionRows(w, undecidedTxns, d.txns, d.undecided)
	writePartitionRows(w, cutBytes, d.cutBytes, d.cut)
}

// writePartitionRows writes a sum and what there is of it in each partition.
func writePartitionRows(w *metrics.Writer, f *metrics.Family, sum int64, rows []partitionRow) {
	sortPartitions(rows, func(r partitionRow) topic.Partition { return r.partition })
	w.Begin(f)
	w.Int(sum)
	for _, r := range rows {
		w.Int(r.value, r.partition.Topic, strconv.Itoa(int(r.partition.Partition)))
	}
}
