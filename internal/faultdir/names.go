package faultdir

import (
	"path"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A FileKind says what a file of a log directory is for.
type FileKind string

// Kinds of files. Those of the metadata log have kinds of their own.
const (
	LogFile           FileKind = ".log"
	OffsetIndex       FileKind = ".index"
	TimeIndex         FileKind = ".timeindex"
	TxnIndex          FileKind = ".txnindex"
	ProducerSnapshot  FileKind = ".snapshot"
	LeaderEpochs      FileKind = "leader-epoch-checkpoint"
	PartitionMetadata FileKind = "partition.metadata"
	PartitionDir      FileKind = "partition directory"

	RecoveryPoints FileKind = "recovery-point-offset-checkpoint"
	LogStarts      FileKind = "log-start-offset-checkpoint"
	HighWatermarks FileKind = "replication-offset-checkpoint"
	CleanerPoints  FileKind = "cleaner-offset-checkpoint"
	MetaProperties FileKind = "meta.properties"
	CleanShutdown  FileKind = ".kafka_cleanshutdown"
	CleanState     FileKind = "gregor-clean-state"
	Bootstrap      FileKind = "bootstrap.checkpoint"

	MetadataLog       FileKind = "metadata .log"
	MetadataSnapshot  FileKind = "metadata .checkpoint"
	MetadataCompanion FileKind = "metadata companion" // what quorum writes and does not need
	MetadataDir       FileKind = "metadata directory"
	QuorumState       FileKind = "quorum-state"

	OtherFile FileKind = "other"
)

// inDir are the files that lie in a log directory itself.
var inDir = map[string]FileKind{
	checkpoint.RecoveryPoints: RecoveryPoints, checkpoint.LogStartOffsets: LogStarts, checkpoint.HighWatermarks: HighWatermarks,
	string(CleanerPoints): CleanerPoints, checkpoint.MetaPropertyFile: MetaProperties, checkpoint.CleanShutdown: CleanShutdown,
	string(CleanState): CleanState, string(Bootstrap): Bootstrap,
}

// metadataDir is the name of the directory of the metadata log.
const metadataDir = topic.ClusterMetadata + "-0"

// kindOf tells what a file is.
func kindOf(name string) FileKind {
	base := path.Base(name)
	if kind, ok := inDir[base]; ok {
		return kind
	}
	kind := OtherFile
	switch ext := FileKind(path.Ext(base)); {
	case base == string(LeaderEpochs), base == string(PartitionMetadata):
		kind = FileKind(base)
	case base == string(QuorumState):
		return QuorumState
	case ext == ".checkpoint":
		return MetadataSnapshot
	case len(base) == 20+len(ext) && strings.Trim(base[:20], "0123456789") == "":
		switch ext {
		case LogFile, OffsetIndex, TimeIndex, TxnIndex, ProducerSnapshot:
			kind = ext
		}
	}
	if path.Base(path.Dir(name)) != metadataDir || kind == OtherFile {
		return kind
	}
	if kind == LogFile {
		return MetadataLog
	}
	return MetadataCompanion
}

// partitionOf returns the partition that a file, or a directory, belongs to.
func partitionOf(name string) (topic.Partition, bool) {
	for _, dir := range []string{path.Base(path.Dir(name)), path.Base(name)} {
		if p, err := topic.ParsePartition(dir); err == nil && topic.ValidateName(p.Topic) == nil && p.Topic != topic.ClusterMetadata {
			return p, true
		}
	}
	return topic.Partition{}, false
}

// identity reports whether a file says whose the directory is: a start may refuse what is wrong
// with it.
func (k FileKind) identity() bool {
	switch k {
	case MetaProperties, Bootstrap, MetadataLog, MetadataSnapshot, MetadataCompanion, MetadataDir, QuorumState:
		return true
	}
	return false
}
