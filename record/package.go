// Package record reads and writes Kafka's record batches: the unit that producers send, brokers store and
// consumers fetch. It has all formats, v0 to v2, and all codecs, and touches no file, socket or clock.
//
// A reader goes over bytes, as they are in a .log file or in the answer to a fetch, with Batches, checks what it
// wants with Batch.Verify, and goes over Batch.Records, which decompresses. A writer fills a Builder; for the
// formats v0 and v1 of old brokers, a SetBuilder.
//
// What is written here is what Kafka writes. Zero values mean nothing: no codec, no producer, no leader epoch, no
// delete horizon.
//
// The types are those of the broker, whose other uses of them are internal; the formats are drawn in the
// documentation of internal/record.
package record
