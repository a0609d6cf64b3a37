// Package segment reads and writes the segments of a Kafka partition's log: the batches from a base offset on, in a
// .log file, and the indexes beside it. With package record it is all that a program needs that reads a Kafka data
// directory, or makes one.
//
// A Reader never changes a file, and may be used beside a broker that appends. A Writer is the only one who writes a
// segment, and a broker must not have it.
//
// Disks come as a vfs.FS: vfs.OS, or one in memory for tests.
//
// The files are drawn, and the rules of the indexes told, in the documentation of internal/segment, which brokers use.
package segment
