// Package quorum agrees on the cluster's metadata and keeps it in Kafka's metadata log.
// Consensus is hashicorp/raft's; this package gives it a log, a place for its vote, a state
// machine and snapshots, all in files that Kafka's own KRaft reads and writes.
//
// # The log is Kafka's
//
// There is one log, not two: raft's entries are the batches of __cluster_metadata-0.
//
//	raft                          __cluster_metadata-0
//	entry                         batch (v2)
//	index                         number of the batch, counted at open from an anchor: RaftIndex in
//	                              a LeaderChange or in the header of a snapshot
//	term                          leader epoch of the batch
//	no-op at the start of a term  control batch with a LeaderChangeMessage
//	configuration                 control batch with KRAFT_VOTERS
//	command                       batch of metadata records; a barrier is one with a NoOpRecord
//	current term, vote            quorum-state
//	snapshot                      <end offset>-<epoch>.checkpoint
//	bootstrap configuration       00000000000000000000-0000000000.checkpoint, currentVoters
//
// An entry's bytes are made once, by the leader, and all voters have the same (doc/decisions/0014).
// Voters reach each other by connections that begin with a Hello (Options.Peers). One voter is all
// that the rest of gregor makes of it yet; tests in this package have three.
//
// So one proposal is one write and one sync, what is committed cannot be there twice or in one
// place only, and a directory may pass from Kafka to gregor and back. doc/decisions has what
// was considered instead.
//
// # Files in __cluster_metadata-0
//
//	00000000000000000000.log               batches; the name is the first offset
//	00000000000000001234-0000000002.checkpoint  the state before offset 1234, in epoch 2
//	....checkpoint.received                from the leader, about to take the place of the log
//	quorum-state                           JSON: epoch, vote, leader, voters
//	leader-epoch-checkpoint                first offset of each epoch
//	partition.metadata                     the topic id of the metadata log
//	00000000000000002345.snapshot          no producers; the log ended there at a clean stop
//
// Index files are Kafka's to make: it rebuilds those of the metadata log at every start.
//
// # Rules
//
//   - A batch is written and synced before raft counts it as stored. A lone voter commits what
//     it has stored.
//   - At most one batch is unsynced at any time, so a torn tail is part of one batch. A good
//     batch behind a bad one is corruption, and Open refuses.
//   - Anchors agree. Without one, a batch at offset o in the front of the log is numbered o+1, which
//     no index exceeds.
//   - A follower stores what the leader made if it is what comes next to the byte, offset included.
//   - Read writes nothing, and applies all that is there: a batch or a snapshot that does not fit is
//     named before anything has changed. What the files beside the log prove of its length, and
//     who votes, is Evidence for package ownership.
//   - A failed write or sync ends all writing until the directory is opened again.
//   - Proposals build on each other before they are committed (Tail). If one fails, those behind it
//     fail too, and the next is made of what is there then.
//   - Subscribers are called in the order of the log, one at a time, on the publisher's goroutine:
//     raft goes on meanwhile. A caller that waits for its proposal waits for them too.
//
// # Snapshots
//
// When the log behind the last snapshot has grown past Options.SnapshotBytes and past the
// snapshot's own size, the Image is written as a checkpoint and the segments before it go.
// Start-up therefore reads at most about twice the size of the metadata.
package quorum
