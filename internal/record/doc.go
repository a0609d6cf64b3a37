// Package record reads and writes Kafka record batches: the unit that producers send,
// brokers store and consumers fetch. It touches no file, socket or clock.
//
// # Frame
//
// All formats start alike, and the format's number, magic, is at byte 16 in each:
//
//	0            8          12                 16  17
//	+------------+----------+------------------+---+----
//	| Offset     | Length   | depends on magic | M | ...
//	+------------+----------+------------------+---+----
//
// Integers are big-endian. Length counts the bytes after itself.
//
// # Batch, format v2
//
// Numbers above a box are byte positions.
//
//	0            8          12         16  17        21
//	+------------+----------+----------+---+---------+
//	| BaseOffset | Length   | LeaderEp | 2 | CRC-32C |
//	+------------+----------+----------+---+---------+
//	21     23          27             35             43
//	+------+-----------+--------------+--------------+
//	| Attr | LastDelta | BaseTime     | MaxTime      |
//	+------+-----------+--------------+--------------+
//	43           51       53        57      61
//	+------------+--------+---------+-------+-----------
//	| ProducerID | PEpoch | BaseSeq | Count | records ...
//	+------------+--------+---------+-------+-----------
//
// The CRC covers Attr to the end, so a broker may set BaseOffset and LeaderEp without
// computing it again.
//
//	Attr bit  6               5        4              3            2 1 0
//	          delete horizon  control  transactional  append time  codec
//
// A record is a zigzag varint length and then (v = zigzag varint):
//
//	attributes i8 | timestamp delta v | offset delta v | key length v, key |
//	value length v, value | header count v | { key length v, key, value length v, value } ...
//
// Compressed, the records together are one block; the header stays plain.
//
// # Message, formats v0 and v1
//
//	0            8          12      16  17    18 (v1 only)   v0 18, v1 26
//	+------------+----------+-------+---+------+-------------+------------------------
//	| Offset     | Length   | CRC   | M | Attr | Timestamp   | key length i32, key,
//	+------------+----------+-------+---+------+-------------+ value length i32, value
//
// The CRC is CRC-32 (IEEE) from magic to the end. A compressed set is one message, the
// wrapper, whose value is a whole message set; it has the offset of its last inner message.
// Inner offsets are absolute in v0, and in v1 relative to the first.
//
// # Rules
//
//   - LastDelta >= Count-1; they differ only where compaction dropped records.
//   - LastDelta, BaseOffset and BaseSeq survive compaction, Count may even become 0.
//   - With append time, every record's timestamp is MaxTime, whatever its delta says.
//   - With a delete horizon, BaseTime holds the horizon; deltas count from it.
//   - A negative length is null. An empty value is no tombstone, a null one is.
//   - v0 with LZ4 has a wrong frame header checksum, on purpose and for ever.
//   - A Batch is a view. It is valid as long as the bytes under it are.
//   - A compressed batch stays compressed on disk and on its way out. Only validation,
//     cleaning and down-conversion look inside.
//
// The formats are those of KIP-98 (v2), KIP-82 (headers) and KIP-32 (v1); KIP-390 has the levels of codecs.
// In Kafka the same is in DefaultRecordBatch, DefaultRecord, LegacyRecord and LogValidator.
package record
