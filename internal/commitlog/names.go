package commitlog

import (
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/segment"
)

// Names in a partition's directory, besides those of package segment and of checkpoint.
const (
	snapshotSuffix = ".snapshot"

	// keptSuffix ends in segment.DeletedSuffix and is none of ours: a KRaft snapshot.
	keptSuffix = ".checkpoint.deleted"

	asideSuffix = ".aside" // of segments that are no part of the log; Kafka ignores them

	// DeleteDirSuffix ends the name of a directory that is to be deleted.
	DeleteDirSuffix = "-delete"
)

func snapshotName(offset int64) string { return segment.Name(offset, "", snapshotSuffix) }

// parseSnapshotName returns the offset in the name of a producer snapshot.
func parseSnapshotName(name string) (int64, bool) {
	if !strings.HasSuffix(name, snapshotSuffix) {
		return 0, false
	}
	return parseOffset(name)
}

// parseOffset returns the offset that a name begins with: all before the first dot.
func parseOffset(name string) (int64, bool) {
	digits, _, _ := strings.Cut(name, ".")
	offset, err := strconv.ParseUint(digits, 10, 63) // which takes no sign
	return int64(offset), err == nil
}
