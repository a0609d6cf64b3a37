package quorum

import (
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// damagedSuffix ends the name of a checkpoint that the operator gave up. The other names are those of
// packages checkpoint and segment.
const damagedSuffix = ".damaged"

// logDir returns the directory of the metadata log below a log directory.
func logDir(dir string) string {
	return filepath.Join(dir, topic.Partition{Topic: topic.ClusterMetadata, Partition: 0}.String())
}

func segmentName(base int64) string { return segment.Name(base, segment.LogFile, "") }

// parseSegment returns the base offset of a segment's .log file, which has all its digits.
func parseSegment(name string) (base int64, ok bool) {
	base, kind, suffix, ok := segment.ParseName(name)
	return base, ok && kind == segment.LogFile && suffix == "" && len(name) >= len(segmentName(0))
}

// A snapshotID names a snapshot: the state before endOffset, which is the first offset of a
// batch or the end of the log; epoch is that of the last batch before it.
type snapshotID struct {
	endOffset int64
	epoch     int32
}

// bootstrapID is the checkpoint of what a new cluster starts with. It is no snapshot of the log.
var bootstrapID = snapshotID{}

func (id snapshotID) String() string { return checkpoint.SnapshotID(id.endOffset, id.epoch) }

// parseCheckpoint returns the id in the name of a checkpoint.
func parseCheckpoint(name string) (snapshotID, bool) {
	end, epoch, ok := checkpoint.ParseSnapshotName(name)
	return snapshotID{end, epoch}, ok
}
