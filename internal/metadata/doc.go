// Package metadata holds what Kafka's metadata log says: its records, and the Image that they
// add up to. It is pure: no file, clock or goroutine.
//
// # Records
//
// The cluster's metadata is a log of records (KIP-500, KIP-631), kept in the directory
// __cluster_metadata-0. The types and their codecs are generated from Kafka's field tables
// (records.txt, gen). The value of a record in a batch is
//
//	+-----------+---------+---------+--------+
//	| frame = 1 | API key | version | fields |
//	+-----------+---------+---------+--------+
//	  unsigned varints                flexible encoding
//
// Control batches hold ControlRecords instead: who leads (LeaderChangeMessage), and the first
// and last record of a snapshot (SnapshotHeaderRecord, SnapshotFooterRecord).
//
// The version of a record follows the feature metadata.version of the cluster (Append), so that
// a directory which an older Kafka wrote remains one that it can read.
//
// # Image
//
// An Image is the sum of all records up to Offset. It is immutable: Apply returns a new Image
// which shares all that did not change, and a Delta that says what did. Its cost depends on
// the records, not on the size of the cluster. (Kafka classes MetadataImage, MetadataDelta.)
//
// # Rules
//
//   - A topic's name and id are both unique; partitions are numbered from 0 without gaps.
//   - Everything reachable from an Image is read only, slices and maps included.
//   - A record that does not fit the Image (a partition of an unknown topic) is an error and
//     changes nothing: a log with such a record cannot be understood.
package metadata
