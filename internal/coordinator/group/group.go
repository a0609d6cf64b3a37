package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
)

// A State is where a group is in its life.
type State int8

// The states, as the package comment draws them. Dead is what a group that does not exist
// is described as.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

// String returns Kafka's name of the state.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// consumerType is the one protocol type whose metadata we can read.
const consumerType = "consumer"

// A group holds what a shard knows about one group id. A group that only keeps offsets is
// Empty and has no protocol type.
type group struct {
	id    string
	state State
	since int64 // ms since 1970 when the state began, -1 if not known

	generation   int32
	protocolType string // "" until the first join
	protocol     string // of the generation, "" if there is none
	leader       string // member id, "" if there is none

	// members is in order of joining; byID and static index it.
	// Invariant: leader is a member, or "" and there is none.
	members []*member
	byID    map[string]*member
	static  map[string]*member // by instance id

	// pendingJoinMembers holds member ids that were handed out and have not come back.
	pendingJoinMembers map[string]struct{}
	// pendingSyncMembers holds members that got the generation and have not sent SyncGroup.
	pendingSyncMembers map[string]struct{}

	// The wait that began in Empty: only the initial delay ends it.
	initial struct {
		active    bool
		joined    bool          // somebody joined since the delay was started
		remaining time.Duration // by which the delay may still be extended
	}

	offsets    offsets
	pending    int             // offsets of open transactions, in Shard.transactions
	modernKeys map[string]bool // keys of the records of a newer protocol (Kafka class ModernGroup)
}

func newGroup(id string) *group {
	return &group{
		id:                 id,
		since:              -1,
		byID:               make(map[string]*member),
		static:             make(map[string]*member),
		pendingJoinMembers: make(map[string]struct{}),
		pendingSyncMembers: make(map[string]struct{}),
		offsets:            make(offsets),
	}
}

// enter changes the state.
func (g *group) enter(s State, nowMs int64) { g.state, g.since = s, nowMs }

// isSimple reports whether the group only keeps offsets: no member ever joined it.
func (g *group) isSimple() bool { return g.protocolType == "" }

// isConsumer reports whether the members' metadata holds subscriptions.
func (g *group) isConsumer() bool { return g.protocolType == consumerType }

// add makes m the last member. The first member is the leader.
func (g *group) add(m *member) {
	if len(g.members) == 0 {
		g.leader = m.id
	}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	if m.isStatic() {
		g.static[*m.instanceID] = m
	}
	delete(g.pendingJoinMembers, m.id)
}

// remove takes m out. When it was the leader the next member is.
func (g *group) remove(m *member) {
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	delete(g.byID, m.id)
	delete(g.pendingSyncMembers, m.id)
	if m.isStatic() {
		delete(g.static, *m.instanceID)
	}
	if g.leader != m.id {
		return
	}
	g.leader = ""
	if len(g.members) > 0 {
		g.leader = g.members[0].id
	}
}

// rename gives a member another id, in every place where the old one stands.
func (g *group) rename(m *member, id string) {
	delete(g.byID, m.id)
	if _, ok := g.pendingSyncMembers[m.id]; ok {
		delete(g.pendingSyncMembers, m.id)
		g.pendingSyncMembers[id] = struct{}{}
	}
	if g.leader == m.id {
		g.leader = id
	}
	m.id = id
	g.byID[id] = m
}

// countJoining is the number of members whose JoinGroup waits.
func (g *group) countJoining() int {
	n := 0
	for _, m := range g.members {
		if m.join != nil {
			n++
		}
	}
	return n
}

// allJoined reports whether nobody is missing for the next generation.
func (g *group) allJoined() bool {
	return len(g.pendingJoinMembers) == 0 && g.countJoining() == len(g.members)
}

// electLeader keeps the leader if its JoinGroup waits, else takes the first member whose
// does. It reports whether there is one.
func (g *group) electLeader() bool {
	if m := g.byID[g.leader]; m != nil && m.join != nil {
		return true
	}
	for _, m := range g.members {
		if m.join != nil {
			g.leader = m.id
			return true
		}
	}
	return false
}

// rebalanceTimeout is the longest of the members'.
func (g *group) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalanceTimeout)
	}
	return longest
}

// accepts reports whether a member with these protocols can be in the group: it has one
// in common with all the others.
func (g *group) accepts(protocolType string, protocols []Protocol) bool {
	if protocolType == "" || len(protocols) == 0 {
		return false
	}
	if len(g.members) == 0 {
		return true
	}
	common := g.commonProtocols()
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p Protocol) bool {
		return slices.Contains(common, p.Name)
	})
}

// commonProtocols lists what all members support, in the first one's order.
func (g *group) commonProtocols() []string {
	var common []string
	for _, p := range g.members[0].protocols {
		if !slices.ContainsFunc(g.members, func(m *member) bool { return !m.supports(p.Name) }) {
			common = append(common, p.Name)
		}
	}
	return common
}

// selectProtocol counts the members' votes. Among equals the first member's order decides.
func (g *group) selectProtocol() string {
	common := g.commonProtocols()
	votes := make(map[string]int)
	for _, m := range g.members {
		votes[m.vote(common)]++
	}
	best := common[0]
	for _, name := range common {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// nextGeneration ends the join phase.
func (g *group) nextGeneration(nowMs int64) {
	g.generation++
	clear(g.pendingSyncMembers)
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.enter(Empty, nowMs)
		return
	}
	g.protocol = g.selectProtocol()
	g.enter(CompletingRebalance, nowMs)
}

// isSubscribed reports whether a member may be reading the topic. Of a protocol whose
// metadata we cannot read we do not know better.
func (g *group) isSubscribed(topic string) bool {
	if !g.isConsumer() {
		return false
	}
	for _, m := range g.members {
		topics, err := subscription(m.metadata(g.protocol))
		if err != nil || slices.Contains(topics, topic) {
			return true
		}
	}
	return false
}

// subscription reads the topics out of a consumer's metadata. What follows them differs
// by version and client and is not looked at.
func subscription(metadata []byte) ([]string, error) {
	var topics []string
	b := kbin.Reader{Src: metadata}
	b.Int16() // version
	for n := b.ArrayLen(); n > 0 && b.Ok(); n-- {
		topics = append(topics, b.String())
	}
	return topics, b.Complete()
}
