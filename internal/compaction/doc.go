// Package compaction keeps one compacted log small: of the records with the same key the last one
// stays (Kafka's Cleaner and SkimpyOffsetMap, doc/format.md section 7). Which log is cleaned and when is
// decided by package cleaner.
//
// # The cleaning of a log
//
//	 clean                      dirty                        not touched
//	+-----------+-----------+  +-----------+-----------+    +-----------+
//	| segment 0 | segment 1 |  | segment 2 | segment 3 |    | active    |
//	+-----------+-----------+  +-----------+-----------+    +-----------+
//	                            1. offset map: which record of a key survives
//	 2. from here to there every segment is rewritten, some neighbours into one
//	+-----------------------+  +-----------------------+
//	| 0.log.cleaned         |  | 2.log.cleaned         |   3. swapped in, a group at a time
//	+-----------------------+  +-----------------------+      (commitlog.ReplaceSegments)
//
// If the map is full the round ends there, in the middle of a segment or of a batch: what is
// behind is copied, and the next round goes on. Each phase reads whole chunks, parses and
// hashes some hundred records, touches their slots, and then looks them up: most of the time
// goes into waiting for memory, and that way the waits overlap.
//
// What becomes of a batch, first match (doc/format.md 7.5):
//
//	data of an aborted transaction    dropped
//	marker, records of its
//	 transaction are there            kept
//	marker otherwise                  gets a delete horizon; dropped when that is over
//	other                             its records are looked at one by one
//
//	record behind the map's end       kept
//	record without a key              dropped
//	record that another one beats     dropped
//	tombstone beyond its horizon      dropped
//	other                             kept; a batch with a tombstone gets a delete horizon
//
// A batch that loses nothing is copied as it is, many in one write. One that loses records is
// rebuilt with its offsets, sequence, producer, codec and format; one that loses all is dropped,
// but for its header if it is the last of a producer that is alive, or of the cleaned range.
//
// # Rules
//
//   - Before anything goes all that is dirty is on the disk: a power failure must not take a
//     record for which an older one was removed.
//   - After any crash, error or abort every key has its last record. Groups are swapped in
//     from the oldest to the newest, so a tombstone never goes before what it deletes.
//   - Every batch is checked before it is used. A segment with damage is not rewritten, so that
//     quarantine, and what may be repaired, survive to the byte (doc/decisions/0005). Behind it
//     no tombstone and no marker goes.
//   - A batch with a right checksum whose records cannot be read is copied, with the same
//     consequence.
//   - Keys are compared by a digest of 128 bits under a secret key (see hasher).
//   - Messages of formats v0 and v1 keep their format, as up to Kafka 3. Their tombstones go when
//     their file is older than the newest cleaned one by delete.retention.ms.
//   - The transaction index of the output has what readers still need: the aborted transactions
//     that had records when their marker was kept.
//   - The output has the modification time of the newest source.
package compaction
