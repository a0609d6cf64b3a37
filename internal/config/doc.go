// Package config knows every configuration key of Kafka: its type, default, allowed
// values and where it may be set. It reads server.properties, resolves the value of a
// key from all places that can set it, and describes the result as DescribeConfigs does.
// It opens no file and starts nothing.
//
// # Where a value comes from
//
// First match wins:
//
//	broker key   node's dynamic value > cluster's dynamic value > server.properties, --set > default
//	topic key    topic's dynamic value > the broker keys behind it, by the same chain
//
// A topic key has a broker key behind it, and some broker keys are families: the first
// name that has a value decides.
//
//	retention.ms       log.retention.ms, .minutes, .hours
//	segment.ms         log.roll.ms, .hours
//	segment.jitter.ms  log.roll.jitter.ms, .hours
//	flush.ms           log.flush.interval.ms, log.flush.scheduler.interval.ms
//
// # The table
//
// keys.tsv holds one key per line, tab separated:
//
//	scope        broker, topic, group or client-metrics
//	name
//	type         boolean, string, int, short, long, double, list, class, password
//	default      "null" is no value, "(required)" a key that has to be given
//	valid        allowed values: [low,...,high], [one, of, these] or a remark
//	importance   high, medium or low; "internal" keys are described only where they are set
//	dynamic      broker keys: read-only, per-broker or cluster-wide
//	broker key   topic keys: the broker key that is the default
//	last known   release that still knew the key; empty for today's keys
//
// docs.tsv says in one sentence what gregor does with a key. A key of Kafka without a
// sentence is accepted, validated and described, but has no effect yet; the same holds for keys of
// older releases. [Parse] returns a warning for each of these groups.
//
// # Rules
//
//   - A Broker or Topic is a snapshot and never changes: any goroutine may read it.
//   - Getters parse on each call and panic with "BUG:" on a key that the table does not
//     have in that type; values were checked on the way in. Code that runs once per
//     request keeps what it got.
//
// Sources: the ConfigDef objects of Kafka 4.4.0 (KafkaConfig, LogConfig, GroupConfig),
// DynamicBrokerConfig and ConfigHelper.
package config
