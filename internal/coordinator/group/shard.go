package group

import (
	"log/slog"
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// A Shard is the state of one partition of __consumer_offsets: its groups. It is a
// coordinator.Machine and, like every machine, for one goroutine at a time.
type Shard struct {
	cfg   Config
	newID func() string // the part of a member id that makes it unique
	log   *slog.Logger

	groups map[string]*group
	// transactions holds the offsets of open transactions, by producer id.
	transactions map[int64]transaction
	timers       coordinator.Timers[timerKey]
}

// A timerKey names a deadline. Fields that a kind does not need are empty.
type timerKey struct {
	kind   timerKind
	group  string
	member string
}

type timerKind int8

const (
	timerExpiry  timerKind = iota // of offsets, for the whole shard
	timerJoin                     // end of a group's join phase, or of its initial delay
	timerSync                     // end of the wait for SyncGroup
	timerSession                  // of a member, or of an id that was handed out
)

// NewShard returns an empty shard. newID makes the unique part of member ids.
func NewShard(cfg Config, newID func() string, log *slog.Logger) *Shard {
	return &Shard{
		cfg:          cfg,
		newID:        newID,
		log:          log,
		groups:       make(map[string]*group),
		transactions: make(map[int64]transaction),
	}
}

// Loaded starts the sessions of the members that the log knows.
func (s *Shard) Loaded(t *coordinator.Turn) {
	s.timers.Set(timerKey{kind: timerExpiry}, t.Now.Add(s.cfg.ExpiryInterval))
	for _, g := range s.groups {
		for _, m := range g.members {
			s.refreshSession(t, g, m)
		}
		if len(g.members) > s.cfg.MaxSize {
			s.prepareRebalance(t, g, "the group was loaded with more members than group.max.size")
		}
	}
}

// Deadline is when the next timer is due.
func (s *Shard) Deadline() (time.Time, bool) { return s.timers.Next() }

// Tick does what is due.
func (s *Shard) Tick(t *coordinator.Turn) {
	for {
		key, ok := s.timers.PopDue(t.Now)
		if !ok {
			return
		}
		if key.kind == timerExpiry {
			s.expire(t)
			s.timers.Set(key, t.Now.Add(s.cfg.ExpiryInterval))
			continue
		}
		g := s.groups[key.group]
		switch key.kind {
		case timerJoin:
			s.joinDue(t, g)
		case timerSync:
			s.syncDue(t, g)
		case timerSession:
			s.sessionDue(t, g, key.member)
		}
	}
}

// Stop answers all requests that wait.
func (s *Shard) Stop(err error) {
	for _, g := range s.groups {
		for _, m := range g.members {
			m.answerJoin(joinFailure(m.id, err))
			m.answerSync(&SyncResponse{Err: err})
		}
	}
}

// refreshSession restarts the member's session timeout.
func (s *Shard) refreshSession(t *coordinator.Turn, g *group, m *member) {
	s.timers.Set(timerKey{timerSession, g.id, m.id}, t.Now.Add(m.sessionTimeout))
}

// dropMember takes a member out and forgets its session. What the group does about it is
// the caller's business. Requests of the member that wait are answered as from a stranger.
func (s *Shard) dropMember(g *group, m *member) {
	s.timers.Cancel(timerKey{timerSession, g.id, m.id})
	m.answerJoin(joinFailure(m.id, ErrUnknownMemberID))
	m.answerSync(&SyncResponse{Err: ErrUnknownMemberID})
	g.remove(m)
}

// removePendingJoinMember forgets a member id that was handed out.
func (s *Shard) removePendingJoinMember(g *group, id string) {
	s.timers.Cancel(timerKey{timerSession, g.id, id})
	delete(g.pendingJoinMembers, id)
}

// dropMembers leaves the group without members, invitations and phases.
func (s *Shard) dropMembers(g *group) {
	for len(g.members) > 0 {
		s.dropMember(g, g.members[0])
	}
	for id := range g.pendingJoinMembers {
		s.removePendingJoinMember(g, id)
	}
	s.timers.Cancel(timerKey{kind: timerJoin, group: g.id})
	s.timers.Cancel(timerKey{kind: timerSync, group: g.id})
	g.initial.active = false
}

// dropGroup forgets a group with all it has.
func (s *Shard) dropGroup(g *group) {
	s.dropMembers(g)
	s.dropPending(g)
	delete(s.groups, g.id)
}

// find returns the group and the member that a request claims to come from.
func (s *Shard) find(groupID, memberID string, instanceID *string) (*group, *member, error) {
	g := s.groups[groupID]
	if g == nil {
		return nil, nil, ErrUnknownMemberID
	}
	m, err := g.validateMember(memberID, instanceID)
	return g, m, err
}

// validateMember returns the member that a request claims to come from. A member id that
// another member with the same instance id has replaced is fenced.
func (g *group) validateMember(memberID string, instanceID *string) (*member, error) {
	m := g.byID[memberID]
	if instanceID == nil {
		if m == nil {
			return nil, ErrUnknownMemberID
		}
		return m, nil
	}
	switch owner := g.static[*instanceID]; {
	case owner != nil && owner != m:
		return nil, ErrFencedInstanceID
	case owner == nil && m != nil:
		return nil, ErrFencedInstanceID
	case owner == nil:
		return nil, ErrUnknownMemberID
	}
	return m, nil
}
