package replica

import (
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A PartitionState is what a broker knows of a partition that it has a replica of, and what it decides by: what the
// metadata says and, on the leader, what it asked of the controller and what the followers have. Its methods are
// pure: they know no lock, no log and no clock. It never changes, but for what its followers have: a change of that
// is said at the method, and Partition guards it. (Kafka classes PartitionState and Partition.)
type PartitionState struct {
	Leading        bool // this broker is the leader
	Removed        bool // this broker has no replica any more
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32    // as the controller committed it
	Pending        *ISRChange // asked of the controller and not answered; nil: none

	assigned   *metadata.Partition // whose ISR and epochs may be older than ours
	leadership *leadership         // nil: not the leader, or of no followers
}

// A View is what a decision of a PartitionState depends on besides: the moment.
type View struct {
	NowMs        int64
	LagTimeMaxMs int64 // replica.lag.time.max.ms
	MinISR       int   // min.insync.replicas
	LogStart     int64 // of our log, as the two below
	HW           int64
	End          int64
	Brokers      Brokers
}

// Brokers says what the metadata knows of brokers. (A metadata.Image.)
type Brokers interface {
	Broker(id int32) *metadata.Broker // nil: unknown
}

// Replicas returns the brokers that have a replica, the preferred leader first.
func (s *PartitionState) Replicas() []int32 { return s.assigned.Replicas }

// MaximalISR returns the brokers that are in sync or may be counted so at any moment: an addition that is pending
// counts already, a removal not yet. So the high watermark is never above what the ISR has that the controller
// commits, whichever it is. (KIP-497)
func (s *PartitionState) MaximalISR() []int32 {
	if s.Pending != nil && s.Pending.Expands {
		return s.Pending.ISR
	}
	return s.ISR
}

// NoEpoch as a client's leader epoch means that it knows none: nothing is checked.
const NoEpoch int32 = -1

// checkEpoch compares the leader epoch that a client knows with ours.
func (s *PartitionState) checkEpoch(epoch int32) error {
	switch {
	case epoch == NoEpoch:
		return nil
	case epoch < s.LeaderEpoch:
		return ErrFencedLeaderEpoch
	case epoch > s.LeaderEpoch:
		return ErrUnknownLeaderEpoch
	}
	return nil
}

// CheckLeader says why a client that knows this leader epoch is not served by this broker. An epoch that differs is
// reported first: it says more.
func (s *PartitionState) CheckLeader(epoch int32) error {
	switch err := s.checkEpoch(epoch); {
	case s.Removed:
		return ErrUnknownTopicOrPartition
	case err != nil:
		return err
	case !s.Leading:
		return ErrNotLeaderOrFollower
	}
	return nil
}

// CheckAppend says why a set may not be appended: allInSync is acks=all.
func (s *PartitionState) CheckAppend(epoch int32, allInSync bool, minISR int) error {
	if err := s.CheckLeader(epoch); err != nil {
		return err
	}
	if allInSync && !s.EnoughInSync(minISR) {
		return ErrNotEnoughReplicas
	}
	return nil
}

// EnoughInSync reports whether the ISR is as large as min.insync.replicas asks, which asks for no more than all.
func (s *PartitionState) EnoughInSync(minISR int) bool {
	return len(s.ISR) >= min(minISR, len(s.assigned.Replicas))
}

// Commits reports whether what the leader appends is committed with it: there is no other replica.
func (s *PartitionState) Commits(minISR int) bool {
	return s.Leading && s.leadership == nil && s.EnoughInSync(minISR)
}

// CheckCommitted reports whether the records below offset are on all in-sync replicas. With done false it is too
// early to tell.
func (s *PartitionState) CheckCommitted(offset int64, v *View) (done bool, err error) {
	switch {
	case !s.Leading || s.Removed:
		return true, s.CheckLeader(NoEpoch)
	case v.HW < offset:
		return false, nil
	case len(s.MaximalISR()) < min(v.MinISR, len(s.assigned.Replicas)):
		return true, ErrNotEnoughReplicasAfterAppend
	}
	return true, nil
}

// HighWatermark returns how far the leader's high watermark may go, and whether that is further than it is: to the
// end of the shortest log of the maximal ISR. A replica that may join the ISR at any moment counts too, else it might
// run after the high watermark for ever. It stands still while fewer are in sync than min.insync.replicas (KIP-966).
func (s *PartitionState) HighWatermark(v *View) (hw int64, moves bool) {
	if !s.Leading || !s.EnoughInSync(v.MinISR) {
		return v.HW, false
	}
	hw = v.End
	if s.leadership != nil {
		hw = s.leadership.shortest(s.MaximalISR(), v)
	}
	return hw, hw > v.HW
}

// LowWatermark returns the smallest log start of the replicas that live: what is below is deleted everywhere. It is -1
// while one of them is not known.
func (s *PartitionState) LowWatermark(v *View) int64 {
	low := v.LogStart
	if s.leadership == nil {
		return low
	}
	for _, r := range s.leadership.followers {
		if b := v.Brokers.Broker(r.ID); b != nil && !b.Fenced {
			low = min(low, r.LogStart)
		}
	}
	return low
}

// CheckOffsets says why the leader does not know yet which offset is the latest for clients: its high watermark is the
// one that it had as a follower. (KIP-207)
func (s *PartitionState) CheckOffsets(v *View) error {
	if s.leadership != nil && v.HW < s.leadership.epochStart {
		return ErrOffsetNotAvailable
	}
	return nil
}

// equal reports whether two states say the same of the metadata.
func (s *PartitionState) equal(p *metadata.Partition) bool {
	return s.Leader == p.Leader && s.LeaderEpoch == p.LeaderEpoch && s.PartitionEpoch == p.PartitionEpoch &&
		slices.Equal(s.Replicas(), p.Replicas) && slices.Equal(s.ISR, p.ISR)
}
