package commitlog

import (
	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// Names in a partition's directory, besides those of package segment and of checkpoint.
const (
	// keptSuffix ends in segment.DeletedSuffix and is none of ours: a KRaft snapshot.
	keptSuffix = checkpoint.SnapshotSuffix + segment.DeletedSuffix

	asideSuffix = ".aside" // of segments that are no part of the log; Kafka ignores them
)

func snapshotName(offset int64) string { return segment.Name(offset, "", checkpoint.ProducersSuffix) }
