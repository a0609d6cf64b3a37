// Package replica holds the partitions of this broker as the metadata says they are: which
// it leads, in which epoch, with which in-sync replicas; and routes appends and reads to
// their logs. (Kafka classes ReplicaManager and Partition.)
//
// # An append
//
//	Partition.Append -> leader? min ISR? -> commitlog.Log.AppendAsLeader
//	                 -> high watermark moves -> waiting fetches and produces wake
//
// # A fetch
//
//	Manager.Fetch -> read every partition, each from one snapshot of its log
//	              -> too little: watch the partitions, look again, wait, read from scratch
//
// # Rules
//
//   - Leadership does not change during an append: an append holds Partition.mu for
//     reading, a change for writing. Nobody else waits for it; fetches take no lock.
//   - The high watermark is the end of the shortest log among the in-sync replicas: with
//     no followers, the end of our own. It stands still while there are fewer in-sync
//     replicas than min.insync.replicas asks for, of the replicas there are (KIP-966).
//   - A leader epoch enters the log's epoch cache with the first batch written in it, which
//     is on disk before that batch is acknowledged. Until then the partition itself answers
//     questions about it, so that becoming a leader writes no file.
//   - Look-ups of topics by name or id take no lock and allocate nothing.
package replica
