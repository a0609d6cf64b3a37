// Package offline reads a log directory with no broker: Dump writes down what its files say,
// Check looks for everything that is wrong with them. Both open files for reading only, take
// no lock and change nothing, so they may run beside a broker.
//
// # Files
//
//	DIR/                                  a log directory (an entry of log.dirs)
//	  meta.properties                     cluster, node, id of the directory
//	  .kafka_cleanshutdown                there after a clean stop
//	  *-offset-checkpoint                 partition -> offset
//	  gregor-left-alone                   partitions that are not served
//	  gregor-clean-state                  what each log knew of itself at a clean stop
//	  bootstrap.checkpoint                KRaft snapshot, up to Kafka 3.9
//	  TOPIC-P/                            a partition directory
//	    BASE.log .index .timeindex .txnindex
//	    OFFSET.snapshot                   state of producers in front of OFFSET
//	    leader-epoch-checkpoint, partition.metadata
//	    gregor-losses, gregor-transactions  what is known to be lost
//	  __cluster_metadata-0/               the same, and
//	    OFFSET-EPOCH.checkpoint           KRaft snapshot: batches as in a .log
//	    quorum-state                      JSON
//
// # Dump
//
// The text is that of kafka-dump-log, options included. As JSON there is one object a record,
// with the fields that `gregor consume --json` and the golden sets have:
//
//	{"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,"timestampType":"CreateTime",
//	 "leaderEpoch":0,"key":"azE=","value":null,"headers":[["name","dg=="]]}
//
// plus "control" in a control record, and "decoded" when a decoder was asked for. Of a
// directory it shows the records from the log start on, as a consumer sees them; of a file all.
//
// # Check
//
// A finding is damage, or a note: something that a crash leaves and the next start repairs,
// or that has an innocent explanation. The .log file is the truth that the others are held
// against. What is looked at:
//
//   - frames, checksums and the records inside each batch. Behind a bad batch the next good
//     one is searched for, so one fault does not hide what follows.
//   - offsets: ascending, within the segment, without holes where nothing was compacted
//     away, segments one behind the other.
//   - each index entry leads to the batch it is for; each aborted transaction is indexed.
//   - leader epochs: each batch has the epoch that leader-epoch-checkpoint says.
//   - snapshots of producers, against a replay of the batches in front of them: what it can
//     prove. Producers expire, and compaction and retention remove what they wrote.
//   - snapshots, checkpoints and identities, each for itself, against the log's ends and
//     against the topics of the metadata log.
//   - log directories of one broker, against each other.
//   - what gregor has written down as lost, which is damage that is known: it is reported once.
//
// Beside a broker files grow, roll and go. The size of a file is taken once; where it has grown
// since, bad bytes at its end are read again, and entries of indexes that lead behind it are
// left alone. A partition with damage is looked at again as long as its files change, and what
// is not found every time is none (relook.go).
//
// # Records of internal topics
//
// The keys and values of __consumer_offsets, __transaction_state, __share_group_state and the
// metadata log are decoded by tables: coordinator.txt here and those of package metadata. The
// result is JSON as Kafka's generated *JsonConverter classes give it, and text for
// __remote_log_metadata. In Kafka these tools are DumpLogSegments; nothing there checks a
// directory.
package offline
