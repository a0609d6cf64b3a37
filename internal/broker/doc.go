// Package broker builds every part of a broker from its configuration, owns the order in
// which they start and stop, and passes metadata changes to those that care.
//
// # Start
//
//	listen      bind the addresses, so that a taken port is an error before anything changes
//	logdir      lock the directories, and look what lies there
//	quorum      read the metadata log, and apply it
//	ownership   may this broker go on with all that? until here nothing is written
//	logdir      meta.properties
//	web         metrics, health and gregor.sock, so that what follows can be watched
//	quorum      lead the metadata log
//	register    this broker in the metadata, if anything about it is new
//	logdir      load the logs, with the configs that the image has for their topics
//	replica     partitions as the image says; coordinators take their shards
//	cleaner     compacted logs are cleaned
//	wire        requests are answered
//
// Close goes the other way round. Nothing is started that Close does not wait for.
//
// # Metadata changes
//
// The quorum calls one subscriber, here, which applies a delta in this order: dynamic
// configs, topic configs to the logs, partitions (which tell the coordinators), deleted
// topics to the group coordinator. When a Propose returns all of that has happened.
package broker
