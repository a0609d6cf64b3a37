package group

import (
	"bytes"
	"slices"
	"time"
)

// A Protocol is one way to assign partitions that a member supports, with what the member
// tells the leader for it. The bytes are opaque, except for type "consumer".
type Protocol struct {
	Name     string
	Metadata []byte
}

// A member belongs to a group from its first join on.
type member struct {
	id         string
	instanceID *string // of a static member
	clientID   string
	clientHost string

	rebalanceTimeout time.Duration
	sessionTimeout   time.Duration
	protocols        []Protocol // in order of preference
	assignment       []byte     // of the current generation, once it is in the log

	isNew bool                // has not been part of a generation yet
	join  func(*JoinResponse) // answers the JoinGroup that waits, or nil
	sync  func(*SyncResponse) // answers the SyncGroup that waits, or nil
}

func (m *member) isStatic() bool { return m.instanceID != nil }

// isWaiting reports whether the member waits for us, so that its silence means nothing.
func (m *member) isWaiting() bool { return m.join != nil || m.sync != nil }

func (m *member) answerJoin(r *JoinResponse) {
	if m.join != nil {
		m.join(r)
		m.join = nil
	}
}

func (m *member) answerSync(r *SyncResponse) {
	if m.sync != nil {
		m.sync(r)
		m.sync = nil
	}
}

// supports reports whether the member lists the protocol.
func (m *member) supports(name string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == name })
}

// metadata is what the member sent for the protocol.
func (m *member) metadata(name string) []byte {
	for _, p := range m.protocols {
		if p.Name == name {
			return p.Metadata
		}
	}
	return []byte{}
}

// vote is the first protocol of the member's list that is among candidates.
func (m *member) vote(candidates []string) string {
	for _, p := range m.protocols {
		if slices.Contains(candidates, p.Name) {
			return p.Name
		}
	}
	panic("BUG: group: member " + m.id + " supports no common protocol")
}

func equalProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(x, y Protocol) bool {
		return x.Name == y.Name && bytes.Equal(x.Metadata, y.Metadata)
	})
}

// update takes over what a join request says about its sender.
func (m *member) update(r *JoinRequest) {
	m.clientID, m.clientHost = r.ClientID, r.ClientHost
	m.sessionTimeout, m.rebalanceTimeout = r.SessionTimeout, r.RebalanceTimeout
	m.protocols = r.Protocols
}
