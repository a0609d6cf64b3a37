// Package golden gives tests the log directories that brokers of Apache Kafka left, and what
// Kafka's own clients and tools read from them. Nothing but tests imports it.
//
// # Sets
//
//	kafka-0.8.2.2 kafka-0.10.2.2 kafka-1.1.1-mixed   brokers with ZooKeeper: formats v0, v1, all three
//	kafka-3.9.1-kraft kafka-4.4.0-kraft              combined KRaft nodes, every kind of topic and group
//	kafka-4.4.0-kraft-dynamic                        one with a dynamic quorum (KIP-853)
//	kafka-4.4.0-old-formats                          the logs of the oldest three, after an upgrade; `cleaned` after compaction
//	kafka-4.4.0-three-nodes                          data1 to data3, and a log with a tail that was truncated later
//	compaction-4.4.0                                 the same logs before and after each of three cleanings
//	kafka-4.4.0-crash                                after kill -9 under load
//	kafka-4.4.0-torn                                 the crash set, with the damage that Damage lists
//
// All but the last two were stopped cleanly. Files keep their modification times: an empty
// segment counts with the one of its file in a lookup by time.
//
// # Files
//
// Those with DIR speak of the partitions that are in it.
//
//	sets/SET.tar.gz                   the log directories
//	sets/SET.topics.json.gz           ids and configurations of the topics
//	sets/SET.DIR.offsets.json.gz      what ListOffsets answers, of the crash and torn sets after Kafka's recovery
//	sets/SET.DIR.records.jsonl.gz     what a read_uncommitted consumer reads, one record a line
//	sets/SET.DIR.uncommitted.txt      which of these a read_committed consumer does not get
//	sets/SET.dump.gz                  what kafka-dump-log of 4.4.0 prints of all logs
package golden
