package quorum

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// Names in the metadata directory.
const (
	logSuffix        = ".log"
	checkpointSuffix = ".checkpoint"
	partSuffix       = ".part"     // a checkpoint that is being written
	receivedSuffix   = ".received" // a checkpoint from the leader, until it has taken the place of the log
	damagedSuffix    = ".damaged"  // a checkpoint that the operator gave up
	producersSuffix  = ".snapshot" // producer state, of which the metadata log has none

	quorumStateFile       = "quorum-state"
	epochsFile            = "leader-epoch-checkpoint"
	partitionMetadataFile = "partition.metadata"
	bootstrapFile         = "bootstrap.checkpoint" // in the directory above, up to Kafka 3.9
)

// logDir returns the directory of the metadata log below a log directory.
func logDir(dir string) string {
	return filepath.Join(dir, topic.Partition{Topic: topic.ClusterMetadata, Partition: 0}.String())
}

func segmentName(base int64) string { return fmt.Sprintf("%020d%s", base, logSuffix) }

// parseSegment returns the base offset of a segment's .log file.
func parseSegment(name string) (base int64, ok bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	if !ok || len(digits) < 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63) // which takes no sign
	return int64(n), err == nil
}

// A snapshotID names a snapshot: the state before endOffset, which is the first offset of a
// batch or the end of the log; epoch is that of the last batch before it.
type snapshotID struct {
	endOffset int64
	epoch     int32
}

// bootstrapID is the checkpoint of what a new cluster starts with. It is no snapshot of the log.
var bootstrapID = snapshotID{}

func (id snapshotID) String() string { return fmt.Sprintf("%020d-%010d", id.endOffset, id.epoch) }

func parseSnapshotID(s string) (id snapshotID, ok bool) {
	offset, epoch, ok := strings.Cut(s, "-")
	if !ok || len(offset) < 20 || len(epoch) < 10 {
		return id, false
	}
	o, err1 := strconv.ParseUint(offset, 10, 63)
	e, err2 := strconv.ParseUint(epoch, 10, 31)
	return snapshotID{int64(o), int32(e)}, err1 == nil && err2 == nil
}

// parseCheckpoint returns the id in the name of a checkpoint.
func parseCheckpoint(name string) (id snapshotID, ok bool) {
	s, ok := strings.CutSuffix(name, checkpointSuffix)
	if !ok {
		return id, false
	}
	return parseSnapshotID(s)
}
