// Package logdir keeps all logs of a broker: it owns the log directories, loads what is in
// them, runs the tasks that logs need, and leaves everything so that the next start, of
// gregor or of Kafka, finds its way. (Kafka class LogManager.)
//
// # A log directory
//
//	.lock                                  held while a broker runs (fcntl)
//	meta.properties                        which cluster, broker and directory this is
//	.kafka_cleanshutdown                   only after a clean stop
//	recovery-point-offset-checkpoint       below it a log is flushed
//	log-start-offset-checkpoint            where it is not the first segment's base
//	replication-offset-checkpoint          high watermarks
//	cleaner-offset-checkpoint              package cleaner's
//	gregor-clean-state                     what the logs knew of themselves at a clean stop; gregor only
//	gregor-left-alone                      partitions that the metadata does not know; gregor only
//	orders-0/                              a log: package commitlog
//	orders-1.0c7e...-delete/               waits for its removal
//	orders-2.77ab...-stray/                belongs to no partition of this broker
//	orders-3.e01d...-future/               copy of a move from another directory
//	__cluster_metadata-0/                  package quorum's
//
// # From start to stop
//
//	Open ---- create, lock, look, ask the judge, meta.properties
//	Load ---- take the marker, read checkpoints, open the logs -- clean: trust the files
//	                                                           \- else: check from the recovery point on
//	Start --- retention, flush.ms, checkpoints, producer expiry, deletion
//	Close --- flush and close the logs, checkpoints, marker last
//
// # Rules
//
//   - The marker switches off every check of data. So it is removed, durably, before any
//     log is touched, and written last, only where everything else succeeded.
//   - Checkpoints are not transactional with the logs or each other. A recovery point on
//     disk may be too low, never too high: truncation and deletion write it at once.
//   - A directory fails as a whole: after the first failed operation its logs are closed
//     and it stays offline until the broker starts again. The others serve.
//   - A log whose bytes make no sense is left out, named, and left as it is; so is what
//     does not belong into a log directory (Kafka would not start, KAFKA-5118).
//   - Whoever truncates, deletes or moves a log pauses its cleaning first (see Cleaner);
//     retention of compacted logs is the cleaner's.
//   - Nothing is removed that was not asked for. What becomes of a partition that does not fit the
//     metadata is not decided here (LoadOptions.Fate): it stays, or is renamed to -stray and stays.
//
// What happens by time happens in steps that take the time as an argument; the goroutines
// of Start only repeat them.
package logdir
