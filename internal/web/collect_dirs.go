package web

import (
	"time"

	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metrics"
)

var (
	offlineDirs = gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.")
	dirOffline  = gauge("kafka_log_logmanager_logdirectoryoffline", "1 for a log directory that failed.", "logdirectory")
	dirFree     = gauge("gregor_log_directory_free_bytes", "Free space of the file system of a log directory.", "logdirectory")
	dirTotal    = gauge("gregor_log_directory_total_bytes", "Size of that file system.", "logdirectory")
	dirReserve  = gauge("gregor_log_directory_reserve_bytes",
		"Free space below which appends are refused (gregor.disk.reserve.bytes).", "logdirectory")
	dirFull    = gauge("gregor_log_directory_full", "1 while appends are refused because the disk is full.", "logdirectory")
	dirLogs    = gauge("gregor_log_directory_logs", "Open logs of a log directory.", "logdirectory")
	dirMoves   = gauge("gregor_log_directory_moves", "Partitions that are being copied to a log directory.", "logdirectory")
	dirMoveLag = gauge("gregor_log_directory_move_lag_records", "Records that these copies do not have yet.", "logdirectory")

	remainingLogs     = gauge("kafka_log_logmanager_remaininglogstorecover", "Logs of a directory that are not loaded yet.", "dir")
	remainingSegments = gauge("kafka_log_logmanager_remainingsegmentstorecover",
		"Segments that have to be read yet, of the logs whose loading has begun.", "dir")
	loadingLogs     = gauge("gregor_loading_logs", "Logs that were found at the start.", "logdirectory")
	loadingLogsDone = gauge("gregor_loading_logs_done", "Those of them that are loaded.", "logdirectory")
	loadingBytes    = gauge("gregor_loading_bytes",
		"After an unclean stop: bytes to be checked, of the logs whose loading has begun.", "logdirectory")
	loadingBytesDone   = gauge("gregor_loading_bytes_done", "Those of them that are checked.", "logdirectory")
	loadingSecondsLeft = gauge("gregor_loading_seconds_left",
		"Estimate of the time until all logs are loaded; -1 as long as there is nothing to go by.")
	loadingSeconds = gauge("gregor_loading_seconds", "How long loading has taken, or took.")
)

func writeDirs(w *metrics.Writer, m *logdir.Manager) {
	dirs := m.Dirs()
	each := eachOf(w, dirs, func(d *logdir.Dir) []string { return []string{d.Path} })
	offline := 0
	for i := range dirs {
		if !dirs[i].Online {
			offline++
		}
	}
	w.Single(offlineDirs, int64(offline))
	each(dirOffline, func(d *logdir.Dir) int64 { return number(!d.Online) })
	each(dirLogs, func(d *logdir.Dir) int64 { return int64(len(d.Logs)) })
	each(dirMoves, func(d *logdir.Dir) int64 { return int64(len(d.Futures)) })
	each(dirMoveLag, func(d *logdir.Dir) (lag int64) {
		for _, f := range d.Futures {
			lag += f.Lag
		}
		return lag
	})
	writeSpace(w, m.Spaces())
}

func writeSpace(w *metrics.Writer, spaces []logdir.Space) {
	each := eachOf(w, spaces, func(s *logdir.Space) []string { return []string{s.Path} })
	each(dirTotal, func(s *logdir.Space) int64 { return s.Total })
	each(dirFree, func(s *logdir.Space) int64 { return s.Free })
	each(dirReserve, func(s *logdir.Space) int64 { return s.Reserve })
	each(dirFull, func(s *logdir.Space) int64 { return number(s.Full) })
}

func writeLoading(w *metrics.Writer, p logdir.Progress) {
	each := eachOf(w, p.Dirs, func(d *logdir.DirProgress) []string { return []string{d.Path} })
	each(remainingLogs, func(d *logdir.DirProgress) int64 { return d.Logs - d.LogsDone })
	each(remainingSegments, func(d *logdir.DirProgress) int64 { return d.Segments - d.SegmentsDone })
	each(loadingLogs, func(d *logdir.DirProgress) int64 { return d.Logs })
	each(loadingLogsDone, func(d *logdir.DirProgress) int64 { return d.LogsDone })
	each(loadingBytes, func(d *logdir.DirProgress) int64 { return d.Bytes })
	each(loadingBytesDone, func(d *logdir.DirProgress) int64 { return d.BytesDone })
	left := p.Left.Seconds()
	if p.Left < 0 {
		left = -1
	}
	w.Begin(loadingSecondsLeft)
	w.Float(left)
	w.Begin(loadingSeconds)
	w.Float(p.Elapsed.Round(time.Microsecond).Seconds())
}

// number is how a metric says yes or no.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
