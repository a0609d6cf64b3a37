package group

import "github.com/gregor-kafka/gregor/internal/coordinator"

// Heartbeat keeps a member's session alive and tells it whether to join again.
func (s *Shard) Heartbeat(t *coordinator.Turn, groupID, memberID string, instanceID *string, generation int32) error {
	g, m, err := s.find(groupID, memberID, instanceID)
	switch {
	case err != nil:
		return err
	case g.generation != generation:
		return ErrIllegalGeneration
	case g.state == Empty:
		return ErrUnknownMemberID
	}
	s.refreshSession(t, g, m)
	if g.state == PreparingRebalance {
		return ErrRebalanceInProgress
	}
	return nil
}

// A Leaver names a member that leaves: by member id, or a static one by instance id alone.
type Leaver struct {
	MemberID   string
	InstanceID *string
}

// Leave takes members out of a group. The errors stand for the leavers; nobody is a member of a
// group that does not exist.
func (s *Shard) Leave(t *coordinator.Turn, groupID string, leavers []Leaver) (errs []error) {
	g := s.groups[groupID]
	if g == nil {
		for range leavers {
			errs = append(errs, ErrUnknownMemberID)
		}
		return errs
	}
	count := len(g.members)
	for _, l := range leavers {
		errs = append(errs, s.leave(g, l))
	}
	if len(g.members) < count {
		s.memberLeft(t, g, "a member left")
	} else {
		s.completeJoinIfReady(t, g)
	}
	return errs
}

func (s *Shard) leave(g *group, l Leaver) error {
	if _, ok := g.pendingJoinMembers[l.MemberID]; ok {
		s.removePendingJoinMember(g, l.MemberID)
		return nil
	}
	if l.MemberID == "" && l.InstanceID != nil {
		m := g.static[*l.InstanceID]
		if m == nil {
			return ErrUnknownMemberID
		}
		s.dropMember(g, m)
		return nil
	}
	m, err := g.validateMember(l.MemberID, l.InstanceID)
	if err == nil {
		s.dropMember(g, m)
	}
	return err
}
