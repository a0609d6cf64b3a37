package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// Names of files and directories that more than one package knows are here, those of segments in package segment.

// Files of a log directory.
const (
	RecoveryPoints    = "recovery-point-offset-checkpoint"
	LogStartOffsets   = "log-start-offset-checkpoint"
	HighWatermarks    = "replication-offset-checkpoint"
	CleanerOffsets    = "cleaner-offset-checkpoint"
	MetaPropertyFile  = "meta.properties"
	CleanShutdown     = ".kafka_cleanshutdown"
	LockFile          = ".lock"
	BootstrapSnapshot = "bootstrap.checkpoint" // of a new cluster, up to Kafka 3.9

	// Kafka ignores these.
	CleanState = "gregor-clean-state" // what each log knew of itself at a clean stop
	LeftAlone  = "gregor-left-alone"  // partitions that are not served
	Socket     = "gregor.sock"        // of a running broker, in its first log directory
)

// Suffixes of the directories of partitions that are not live: topic-partition.id and one of these.
const (
	DeleteDirSuffix = "-delete" // waits for its removal
	StrayDirSuffix  = "-stray"  // belongs to no partition of this broker; nobody removes it
	FutureDirSuffix = "-future" // copy of a partition that moves here from another log directory
)

// Files of a partition directory.
const (
	LeaderEpochs          = "leader-epoch-checkpoint"
	PartitionMetadataFile = "partition.metadata"
	QuorumState           = "quorum-state" // in that of the metadata log

	// Kafka ignores these.
	Losses           = "gregor-losses"
	TransactionsFile = "gregor-transactions"
	CopyMarker       = "gregor-copy" // the partition moves here from another log directory
)

// Suffixes of files of a partition directory, behind an offset.
const (
	ProducersSuffix = ".snapshot"   // producer state
	SnapshotSuffix  = ".checkpoint" // of the metadata
	PartSuffix      = ".part"       // behind that: a snapshot that is being written
	ReceivedSuffix  = ".received"   // behind that: one from the leader, until it has taken the place of the log
)

// ParseOffset reads the digits in a file's name. An offset has no sign.
func ParseOffset(digits string) (int64, bool) {
	offset, err := strconv.ParseUint(digits, 10, 63)
	return int64(offset), err == nil
}

// LeadingOffset returns the offset that a file's name begins with: as in Kafka, all before the first dot.
func LeadingOffset(name string) (int64, bool) {
	digits, _, _ := strings.Cut(name, ".")
	return ParseOffset(digits)
}

// ParseProducersName returns the offset in the name of a producer snapshot.
func ParseProducersName(name string) (int64, bool) {
	if !strings.HasSuffix(name, ProducersSuffix) {
		return 0, false
	}
	return LeadingOffset(name)
}

// SnapshotID writes the id of a snapshot of the metadata: the offset and the epoch where it ends. With
// SnapshotSuffix it is the name of the file.
func SnapshotID(end int64, epoch int32) string { return fmt.Sprintf("%020d-%010d", end, epoch) }

// ParseSnapshotID reads what SnapshotID writes.
func ParseSnapshotID(id string) (end int64, epoch int32, ok bool) {
	offset, rest, ok := strings.Cut(id, "-")
	if !ok || len(offset) < 20 || len(rest) < 10 {
		return 0, 0, false
	}
	end, ok = ParseOffset(offset)
	e, err := strconv.ParseUint(rest, 10, 31)
	return end, int32(e), ok && err == nil
}

// ParseSnapshotName reads the name of a snapshot's file.
func ParseSnapshotName(name string) (end int64, epoch int32, ok bool) {
	id, ok := strings.CutSuffix(name, SnapshotSuffix)
	if !ok {
		return 0, 0, false
	}
	return ParseSnapshotID(id)
}
