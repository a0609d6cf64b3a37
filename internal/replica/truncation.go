package replica

// An EpochEnd is a leader epoch and where its records end; epoch -1: there is none.
type EpochEnd struct {
	Epoch int32
	End   int64
}

// A Truncation is where a follower cuts its log to agree with the leader's. Unless it is Final it asks the leader again
// from there.
type Truncation struct {
	Offset int64
	Final  bool
}

// NextFetch returns where a new follower begins to fetch: at its end, for the leader finds out by the epoch of the last
// record whether the logs agree. A log without epochs, of an old format, is good up to the high watermark only
// (KIP-101).
func NextFetch(latestEpoch int32, v *View) int64 {
	if latestEpoch < 0 {
		return v.HW
	}
	return v.End
}

// TruncationFor returns where a follower cuts its log when the leader says that its largest epoch up to the follower's
// last one ends at leader.End; ours is what the follower's log has for leader.Epoch: that, or the largest below. (Kafka
// method AbstractFetcherThread.getOffsetTruncationState.) Where the follower does not know the leader's epoch, it goes
// back to the one before and asks again (KIP-279).
func TruncationFor(leader, ours EpochEnd, v *View) Truncation {
	switch {
	case leader.End < 0:
		return Truncation{v.HW, true} // the leader cannot tell
	case leader.Epoch < 0 || ours.Epoch < 0:
		return Truncation{min(leader.End, v.End), true}
	case ours.Epoch != leader.Epoch:
		return Truncation{min(ours.End, v.End), false}
	}
	return Truncation{min(leader.End, ours.End, v.End), true}
}

// A Restart is what a follower does whose fetch was outside of the leader's log.
type Restart struct {
	Offset   int64 // from which to fetch
	Truncate bool  // cut the log there: the leader, elected uncleanly, has less
	Wipe     bool  // begin anew there: the leader has nothing older
}

// RestartFor returns where a follower goes on with a leader whose log reaches from start to end.
func RestartFor(start, end int64, v *View) Restart {
	switch {
	case end < v.End:
		return Restart{Offset: end, Truncate: true}
	case start > v.End:
		return Restart{Offset: start, Wipe: true}
	}
	return Restart{Offset: v.End}
}

// FollowerHighWatermark returns a follower's high watermark when the leader's is hw. It does not go back with that of a
// new leader, which learns only by fetches what is committed.
func FollowerHighWatermark(hw int64, v *View) int64 { return max(v.HW, min(hw, v.End)) }

// FollowerLogStart returns a follower's log start when the leader's is start.
func FollowerLogStart(start int64, v *View) int64 { return max(v.LogStart, min(start, v.HW)) }
