package group

import (
	"slices"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// A SyncRequest asks for the member's assignment; the leader's brings all of them. The
// shard keeps its slices.
type SyncRequest struct {
	Group      string
	MemberID   string
	InstanceID *string
	Generation int32
	// ProtocolType and Protocol, if not nil, must be the group's (version 5).
	ProtocolType *string
	Protocol     *string
	Assignments  map[string][]byte // by member id
}

// A SyncResponse holds an assignment, which belongs to the shard.
type SyncResponse struct {
	Err          error
	ProtocolType string
	Protocol     string
	Assignment   []byte
}

// Sync answers a SyncGroup request: at once, or when the leader's assignment is in the log.
func (s *Shard) Sync(t *coordinator.Turn, r *SyncRequest, reply func(*SyncResponse)) {
	g, m, err := s.find(r.Group, r.MemberID, r.InstanceID)
	if err == nil {
		err = g.checkSync(r)
	}
	if err != nil {
		reply(&SyncResponse{Err: err})
		return
	}
	delete(g.pendingSyncMembers, m.id)
	if g.state == Stable {
		s.refreshSession(t, g, m)
		reply(g.syncResponse(m))
		return
	}
	m.answerSync(&SyncResponse{Err: ErrRebalanceInProgress}) // of a connection that was given up
	m.sync = reply
	if m.id == g.leader {
		s.assign(t, g, r.Assignments)
	}
}

// checkSync says why a member's request cannot get an assignment.
func (g *group) checkSync(r *SyncRequest) error {
	switch {
	case r.Generation != g.generation:
		return ErrIllegalGeneration
	case r.ProtocolType != nil && *r.ProtocolType != g.protocolType,
		r.Protocol != nil && *r.Protocol != g.protocol:
		return ErrInconsistentGroupProtocol
	case g.state == PreparingRebalance:
		return ErrRebalanceInProgress
	case g.state == Empty:
		return ErrUnknownMemberID
	}
	return nil
}

func (g *group) syncResponse(m *member) *SyncResponse {
	return &SyncResponse{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
}

// assign writes the leader's assignment. Members it does not name get an empty one.
func (s *Shard) assign(t *coordinator.Turn, g *group, assignments map[string][]byte) {
	generation := g.generation
	t.Write([]coordinator.Record{g.record(assignments)}, func(t *coordinator.Turn, _ int64, err error) {
		if g.state != CompletingRebalance || g.generation != generation {
			return // a rebalance has begun meanwhile and answered all that waited
		}
		if err != nil {
			s.failSync(t, g, g.appendError(err))
			s.prepareRebalance(t, g, "the assignment could not be written")
			return
		}
		g.enter(Stable, t.NowMs())
		for _, m := range g.members {
			m.assignment = orEmpty(assignments[m.id])
			if m.sync != nil {
				m.answerSync(g.syncResponse(m))
				s.refreshSession(t, g, m)
			}
		}
	})
}

// failSync answers everybody who waits for an assignment with err. Assignments of the
// generation before are void.
func (s *Shard) failSync(t *coordinator.Turn, g *group, err error) {
	for _, m := range g.members {
		m.assignment = []byte{}
		if m.sync != nil {
			m.answerSync(&SyncResponse{Err: err})
			s.refreshSession(t, g, m)
		}
	}
}

// syncDue drops the members that got the generation and never asked for their assignment.
func (s *Shard) syncDue(t *coordinator.Turn, g *group) {
	if len(g.pendingSyncMembers) == 0 {
		return
	}
	s.log.Info("group members did not sync in time", "group", g.id, "generation", g.generation, "members", len(g.pendingSyncMembers))
	for _, m := range slices.Clone(g.members) {
		if _, ok := g.pendingSyncMembers[m.id]; ok {
			s.dropMember(g, m)
		}
	}
	s.memberLeft(t, g, "members did not sync in time")
}

// assignments is what the members have now, by member id.
func (g *group) assignments() map[string][]byte {
	all := make(map[string][]byte, len(g.members))
	for _, m := range g.members {
		all[m.id] = m.assignment
	}
	return all
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
