package group

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// Whatever clients do, in whatever order, with a log that is slow or fails: no invariant
// breaks, no request is answered twice, and none is forgotten when the shard stops.
func TestGroupRandomly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		t.Repeat(map[string]func(*rapid.T){
			"join":      c.join,
			"arrive":    func(t *rapid.T) { c.joinAs(t, "", c.anyInstance(t), c.anyProtocols(t)) },
			"sync":      c.sync,
			"settle":    c.settle,
			"settle 2":  c.settle, // what is Stable is more interesting
			"heartbeat": c.heartbeat,
			"leave":     c.leave,
			"commit":    c.commit,
			"delete":    c.delete,
			"advance":   func(t *rapid.T) { c.advance(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second) },
			"hold":      func(*rapid.T) { c.hold = true },
			"release":   func(*rapid.T) { c.release() },
			"fail":      func(*rapid.T) { c.failAs = errors.New("disk on fire") },
			"restart":   func(*rapid.T) { c.stop(t); c.restart() },
			"":          func(t *rapid.T) { c.checkInvariants(t) },
		})
		c.stop(t)
	})
}

// chaos is a world of clients that know ids but no order.
type chaos struct {
	*world
	waiting map[int]bool // requests without an answer
	count   int
	ids     []string // member ids that were ever handed out
}

func newChaos(t *rapid.T) *chaos {
	c := &chaos{world: newWorld(), waiting: make(map[int]bool), ids: []string{"", "stranger"}}
	c.cfg.InitialRebalanceDelay = time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
	c.cfg.MaxSize = rapid.IntRange(1, 5).Draw(t, "max-size")
	c.restart()
	return c
}

// request returns a function that notes the answer.
func (c *chaos) request(t *rapid.T) (answered func()) {
	c.count++
	n := c.count
	c.waiting[n] = true
	return func() {
		if !c.waiting[n] {
			t.Fatalf("request %d is answered twice", n)
		}
		delete(c.waiting, n)
	}
}

func (c *chaos) release() {
	c.hold = false
	c.world.commit()
}

// stop ends the shard as a runtime does: what was to be written is hasGeneration first.
func (c *chaos) stop(t *rapid.T) {
	c.release()
	c.shard.Stop(coordinator.ErrNotCoordinator)
	if len(c.waiting) > 0 {
		t.Fatalf("requests %v were never answered", slices.Sorted(maps.Keys(c.waiting)))
	}
}

// anyID is a member's id more often than not.
func (c *chaos) anyID(t *rapid.T) string {
	if g := c.shard.groups["g"]; g != nil && len(g.members) > 0 && rapid.IntRange(0, 2).Draw(t, "stranger") > 0 {
		return rapid.SampledFrom(g.members).Draw(t, "member").id
	}
	return rapid.SampledFrom(c.ids).Draw(t, "id")
}

func (c *chaos) anyInstance(t *rapid.T) *string {
	instances := []string{"i1", "i2"}
	i := rapid.IntRange(0, 3).Draw(t, "instance")
	if i >= len(instances) {
		return nil
	}
	return &instances[i]
}

func (c *chaos) generation(t *rapid.T) int32 {
	back := int32(rapid.IntRange(0, 5).Draw(t, "generations back")) / 5
	if g := c.shard.groups["g"]; g != nil {
		return g.generation - back
	}
	return -back
}

// settle lets all members do what they should, until the group is Stable if it can be.
func (c *chaos) settle(t *rapid.T) {
	c.release()
	c.advance(3 * time.Second)
	g := c.shard.groups["g"]
	if g == nil {
		return
	}
	for _, m := range slices.Clone(g.members) {
		if m.join == nil && g.state == PreparingRebalance {
			c.joinAs(t, m.id, m.instanceID, m.protocols)
		}
	}
	for _, m := range slices.Clone(g.members) {
		if m.sync == nil && g.state == CompletingRebalance {
			c.syncAs(t, m.id, g.generation)
		}
	}
}

func (c *chaos) anyProtocols(t *rapid.T) []Protocol {
	return rapid.SampledFrom([][]Protocol{
		{{"range", subscriptionTo("t")}},
		{{"rr", subscriptionTo("t")}, {"range", subscriptionTo("t")}},
		{{"range", subscriptionTo("u")}, {"rr", subscriptionTo("t")}},
	}).Draw(t, "protocols")
}

func (c *chaos) join(t *rapid.T) { c.joinAs(t, c.anyID(t), c.anyInstance(t), c.anyProtocols(t)) }

func (c *chaos) joinAs(t *rapid.T, id string, instance *string, protocols []Protocol) {
	answered := c.request(t)
	r := &JoinRequest{
		Group: "g", MemberID: id, InstanceID: instance, ClientID: "c",
		SessionTimeout:   time.Duration(rapid.IntRange(6, 10).Draw(t, "session")) * time.Second,
		RebalanceTimeout: time.Duration(rapid.IntRange(1, 20).Draw(t, "rebalance")) * time.Second,
		ProtocolType:     consumerType, Protocols: protocols,
		NeedKnownID: rapid.Bool().Draw(t, "v4"), CanSkipAssignment: rapid.Bool().Draw(t, "v9"),
	}
	c.step(func(turn *coordinator.Turn) {
		c.shard.Join(turn, r, func(resp *JoinResponse) {
			answered()
			if resp.MemberID != "" && !slices.Contains(c.ids, resp.MemberID) {
				c.ids = append(c.ids, resp.MemberID)
			}
		})
	})
}

func (c *chaos) sync(t *rapid.T) { c.syncAs(t, c.anyID(t), c.generation(t)) }

func (c *chaos) syncAs(t *rapid.T, id string, generation int32) {
	answered := c.request(t)
	r := &SyncRequest{Group: "g", MemberID: id, Generation: generation, Assignments: map[string][]byte{}}
	for _, id := range c.ids {
		r.Assignments[id] = []byte(id)
	}
	c.step(func(turn *coordinator.Turn) {
		c.shard.Sync(turn, r, func(resp *SyncResponse) {
			answered()
			if g := c.shard.groups["g"]; resp.Err == nil && g.state != Stable {
				t.Fatalf("an assignment in state %v", g.state)
			}
		})
	})
}

func (c *chaos) heartbeat(t *rapid.T) {
	id, instance, generation := c.anyID(t), c.anyInstance(t), c.generation(t)
	c.step(func(turn *coordinator.Turn) { _ = c.shard.Heartbeat(turn, "g", id, instance, generation) })
}

func (c *chaos) leave(t *rapid.T) {
	leavers := []Leaver{{c.anyID(t), c.anyInstance(t)}, {c.anyID(t), nil}}
	c.step(func(turn *coordinator.Turn) { c.shard.Leave(turn, "g", leavers) })
}

func (c *chaos) commit(t *rapid.T) {
	answered := c.request(t)
	r := &CommitRequest{
		Group: "g", MemberID: c.anyID(t), Generation: c.generation(t), RetentionMs: -1, NotFound: ErrIllegalGeneration,
		Offsets: []CommitOffset{{Topic: "t", Offset: int64(c.count)}},
	}
	c.step(func(turn *coordinator.Turn) { c.shard.Commit(turn, r, func([]error, error) { answered() }) })
}

// delete runs alone, as the runtime does it.
func (c *chaos) delete(t *rapid.T) {
	c.release()
	answered := c.request(t)
	c.step(func(turn *coordinator.Turn) { c.shard.Delete(turn, []string{"g"}, func([]error) { answered() }) })
}
