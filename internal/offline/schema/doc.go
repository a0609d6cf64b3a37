// Package schema decodes the records of Kafka's internal topics.
//
// The keys and values of __consumer_offsets, __transaction_state, __share_group_state and the
// metadata log are decoded by tables: coordinator.txt here and those of package metadata. The
// result is JSON as Kafka's generated *JsonConverter classes give it, and text for
// __remote_log_metadata.
package schema
