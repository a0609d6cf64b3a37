// Package segment keeps one stretch of a partition's log: the batches from a base offset on, in
// a .log file, and what finds them by offset, by time and by aborted transaction. It needs no
// broker: a tool that reads a Kafka data directory needs this package and record.
//
// # Files
//
// Names are the base offset with 20 digits and a suffix. All integers are big-endian.
//
//	00000000000000004200.log        batches, one behind the other, and nothing else
//
//	00000000000000004200.index      0          4          8
//	                                +----------+----------+
//	                                | offset   | position |  offset - base, byte in .log
//	                                +----------+----------+
//
//	00000000000000004200.timeindex  0                     8          12
//	                                +---------------------+----------+
//	                                | timestamp ms        | offset   |  offset - base
//	                                +---------------------+----------+
//
//	00000000000000004200.txnindex   0    2         10       18       26           34
//	                                +----+---------+--------+--------+------------+
//	                                | 0  | prod id | first  | last   | lastStable |
//	                                +----+---------+--------+--------+------------+
//
// # Rules
//
//   - An index entry has the LAST offset of a batch and the position where that batch STARTS:
//     find the last entry at or below an offset, then walk on to the batch that has it.
//   - A batch gets an entry when more than index.interval.bytes of batches have been written
//     since the last one, so the first batch of a segment never does.
//   - A time index entry has the largest timestamp so far and the last offset of the batch that
//     has it. Timestamps increase strictly: one that is not larger is left out. The last slot
//     of the file is kept for the entry that Seal makes.
//   - An offset fits the segment when it is at most 2^31-1 above the base.
//   - Kafka makes the indexes of its active segment 10 MiB long and trims them later; we write
//     them as they grow, in pieces, which Kafka reads as well, and make the files a moment after
//     the segment. Zeros behind the last entry are what a Kafka that crashed leaves, and Kafka 4.4
//     in its metadata log.
//   - The .log file is the truth. Entries read from a file are checked against the batch they
//     lead to whenever they are used, and indexes that are missing, damaged or of another
//     segment are replaced by ones made from the headers in .log. So a bad index costs time
//     and never gives a wrong answer or an error.
//   - The checksum covers neither the base offset nor the length. A batch is good if its frame and
//     checksum are right and its offsets go on from the batch in front of it. What lies between
//     two good batches and is none is a Damage: readers pass it by, as told by Guard.
//   - A crash may leave anything behind the last Flush: Recover walks the segment and cuts it.
//     While a segment has a writer Flush leaves its indexes alone.
//
// # Reading beside the writer
//
//	writer: write bytes -> store size -> add entries     (one at a time, the log's mutex)
//	reader: find entry -> load size -> read one block, walk its headers     (no lock)
//
// A reader sees whole batches up to the size it loaded. What it returns is a Slice of the file,
// not bytes. Descriptors belong to a FileCache, which closes those that were not used for the
// longest time; a Slice keeps its own until Release. Sealed segments keep their indexes in an
// IndexCache likewise. So a segment that nobody uses has neither.
//
// In Kafka these are LogSegment, OffsetIndex, TimeIndex and TransactionIndex.
package segment
