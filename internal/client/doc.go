// Package client is the client side of the command line: what `gregor topics`, `gregor
// produce` and `gregor consume` do, without flags and exit codes (those are in
// cmd/gregor). It speaks to any Kafka broker through franz-go and knows nothing of
// gregor's own parts. (Kafka's counterparts: TopicCommand, ConsoleProducer,
// ConsoleConsumer in org.apache.kafka.tools.)
package client
