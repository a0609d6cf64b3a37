// Package leader is the broker that leads a partition as its followers reach it: replica.Leader by Kafka's own requests,
// Fetch and ListOffsets, over a peer.Client. Answers of any release are taken apart with every length checked; their
// records stay where they arrived. Error codes end here.
package leader
