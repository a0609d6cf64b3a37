package replica

import (
	"errors"
	"slices"
)

// An ISRChange is what a leader asks of the controller: another ISR. (Kafka's AlterPartition request.)
type ISRChange struct {
	ISR          []int32
	BrokerEpochs []int64 // of the ISR's members; NoBrokerEpoch where not known
	Expands      bool    // else it shrinks

	// What it builds on: in any other epochs the controller refuses it.
	LeaderEpoch    int32
	PartitionEpoch int32
}

// Refusals of the controller.
var (
	ErrIneligibleReplica     = errors.New("a replica may not join the ISR now")
	ErrOperationNotAttempted = errors.New("not attempted")
	ErrInvalidUpdateVersion  = errors.New("the partition epoch is not the controller's")
	ErrInvalidRequest        = errors.New("the controller has another state of the partition")
	ErrNewLeaderElected      = errors.New("the ISR was changed, and another leader elected")
)

// An ISRAnswer is what the controller answers.
type ISRAnswer struct {
	Err error // nothing else counts if it is set

	ISR            []int32
	LeaderEpoch    int32
	PartitionEpoch int32
}

// ExpandISR returns the state in which a follower is about to join the ISR, or nil if it is not to: it must have what
// is committed, which after an election is all up to the start of the leader's epoch at least.
func (s *PartitionState) ExpandISR(id int32, v *View) *PartitionState {
	r := s.follower(id)
	switch {
	case r == nil || s.Pending != nil || slices.Contains(s.ISR, id):
		return nil
	case r.LogEnd < v.HW || r.LogEnd < s.leadership.epochStart:
		return nil
	case !r.eligible(v.Brokers):
		return nil
	}
	return s.propose(append(slices.Clone(s.ISR), id), true, v)
}

// ShrinkISR returns the state in which followers that lag are about to leave the ISR, or nil if none is.
func (s *PartitionState) ShrinkISR(v *View) *PartitionState {
	if s.leadership == nil || s.Pending != nil {
		return nil
	}
	isr := slices.DeleteFunc(slices.Clone(s.ISR), func(id int32) bool {
		r := s.follower(id)
		return id != s.Leader && (r == nil || !r.caughtUp(v))
	})
	if len(isr) == len(s.ISR) {
		return nil
	}
	return s.propose(isr, false, v)
}

func (s *PartitionState) propose(isr []int32, expands bool, v *View) *PartitionState {
	c := &ISRChange{ISR: isr, Expands: expands, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch}
	for _, id := range isr {
		c.BrokerEpochs = append(c.BrokerEpochs, s.lifeOf(id, v))
	}
	next := *s
	next.Pending = c
	return &next
}

// lifeOf returns the broker epoch of a member of the ISR. Of a member that has not fetched none is needed: if it
// ends, the controller takes it out, and that makes the change void.
func (s *PartitionState) lifeOf(id int32, v *View) int64 {
	if id == s.Leader {
		if b := v.Brokers.Broker(id); b != nil {
			return b.Epoch
		}
	} else if r := s.follower(id); r != nil {
		return max(r.BrokerEpoch, NoBrokerEpoch)
	}
	return NoBrokerEpoch
}

// Answered returns the state after the controller's answer to c, and whether to ask again. An answer to anything but
// what is pending comes too late and changes nothing.
func (s *PartitionState) Answered(c *ISRChange, a *ISRAnswer) (next *PartitionState, again bool) {
	committed := *s
	committed.Pending = nil
	switch {
	case s.Pending != c:
		return s, false
	case a.Err == nil && (a.LeaderEpoch != s.LeaderEpoch || a.PartitionEpoch < s.PartitionEpoch):
		return s, false
	case a.Err == nil:
		committed.ISR, committed.PartitionEpoch = a.ISR, a.PartitionEpoch
		return &committed, false
	case isOneOf(a.Err, ErrIneligibleReplica, ErrOperationNotAttempted):
		return &committed, false // the epoch was right, and nothing was or will be changed
	case isOneOf(a.Err, ErrFencedLeaderEpoch, ErrInvalidUpdateVersion, ErrInvalidRequest, ErrNewLeaderElected,
		ErrUnknownTopicOrPartition, ErrUnknownTopicID):
		return s, false // the metadata that say more are on their way
	}
	return s, true
}

func isOneOf(err error, list ...error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}
