package group

import "github.com/gregor-kafka/gregor/internal/coordinator"

// replaceStatic gives a static member that came back without its member id a new one. If
// the group goes on as it is the swap is written before the member hears of it.
func (s *Shard) replaceStatic(t *coordinator.Turn, g *group, m *member, id string, r *JoinRequest, reply func(*JoinResponse)) {
	before := *m
	oldLeader := g.leader
	m.answerJoin(joinFailure(m.id, ErrFencedInstanceID))
	m.answerSync(&SyncResponse{Err: ErrFencedInstanceID})
	s.timers.Cancel(timerKey{timerSession, g.id, m.id})
	g.rename(m, id)
	m.update(r)
	m.isNew = false
	s.refreshSession(t, g, m)
	if g.state != Stable || g.selectProtocol() != g.protocol {
		m.join = reply
		s.rebalanceOrCompleteJoin(t, g, "a static member came back")
		return
	}
	t.Write([]coordinator.Record{g.record(g.assignments())}, func(t *coordinator.Turn, _ int64, err error) {
		switch {
		case g.byID[id] != m: // replaced once more, or gone
			reply(joinFailure(id, ErrUnknownMemberID))
		case err != nil:
			s.revertStatic(t, g, m, before)
			reply(joinFailure("", g.appendError(err)))
		case g.state != Stable:
			// A rebalance has begun, whose assignment would be written behind this: the member takes
			// part in it like the others.
			s.awaitJoin(t, g, m, reply)
		default:
			reply(g.staticResponse(m, oldLeader, r.CanSkipAssignment))
		}
	})
}

// revertStatic undoes a swap that could not be written.
func (s *Shard) revertStatic(t *coordinator.Turn, g *group, m *member, before member) {
	s.timers.Cancel(timerKey{timerSession, g.id, m.id})
	g.rename(m, before.id)
	m.clientID, m.clientHost = before.clientID, before.clientHost
	m.sessionTimeout, m.rebalanceTimeout = before.sessionTimeout, before.rebalanceTimeout
	m.protocols = before.protocols
	s.refreshSession(t, g, m)
}

// staticResponse keeps a returning leader from computing an assignment: there is no
// rebalance. Clients that cannot be told so are told that the old leader still leads.
func (g *group) staticResponse(m *member, oldLeader string, canSkip bool) *JoinResponse {
	r := g.joinResponse(m)
	if canSkip {
		r.SkipAssignment = m.id == g.leader
		return r
	}
	r.Leader, r.Members = oldLeader, nil
	return r
}
