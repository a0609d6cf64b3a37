// Package check looks for everything that is wrong with log directories, with no broker. It opens files
// for reading only, takes no lock and changes nothing, so it may run beside a broker. Nothing in Kafka
// checks a directory.
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
package check
