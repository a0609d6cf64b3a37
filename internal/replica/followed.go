package replica

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A PartitionID names a partition of one life of a topic.
type PartitionID struct {
	TopicID uuid.UUID
	Index   int32
}

// A followPhase is what a follower is about with a partition.
type followPhase int8

// The phases of a follower.
const (
	phaseNew        followPhase = iota // it looks at its log first
	phaseTruncating                    // its log goes back to the high watermark
	phaseFetching
	phaseFailed // it asks for nothing until the metadata say something else
)

// A followed is where a follower stands with one partition. It is pure: times are arguments, and what the log has is
// told. (Kafka class PartitionFetchState.)
type followed struct {
	LeaderEpoch int32
	phase       followPhase
	Offset      int64 // from which it fetches
	LastEpoch   int32 // of the record before Offset, -1: none is known
	WaitUntilMs int64 // it asks for nothing before
}

// beginFollowing returns where a follower begins that learns of a leader epoch; latestEpoch is the last one that its log has.
// Without any, as in logs of old formats, only what is below the high watermark is known to be the leader's.
func beginFollowing(leaderEpoch, latestEpoch int32, v *View) followed {
	f := followed{LeaderEpoch: leaderEpoch, phase: phaseFetching}
	if latestEpoch < 0 && v.End > v.HW {
		f.phase = phaseTruncating
	}
	f.goOn(NextFetch(latestEpoch, v), latestEpoch)
	return f
}

// goOn makes offset the next to fetch, behind a record of the epoch.
func (f *followed) goOn(offset int64, epoch int32) { f.Offset, f.LastEpoch = offset, epoch }

// asks reports whether the partition is in the next fetch.
func (f *followed) asks(nowMs int64) bool { return f.phase == phaseFetching && nowMs >= f.WaitUntilMs }

// A followStep is what a follower does about an answer.
type followStep int8

// The steps of a follower.
const (
	stepIgnore   followStep = iota // the answer is to something it does not ask any more
	stepAppend                     // what came, and take over the leader's watermarks
	stepTruncate                   // where the logs part, and ask again (TruncationFor)
	stepRestart                    // find out where the leader's log begins and ends, and go on in it (RestartFor)
	stepWait                       // and ask again
	stepFail                       // wait for other metadata
)

// answered returns what to do about an answer to a fetch that asked for askedOffset in askedEpoch.
func (f *followed) answered(askedEpoch int32, askedOffset int64, err error, diverging bool) followStep {
	switch {
	case askedEpoch != f.LeaderEpoch || askedOffset != f.Offset || f.phase != phaseFetching:
		return stepIgnore
	case err == nil && diverging:
		return stepTruncate
	case err == nil:
		return stepAppend
	case errors.Is(err, commitlog.ErrOffsetOutOfRange):
		return stepRestart
	case errors.Is(err, ErrFencedLeaderEpoch): // the metadata with the later epoch are on their way
		return stepFail
	}
	return stepWait
}

// beginAnew lets the partition look at its log again, not before a time, and go on from there.
func (f *followed) beginAnew(nowMs int64) {
	*f = followed{LeaderEpoch: f.LeaderEpoch, WaitUntilMs: nowMs}
}

// fail lets the partition ask for nothing until the metadata say something else.
func (f *followed) fail() { f.phase = phaseFailed }

func (p PartitionID) compare(o PartitionID) int {
	return cmp.Or(bytes.Compare(p.TopicID[:], o.TopicID[:]), cmp.Compare(p.Index, o.Index))
}
