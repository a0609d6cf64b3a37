package replica

import (
	"errors"
	"math"
	"slices"
)

// A clientSession is a follower's end of an incremental fetch session (KIP-227): the leader knows what the follower
// asks for, and is told of what changes. It is pure. (Kafka class FetchSessionHandler.)
type clientSession struct {
	id, epoch int32
	known     map[PartitionID]AskedPartition // what the leader knows, if all that was sent has arrived
}

// next takes over what the follower wants to ask for, and makes q tell the leader what it does not know.
func (s *clientSession) next(asks []AskedPartition, q *LeaderFetch) {
	q.SessionID, q.SessionEpoch = s.id, s.epoch
	q.Partitions, q.Forgotten = q.Partitions[:0], q.Forgotten[:0]
	if s.epoch == InitialEpoch {
		s.known = make(map[PartitionID]AskedPartition, len(asks))
	}
	for _, a := range asks {
		if known, ok := s.known[a.PartitionID]; !ok || known != a {
			q.Partitions = append(q.Partitions, a)
			s.known[a.PartitionID] = a
		}
	}
	if len(s.known) > len(asks) {
		s.forget(asks, q)
	}
	slices.SortFunc(q.Partitions, func(a, b AskedPartition) int { return a.compare(b.PartitionID) })
	slices.SortFunc(q.Forgotten, PartitionID.compare)
}

// forget tells the leader what is not asked for any more.
func (s *clientSession) forget(asks []AskedPartition, q *LeaderFetch) {
	asked := make(map[PartitionID]struct{}, len(asks))
	for _, a := range asks {
		asked[a.PartitionID] = struct{}{}
	}
	for id := range s.known {
		if _, ok := asked[id]; !ok {
			q.Forgotten = append(q.Forgotten, id)
			delete(s.known, id)
		}
	}
}

// answered takes over what the leader says about the session, and reports whether the answer counts: one that lacks
// partitions of a full fetch, or has others than were asked for, was made for somebody else.
func (s *clientSession) answered(a *LeaderAnswer) bool {
	known := func(p AnsweredPartition) bool { _, ok := s.known[p.PartitionID]; return ok }
	foreign := slices.ContainsFunc(a.Partitions, func(p AnsweredPartition) bool { return !known(p) })
	full := s.epoch == InitialEpoch
	switch {
	case a.Err != nil && full, foreign, full && len(a.Partitions) != len(s.known):
		s.restart(0)
		return false
	case a.Err != nil:
		s.restart(s.afterError(a.Err))
		return false
	case a.SessionID == 0: // the leader has no room for a session
		s.restart(0)
	case !full && a.SessionID != s.id:
		s.restart(0)
		return false
	default:
		s.id, s.epoch = a.SessionID, nextSessionEpoch(s.epoch)
	}
	return true
}

// afterError returns the session to close with the next full fetch: the one that there is, unless the leader says that
// there is none.
func (s *clientSession) afterError(err error) int32 {
	if errors.Is(err, ErrSessionNotFound) {
		return 0
	}
	return s.id
}

// failed says that nobody knows what the leader has heard: the next fetch begins a new session, in place of this one.
func (s *clientSession) failed() { s.restart(s.id) }

func (s *clientSession) restart(instead int32) { *s = clientSession{id: instead, epoch: InitialEpoch} }

func nextSessionEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}
