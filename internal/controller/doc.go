// Package controller decides changes of the cluster's metadata: topics, partitions,
// configurations, broker registrations and producer ids. (Kafka classes QuorumController,
// ReplicationControlManager, ConfigurationControlManager, ClusterControlManager.)
//
// A decision is a pure function of an Image, a request, the time, randomness and the offset of its
// first record: it returns the records to commit and what to answer, always the same for the same
// arguments. A Controller takes decisions one after the other and proposes their records to the
// quorum, each on the outcome of the one before, whether that is committed yet or not. The records of one request are committed together or not at all. (doc/decisions/0013)
//
// # Rules
//
//   - Requests and results are plain structs: this package has not heard of the protocol. What
//     Kafka refuses with an error code is an *Error whose Kind has the code's name.
//   - A request with several topics or resources is decided one by one: each gets its own
//     answer, and those that are refused leave no trace.
//   - ValidateOnly does everything but commit.
package controller
