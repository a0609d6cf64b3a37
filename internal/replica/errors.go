package replica

import "errors"

// Refusals. What the log refuses passes through as it is.
var (
	ErrUnknownTopicOrPartition = errors.New("unknown topic or partition")
	ErrUnknownTopicID          = errors.New("unknown topic id")
	ErrInconsistentTopicID     = errors.New("the topic id is not that of the topic")
	ErrNotLeaderOrFollower     = errors.New("this broker is not the leader of the partition")
	ErrOffline                 = errors.New("the log directory of the partition is offline")
	ErrFencedLeaderEpoch       = errors.New("the leader epoch is older than that of the partition")
	ErrUnknownLeaderEpoch      = errors.New("the leader epoch is newer than that of the partition")
	ErrNotEnoughReplicas       = errors.New("fewer replicas in sync than min.insync.replicas")
	// ErrNotEnoughReplicasAfterAppend: the records are in the log all the same.
	ErrNotEnoughReplicasAfterAppend = errors.New("fewer replicas in sync than min.insync.replicas, after the append")
	// ErrTimedOut: the records are in the log, and not on enough replicas yet.
	ErrTimedOut        = errors.New("timed out waiting for replicas")
	ErrPolicyViolation = errors.New("not allowed for the topic")
	// ErrOffsetNotAvailable: a new leader does not know the high watermark yet.
	ErrOffsetNotAvailable = errors.New("offset not available yet")
)
