// Package commitlog keeps the log of one partition: Kafka's UnifiedLog, with its
// LeaderEpochFileCache and ProducerStateManager. It knows segments, offsets, leader epochs
// and producers; it has never heard of brokers, requests or error codes.
//
// # A log
//
//	 segment 0        segment 40       segment 75 (active)
//	+----------------+----------------+-----------------------+
//	|  sealed        |  sealed        |        |       |      |
//	+----------------+----------------+-----------------------+
//	    ^                                      ^       ^      ^
//	    log start             last stable offset       |      log end
//	                                      high watermark
//
// Files of a partition's directory besides those of its segments:
//
//	OFFSET.snapshot           what producers had done before OFFSET (see producersnapshot.go)
//	leader-epoch-checkpoint   where each leader epoch began
//	partition.metadata        the id of the topic
//	gregor-losses             offsets whose records are gone, while there are any (see losses)
//	gregor-transactions       transactions whose end is lost in damage, while there are any (see lostTxns)
//	*.deleted                 gone, but for the delay of file.delete.delay.ms
//	*.aside                   files that are no part of the log
//	*.cleaned, *.swap         a compaction or a split under way
//
// # An append
//
//	validate (no lock) -> lock -> producer check -> roll? -> stamp offset and epoch ->
//	one write -> producer state -> publish the end -> unlock -> leader epoch to disk, if new
//
// # Rules
//
//   - Readers take no lock. They load one Offsets and stay within it: the bytes it names are
//     in the files before it is published (KAFKA-2477).
//   - A failed or short write, and a failed sync, poison the log: it refuses every change
//     until it is opened again, because nobody knows what the file holds.
//   - A refused append leaves no trace: no roll, no epoch, no producer.
//   - The recovery point moves up only after a sync of everything below it: first what
//     explains data (epochs, producer snapshots), then old segments, then new ones. An
//     unclean load never moves it up.
//   - Files leave the log one at a time, each renamed to .deleted and durable before the
//     next: oldest first for retention, newest first for truncation. So no crash leaves a
//     hole, and a hole above the recovery point is data that a crash has lost. Retention makes
//     the name of the segment that is the first then durable before, so that a crash leaves
//     one that says which offsets were in use.
//   - Segments are replaced by cleaned ones through .cleaned and .swap (ReplaceSegments), which
//     every crash leaves on one side or the other. Readers inside of the old ones go on.
//   - Damage costs the batches that it hit and no others: the stretch from the end of the good
//     batch in front to the start of the good one behind is in quarantine (see Quarantined).
//   - Offsets are never used twice: the log goes on behind all that is proven to have been there
//     (see provenEnd). Only bad bytes above every proof are cut.
//   - A step that found the disk full is undone and the log is as before (see DiskFullError);
//     if it cannot be undone, or a sync failed, the log is poisoned.
//   - A torn tail above every proof is cut and counted in a warning.
//   - Files below the recovery point, and all files after a clean stop, are trusted until they
//     are read the first time.
//
// Sources: KIP-98 (transactions), KIP-101 (leader epochs), KIP-360 and KIP-890 (producer
// epochs), KIP-33 (time index); in Kafka UnifiedLog, LocalLog, LogLoader, LogSegments,
// ProducerStateManager, ProducerAppendInfo and LeaderEpochFileCache.
package commitlog
