package replica

import (
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A leadership is what the leader of one epoch knows of its followers. It changes with their fetches.
type leadership struct {
	epochStart int64 // our log's end when the epoch began
	followers  []ReplicaState
}

// A ReplicaState is what a leader knows of a follower, by its fetches. (Kafka class Replica.)
type ReplicaState struct {
	ID       int32
	LogStart int64 // -1: not known
	LogEnd   int64 // -1: not known

	// CaughtUpMs is the last time of which the follower is known to have had all that the leader had then; 0: never.
	CaughtUpMs int64
	// The leader's end at the follower's last fetch, and when that was.
	fetchEnd int64
	fetchMs  int64

	BrokerEpoch int64 // that its last fetch named: its life
}

// Values in place of a broker epoch.
const (
	NoBrokerEpoch      int64 = -1 // the fetch did not name one: nothing is checked
	unknownBrokerEpoch int64 = -2 // there was no fetch
)

// newFollower is a follower that has not fetched.
func newFollower(id int32) ReplicaState {
	return ReplicaState{ID: id, LogStart: -1, LogEnd: -1, BrokerEpoch: unknownBrokerEpoch}
}

// A FollowerFetch is what a follower's fetch says about itself.
type FollowerFetch struct {
	Follower
	Offset   int64 // which is its log end
	LogStart int64
}

// CheckFollower says why a fetch of a broker is not one of a follower. One that knows our leader epoch may know of its
// replica before we do, and asks again.
func (s *PartitionState) CheckFollower(id, epoch int32) error {
	switch {
	case s.follower(id) != nil:
		return nil
	case epoch != NoEpoch:
		return ErrUnknownLeaderEpoch
	}
	return ErrNotLeaderOrFollower
}

// follower returns what is known of a follower, or nil if the broker is not one.
func (s *PartitionState) follower(id int32) *ReplicaState {
	if s.leadership == nil {
		return nil
	}
	for i := range s.leadership.followers { // in place: who only asks whether there is one holds no lock
		if r := &s.leadership.followers[i]; r.ID == id {
			return r
		}
	}
	return nil
}

// Fetched takes over what a fetch says, which was read when v was seen, and reports whether the follower's log end
// changed. It changes what is known of the follower. An earlier life of the broker tells nothing any more (KIP-903).
func (s *PartitionState) Fetched(f FollowerFetch, v *View) (changed bool, err error) {
	r := s.follower(f.ID)
	if r == nil {
		return false, ErrNotLeaderOrFollower
	}
	if b := v.Brokers.Broker(f.ID); f.BrokerEpoch != NoBrokerEpoch && b != nil && !b.Fenced && f.BrokerEpoch < b.Epoch {
		return false, ErrNotLeaderOrFollower
	}
	switch {
	case f.Offset >= v.End:
		r.CaughtUpMs = max(r.CaughtUpMs, v.NowMs)
	case f.Offset >= r.fetchEnd: // it has all that there was at its fetch before: slow, but steady
		r.CaughtUpMs = max(r.CaughtUpMs, r.fetchMs)
	}
	changed = r.LogEnd != f.Offset
	r.LogStart, r.LogEnd, r.BrokerEpoch = f.LogStart, f.Offset, f.BrokerEpoch
	r.fetchEnd, r.fetchMs = max(r.fetchEnd, v.End), v.NowMs
	return changed, nil
}

// caughtUp reports whether a follower is near enough to the leader to be in sync. One that has all is, however long
// ago it came for it (KAFKA-7152).
func (r *ReplicaState) caughtUp(v *View) bool {
	return r.LogEnd == v.End || v.NowMs-r.CaughtUpMs <= v.LagTimeMaxMs
}

// eligible reports whether a follower may join the ISR: it lives, in the life that it fetched in, and will go on
// (KIP-841, KIP-903).
func (r *ReplicaState) eligible(brokers Brokers) bool {
	b := brokers.Broker(r.ID)
	return b.Active() && (r.BrokerEpoch == NoBrokerEpoch || r.BrokerEpoch == b.Epoch)
}

// shortest returns the end of the shortest log of those that the high watermark waits for.
func (l *leadership) shortest(isr []int32, v *View) int64 {
	end := v.End
	for i := range l.followers {
		r := &l.followers[i]
		if slices.Contains(isr, r.ID) || r.caughtUp(v) && r.eligible(v.Brokers) {
			end = min(end, r.LogEnd)
		}
	}
	return end
}

// Next returns the state that new metadata leads to; v is seen at this moment. It refuses, and returns s, when epochs
// go back: what is ours is later. s is nil before the first metadata.
func (s *PartitionState) Next(p *metadata.Partition, local int32, v *View) *PartitionState {
	if s != nil && (p.PartitionEpoch < s.PartitionEpoch || p.LeaderEpoch < s.LeaderEpoch || s.equal(p)) {
		return s
	}
	next := &PartitionState{
		Leading: p.Leader == local, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
		ISR: p.ISR, assigned: p,
	}
	if next.Leading && len(p.Replicas) > 1 {
		next.leadership = s.lead(next, local, v)
	}
	if s != nil && s.Pending != nil && next.keepsPending(s) {
		next.Pending = s.Pending
	}
	return next
}

// keepsPending reports whether what was asked of the controller is still open: the metadata only say what its last
// answer has said. Else they may count fewer in sync than the controller is about to commit.
func (s *PartitionState) keepsPending(old *PartitionState) bool {
	assigned := func(id int32) bool { return slices.Contains(s.Replicas(), id) }
	return s.PartitionEpoch == old.PartitionEpoch && s.LeaderEpoch == old.LeaderEpoch && !slices.ContainsFunc(old.Pending.ISR, func(id int32) bool { return !assigned(id) })
}

// lead returns what is known of the followers when next follows s.
func (s *PartitionState) lead(next *PartitionState, local int32, v *View) *leadership {
	led := s != nil && s.Leading
	newEpoch := s == nil || next.LeaderEpoch > s.LeaderEpoch
	l := &leadership{epochStart: v.End, followers: make([]ReplicaState, 0, len(next.Replicas())-1)}
	switch {
	case newEpoch:
	case s.leadership != nil:
		l.epochStart = s.leadership.epochStart
	default: // we led without followers: all up to the high watermark is there to be had
		l.epochStart = v.HW
	}
	for _, id := range next.Replicas() {
		if id == local {
			continue
		}
		r := newFollower(id)
		if led {
			if old := s.follower(id); old != nil {
				r = *old
			}
		}
		if newEpoch {
			r.enterEpoch(led, slices.Contains(next.ISR, id), v)
		}
		l.followers = append(l.followers, r)
	}
	return l
}

// enterEpoch begins a leader epoch: a replica in sync gets time to show it, one that is not holds nothing back and joins
// after a fetch only.
func (r *ReplicaState) enterEpoch(led, inSync bool, v *View) {
	r.CaughtUpMs, r.fetchMs, r.fetchEnd = 0, 0, -1
	if led {
		r.fetchEnd = v.End
	}
	if inSync {
		r.CaughtUpMs = v.NowMs
		if led {
			r.fetchMs = v.NowMs
		}
	}
}
