// Package files knows what a log directory holds: which file is what, the batches of a .log file, good
// and bad, and the entries of the small binary files. It opens files for reading only.
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
package files
