package group

import "github.com/gregor-kafka/gregor/internal/coordinator"

// rebalanceOrCompleteJoin begins a rebalance, or ends the join phase of the one that is
// under way if nobody is missing any more.
func (s *Shard) rebalanceOrCompleteJoin(t *coordinator.Turn, g *group, reason string) {
	if g.state != PreparingRebalance {
		s.prepareRebalance(t, g, reason)
		return
	}
	s.completeJoinIfReady(t, g)
}

// prepareRebalance begins the join phase. Members learn of it by the answer to their next
// heartbeat; those that wait for an assignment are told now.
func (s *Shard) prepareRebalance(t *coordinator.Turn, g *group, reason string) {
	s.log.Info("group rebalances", "group", g.id, "generation", g.generation, "state", g.state, "reason", reason)
	if g.state == CompletingRebalance {
		s.failSync(t, g, ErrRebalanceInProgress)
	}
	s.timers.Cancel(timerKey{kind: timerSync, group: g.id})
	wasEmpty := g.state == Empty
	g.enter(PreparingRebalance, t.NowMs())
	if wasEmpty {
		s.startInitialDelay(t, g)
		return
	}
	s.timers.Set(timerKey{kind: timerJoin, group: g.id}, t.Now.Add(g.rebalanceTimeout()))
	s.completeJoinIfReady(t, g)
}

// startInitialDelay gives the first members of a group time to arrive together.
func (s *Shard) startInitialDelay(t *coordinator.Turn, g *group) {
	delay := s.cfg.InitialRebalanceDelay
	g.initial.active, g.initial.joined = true, false
	g.initial.remaining = max(g.rebalanceTimeout()-delay, 0)
	s.timers.Set(timerKey{kind: timerJoin, group: g.id}, t.Now.Add(delay))
}

// joinDue runs when the time of the join phase is up.
func (s *Shard) joinDue(t *coordinator.Turn, g *group) {
	if g.initial.active && g.initial.joined { // a delay of what remains may be none, and is due at once
		delay := min(s.cfg.InitialRebalanceDelay, g.initial.remaining)
		g.initial.joined = false
		g.initial.remaining -= delay
		s.timers.Set(timerKey{kind: timerJoin, group: g.id}, t.Now.Add(delay))
		return
	}
	s.completeJoin(t, g)
}

// completeJoinIfReady ends the join phase when all members have joined.
func (s *Shard) completeJoinIfReady(t *coordinator.Turn, g *group) {
	if g.state == PreparingRebalance && !g.initial.active && g.allJoined() {
		s.completeJoin(t, g)
	}
}

// completeJoin makes the next generation out of the members that joined in time. Static
// members that did not stay until their session ends.
func (s *Shard) completeJoin(t *coordinator.Turn, g *group) {
	s.timers.Cancel(timerKey{kind: timerJoin, group: g.id})
	g.initial.active = false
	for i := 0; i < len(g.members); {
		if m := g.members[i]; m.join == nil && !m.isStatic() {
			s.dropMember(g, m)
			continue
		}
		i++
	}
	if !g.electLeader() && len(g.members) > 0 {
		s.timers.Set(timerKey{kind: timerJoin, group: g.id}, t.Now.Add(g.rebalanceTimeout()))
		return
	}
	g.nextGeneration(t.NowMs())
	if g.state == Empty {
		s.writeEmpty(t, g)
		return
	}
	s.announce(t, g)
}

// writeEmpty records that the group has no members. If that fails the log keeps the old
// members, whose sessions end again after the next load.
func (s *Shard) writeEmpty(t *coordinator.Turn, g *group) {
	s.log.Info("group is empty", "group", g.id, "generation", g.generation)
	t.Write([]coordinator.Record{g.record(nil)}, func(_ *coordinator.Turn, _ int64, err error) {
		if err != nil {
			s.log.Warn("empty group was not written", "group", g.id, "err", err)
		}
	})
}

// announce tells all members the generation and begins the wait for SyncGroup.
func (s *Shard) announce(t *coordinator.Turn, g *group) {
	s.log.Info("group has a new generation", "group", g.id, "generation", g.generation,
		"members", len(g.members), "protocol", g.protocol, "leader", g.leader)
	for _, m := range g.members {
		m.answerJoin(g.joinResponse(m))
		m.isNew = false
		g.pendingSyncMembers[m.id] = struct{}{}
		s.refreshSession(t, g, m)
	}
	s.timers.Set(timerKey{kind: timerSync, group: g.id}, t.Now.Add(g.rebalanceTimeout()))
}

// memberLeft decides what becomes of a group that has lost a member.
func (s *Shard) memberLeft(t *coordinator.Turn, g *group, reason string) {
	switch g.state {
	case Stable, CompletingRebalance:
		s.prepareRebalance(t, g, reason)
	case PreparingRebalance:
		s.completeJoinIfReady(t, g)
	}
}

// sessionDue runs when a session is over. A member that waits for us is not silent, but
// one that waits for its first generation has its limit, too.
func (s *Shard) sessionDue(t *coordinator.Turn, g *group, memberID string) {
	if _, ok := g.pendingJoinMembers[memberID]; ok {
		s.removePendingJoinMember(g, memberID)
		s.completeJoinIfReady(t, g)
		return
	}
	m := g.byID[memberID]
	if m.isWaiting() && !m.isNew {
		return
	}
	s.log.Info("group member expires", "group", g.id, "member", m.id)
	s.dropMember(g, m)
	s.memberLeft(t, g, "the session of member "+m.id+" is over")
}
