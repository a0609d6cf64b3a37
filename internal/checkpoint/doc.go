// Package checkpoint reads and writes Kafka's small text files: those beside the
// partitions in a log directory, and those beside the segments in a partition.
// (Kafka classes CheckpointFile, MetaProperties, CleanShutdownFileHandler and
// PartitionMetadataFile.)
//
// # Offset checkpoints and leader epochs
//
//	0\n                            version, always 0
//	2\n                            count of entries
//	orders 0 4711\n                topic, partition, offset     in *-offset-checkpoint
//	orders 1 4709\n
//
//	0\n2\n0 0\n4 120\n             epoch, first offset of it    in leader-epoch-checkpoint
//
// # meta.properties
//
//	#
//	#Mon Nov 30 03:27:10 UTC 2026
//	cluster.id=q3sw4nb3QVqLDG27ahoLZA
//	version=1
//	directory.id=s_IJ2VxI1SGkVC9hXDOgkg
//	node.id=1
//
// Version 0 (before KRaft) has broker.id instead of node.id, and everything is optional.
// The syntax is that of java.util.Properties.
//
// # partition.metadata and .kafka_cleanshutdown
//
//	version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg         no newline at the end
//	{"version":0,"brokerEpoch":77}                       or nothing at all: up to Kafka 2.8
//
// # Rules
//
//   - A file is written whole to a temporary name, synced, renamed, and its directory
//     synced. What a crash leaves is the old file or the new one.
//   - The files are not transactional with each other; a reader of two of them clamps.
//   - A missing checkpoint is an empty one: Kafka creates it empty when it opens it.
//   - Writers of one path must not run at the same time. Nothing else here has state.
package checkpoint
