package group

import (
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// A JoinRequest asks for membership. The shard keeps its slices.
type JoinRequest struct {
	Group      string
	MemberID   string // "" at first
	InstanceID *string
	ClientID   string
	ClientHost string

	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	ProtocolType     string
	Protocols        []Protocol

	// NeedKnownID: a new dynamic member is sent back with an id first (version 4).
	NeedKnownID bool
	// CanSkipAssignment: the client understands JoinResponse.SkipAssignment (version 9).
	CanSkipAssignment bool
}

// A JoinResponse tells a member its generation, and the leader who the others are.
type JoinResponse struct {
	Err            error
	Generation     int32 // -1 with an error
	ProtocolType   string
	Protocol       string
	Leader         string
	MemberID       string
	SkipAssignment bool
	Members        []JoinMember // for the leader only
}

// A JoinMember is what the leader learns about a member.
type JoinMember struct {
	ID         string
	InstanceID *string
	Metadata   []byte
}

func joinFailure(memberID string, err error) *JoinResponse {
	return &JoinResponse{Err: err, Generation: -1, MemberID: memberID}
}

// Join answers a JoinGroup request, at once or when the generation is complete.
func (s *Shard) Join(t *coordinator.Turn, r *JoinRequest, reply func(*JoinResponse)) {
	if r.SessionTimeout < s.cfg.MinSessionTimeout || r.SessionTimeout > s.cfg.MaxSessionTimeout {
		reply(joinFailure(r.MemberID, ErrInvalidSessionTimeout))
		return
	}
	g := s.groups[r.Group]
	switch {
	case g == nil && r.MemberID != "":
		reply(joinFailure(r.MemberID, ErrUnknownMemberID))
		return
	case g != nil && !s.hasRoom(g, r.MemberID):
		s.refuseFull(t, g, r.MemberID)
		reply(joinFailure("", ErrGroupMaxSizeReached))
		return
	case !acceptedBy(g, r):
		reply(joinFailure(r.MemberID, ErrInconsistentGroupProtocol))
		return
	case r.MemberID == "":
		g = s.openGroup(t, g, r.Group)
		s.joinNew(t, g, r, reply)
		return
	}
	s.joinAgain(t, g, r, reply)
}

// acceptedBy reports whether the group, or a new one if it is nil, can take the member.
func acceptedBy(g *group, r *JoinRequest) bool {
	if g == nil {
		return newGroup("").accepts(r.ProtocolType, r.Protocols)
	}
	return !g.isForeign() && g.accepts(r.ProtocolType, r.Protocols)
}

// hasRoom reports whether group.max.size lets the member in. While a rebalance is being
// prepared those count who have joined it: first come, first served.
func (s *Shard) hasRoom(g *group, memberID string) bool {
	m := g.byID[memberID]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != nil || g.countJoining() < s.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < s.cfg.MaxSize
	default:
		return true
	}
}

// refuseFull drops a member that found no room in the next generation.
func (s *Shard) refuseFull(t *coordinator.Turn, g *group, memberID string) {
	if m := g.byID[memberID]; m != nil {
		s.dropMember(g, m)
	}
	s.removePendingJoinMember(g, memberID)
	s.completeJoinIfReady(t, g)
}

// openGroup returns the group for a first member. A group that did not exist, or that
// consists of another protocol's records, is written down as an empty one.
func (s *Shard) openGroup(t *coordinator.Turn, g *group, id string) *group {
	if g != nil && len(g.modernKeys) == 0 {
		return g
	}
	created := g == nil
	if created {
		g = newGroup(id)
		g.enter(Empty, t.NowMs())
		s.groups[id] = g
	}
	records := append(g.modernTombstones(), g.record(nil))
	t.Write(records, func(_ *coordinator.Turn, _ int64, err error) {
		if err != nil {
			s.abandon(g, created, g.appendError(err))
			return
		}
		g.modernKeys = nil
	})
	return g
}

// abandon undoes what joins made of a group whose first record could not be written.
func (s *Shard) abandon(g *group, created bool, err error) {
	for _, m := range g.members {
		m.answerJoin(joinFailure("", err))
	}
	s.dropMembers(g)
	if created {
		delete(s.groups, g.id)
		return
	}
	g.enter(Empty, -1)
	g.protocolType = ""
}

// joinNew handles a join without a member id.
func (s *Shard) joinNew(t *coordinator.Turn, g *group, r *JoinRequest, reply func(*JoinResponse)) {
	if r.InstanceID == nil {
		id := r.ClientID + "-" + s.newID()
		if r.NeedKnownID {
			g.pendingJoinMembers[id] = struct{}{}
			s.timers.Set(timerKey{timerSession, g.id, id}, t.Now.Add(r.SessionTimeout))
			reply(joinFailure(id, ErrMemberIDRequired))
			return
		}
		s.addMember(t, g, id, r, reply)
		return
	}
	id := *r.InstanceID + "-" + s.newID()
	if m := g.static[*r.InstanceID]; m != nil {
		s.replaceStatic(t, g, m, id, r, reply)
		return
	}
	s.addMember(t, g, id, r, reply)
}

// joinAgain handles a join with a member id: one that was just handed out, or a member's.
func (s *Shard) joinAgain(t *coordinator.Turn, g *group, r *JoinRequest, reply func(*JoinResponse)) {
	if _, ok := g.pendingJoinMembers[r.MemberID]; ok && r.InstanceID == nil {
		s.addMember(t, g, r.MemberID, r, reply)
		return
	}
	m, err := g.validateMember(r.MemberID, r.InstanceID)
	if err != nil {
		reply(joinFailure(r.MemberID, err))
		return
	}
	// A retry of a join whose answer was lost gets the answer again. The leader of a
	// stable group, though, asks for a rebalance by joining.
	hasGeneration := g.state == CompletingRebalance || g.state == Stable && g.leader != m.id
	if hasGeneration && equalProtocols(m.protocols, r.Protocols) {
		s.refreshSession(t, g, m)
		reply(g.joinResponse(m))
		return
	}
	m.update(r)
	s.awaitJoin(t, g, m, reply)
}

// addMember makes the sender of r a member that waits for the next generation.
func (s *Shard) addMember(t *coordinator.Turn, g *group, id string, r *JoinRequest, reply func(*JoinResponse)) {
	m := &member{id: id, instanceID: r.InstanceID, isNew: true, assignment: []byte{}}
	m.update(r)
	if len(g.members) == 0 {
		g.protocolType = r.ProtocolType
	}
	g.add(m)
	if g.initial.active && g.generation == 0 {
		g.initial.joined = true
	}
	m.join = reply
	s.timers.Set(timerKey{timerSession, g.id, id}, t.Now.Add(newMemberTimeout))
	s.rebalanceOrCompleteJoin(t, g, "a member joined")
}

// awaitJoin lets a member wait for the next generation. A join of the same member that
// waited before has been given up by its client.
func (s *Shard) awaitJoin(t *coordinator.Turn, g *group, m *member, reply func(*JoinResponse)) {
	m.answerJoin(joinFailure(m.id, ErrRebalanceInProgress))
	m.join = reply
	if !m.isNew {
		s.refreshSession(t, g, m)
	}
	s.rebalanceOrCompleteJoin(t, g, "a member joined again")
}

// joinResponse is what a member learns about the current generation.
func (g *group) joinResponse(m *member) *JoinResponse {
	r := &JoinResponse{
		Generation:   g.generation,
		ProtocolType: g.protocolType,
		Protocol:     g.protocol,
		Leader:       g.leader,
		MemberID:     m.id,
	}
	if m.id == g.leader {
		r.Members = g.joinMembers()
	}
	return r
}

func (g *group) joinMembers() []JoinMember {
	list := make([]JoinMember, len(g.members))
	for i, m := range g.members {
		list[i] = JoinMember{m.id, m.instanceID, m.metadata(g.protocol)}
	}
	return list
}
