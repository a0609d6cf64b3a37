// Package metrics counts, and writes what was counted in the text format of Prometheus.
//
//	# HELP kafka_log_log_size Bytes of all segments.
//	# TYPE kafka_log_log_size gauge
//	kafka_log_log_size{topic="orders",partition="0"} 4096
//
// # Rules
//
//   - A hot path adds to an atomic and does nothing else. Everything else is read from the
//     parts of the broker when somebody asks.
//   - All samples of a family follow each other, behind its HELP and TYPE.
//   - A label value may be any string, also one that a client chose.
//
// The format: https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4.
package metrics
