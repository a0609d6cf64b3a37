// Package cleaner keeps compacted logs small: of the records with the same key the last one
// stays (Kafka's LogCleaner and Cleaner, storage-format section 8).
package cleaner
