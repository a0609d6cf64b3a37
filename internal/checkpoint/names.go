package checkpoint

// Files of a log directory.
const (
	RecoveryPoints   = "recovery-point-offset-checkpoint"
	LogStartOffsets  = "log-start-offset-checkpoint"
	HighWatermarks   = "replication-offset-checkpoint"
	CleanerOffsets   = "cleaner-offset-checkpoint"
	MetaPropertyFile = "meta.properties"
	CleanShutdown    = ".kafka_cleanshutdown"
)

// Files of a partition directory.
const (
	LeaderEpochs          = "leader-epoch-checkpoint"
	PartitionMetadataFile = "partition.metadata"
	Losses                = "gregor-losses" // Kafka ignores it
)
