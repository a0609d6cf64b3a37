package replica

import (
	"context"
	"time"
)

// A Leader is a broker that leads partitions which this one follows. One goroutine uses it. A call that fails says
// nothing about what the leader has done.
type Leader interface {
	// Fetch asks for records. What the answer holds is good until the next call.
	Fetch(ctx context.Context, q *LeaderFetch) (*LeaderAnswer, error)
	// LogOffsets asks where the leader's log begins and ends, in the epoch that the caller knows.
	LogOffsets(ctx context.Context, topic string, index, epoch int32) (start, end int64, err error)
	// Close lets go of the connection.
	Close()
}

// A LeaderFetch is what a follower asks of a leader: all partitions of a session that changed.
type LeaderFetch struct {
	Follower
	MaxWait      time.Duration
	MinBytes     int
	MaxBytes     int
	PartitionMax int // bytes
	SessionID    int32
	SessionEpoch int32
	Partitions   []AskedPartition // those of a topic follow each other
	Forgotten    []PartitionID    // likewise
}

// An AskedPartition is what a follower asks of one partition.
type AskedPartition struct {
	PartitionID
	Offset      int64
	LogStart    int64
	LeaderEpoch int32
	LastEpoch   int32
}

// A LeaderAnswer is what a leader answers. With an error, which is one of fetch sessions, there are no partitions.
type LeaderAnswer struct {
	Err        error
	SessionID  int32
	Partitions []AnsweredPartition
}

// An AnsweredPartition is what a leader answers about one partition.
type AnsweredPartition struct {
	PartitionID
	Err           error // nothing else counts if it is set
	Diverging     *EpochEnd
	HighWatermark int64
	LogStart      int64
	Records       []byte
}
