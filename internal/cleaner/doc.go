// Package cleaner chooses compacted logs that are due and has package compaction clean them (Kafka's
// LogCleaner and LogCleanerManager).
//
// A Manager looks at all compacted logs and lets threads clean those that are due:
//
//	 log start        first dirty offset         first uncleanable offset        log end
//	 |                |                          |                               |
//	 +----------------+--------------------------+---------------+---------------+
//	 | clean          | dirty, to be cleaned     | held back     | active        |
//	 +----------------+--------------------------+---------------+---------------+
//	                  ^                          ^
//	                  cleaner-offset-checkpoint  base of the segment with the last stable offset
//	                                             (at most the high watermark), of the first one
//	                                             younger than min.compaction.lag.ms, or the active
//
//	ratio = dirty / (clean + dirty)
//	due   = ratio > min.cleanable.dirty.ratio, or dirty and older than max.compaction.lag.ms
//
// The highest ratio goes first. What is decided is a function of the shape of a log, its
// checkpoint, its configuration and the time (assess); goroutines around it are thin.
//
// # Rules
//
//   - A log has one task at a time, a cleaning or the deletion of old segments. Whoever wants to
//     truncate, move or delete it pauses it first, which aborts the task and waits for it.
//   - A task holds no lock of the Manager, so that others can wait for it under theirs. It ends
//     before an error of it is dealt with.
//   - An aborted task writes no checkpoint: a truncation may come next, and lowers it.
//   - A checkpoint outside its log counts as the log start, and is written so at once.
//   - An error of the disk takes the directory offline. Any other sets the log aside as
//     uncleanable, until the next start or a forced cleaning that goes well. A full disk, and a
//     log that changed under the cleaning, are no reason for either: there is a next time.
//   - Old segments of compacted logs are deleted here and not by package logdir, beside the
//     threads: below the log start and, with cleanup.policy=compact,delete, by retention.
package cleaner
