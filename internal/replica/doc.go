// Package replica holds the partitions of this broker as the metadata says they are: which
// it leads, in which epoch, with which in-sync replicas; and routes appends and reads to
// their logs. (Kafka classes ReplicaManager and Partition.)
//
// # What is decided and what is done
//
//	PartitionState   decides: pure, of what the metadata, the followers and the controller said
//	Partition        does: the lock, the log and who waits around a PartitionState
//	Manager          has the Partitions, as the metadata says
//
// What a PartitionState decides is told by the scripts in testdata/state, of any number of
// brokers.
//
// # An append
//
//	Partition.Append -> leader? min ISR? -> commitlog.Log.AppendAsLeader
//	                 -> high watermark moves -> waiting fetches and produces wake
//
// # A fetch
//
//	Manager.Fetch -> read every partition, each from one snapshot of its log
//	              -> a follower's: its end is noted, the ISR and the high watermark move
//	              -> too little: watch the partitions, look again, wait, read from scratch
//
// # A follower
//
//	fetcher, one per leader (num.replica.fetchers at most) -> Leader.Fetch, in an incremental session
//	        -> what the answer means (followed) -> append as it came, truncate, or go on elsewhere
//	        -> high watermark and log start of the leader are taken over
//
// What a fetcher decides is told by the scripts in testdata/fetcher. A follower whose log is damaged and that nobody
// counts on, as after a loss of power, cuts the log there and gets the rest from the leader.
//
// # Rules
//
//   - Leadership does not change during an append: an append holds Partition.mu for
//     reading, a change for writing. Nobody else waits for it; consumers take no lock.
//   - The high watermark is the end of the shortest log among the in-sync replicas: with
//     no followers, the end of our own. It stands still while there are fewer in-sync
//     replicas than min.insync.replicas asks for, of the replicas there are (KIP-966).
//   - An addition to the ISR counts for the high watermark from the moment it is asked for, a
//     removal from the moment it is committed (KIP-497).
//   - Epochs never go back: metadata older than what is known changes nothing.
//   - A leader epoch enters the log's epoch cache with the first batch written in it, which
//     is on disk before that batch is acknowledged. Until then the partition itself answers
//     questions about it, so that becoming a leader writes no file.
//   - A step of a follower is done while the partition is one in the leader epoch of the fetch: no log is cut, and
//     nothing appended, that has become the leader's.
//   - Look-ups of topics by name or id take no lock and allocate nothing. What is known of
//     followers takes memory only where there are some.
package replica
