package replica

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A history is a cluster that anything happens to, and what clients were told.
type history struct {
	*cluster
	t            *rapid.T
	flights      []flight            // messages under way
	waits        []wait              // produces with acks=all
	acknowledged map[int64]simRecord // by offset
	hws          map[string]int64    // the high watermarks of leaders, by broker and epoch
}

// A flight is a message that arrives later, or never.
type flight func()

type wait struct {
	leader, epoch int32
	offset        int64
	record        simRecord
}

// Whatever arrives late, twice or never: what all of the ISR has, and only that, is below high watermarks and is
// acknowledged.
func TestHighWatermarkIsSafe(t *testing.T) {
	for range 40 { // times the 100 histories of a check: what goes wrong takes many steps
		rapid.Check(t, runHistory)
	}
}

func runHistory(t *rapid.T) {
	h := &history{cluster: newCluster(rapid.IntRange(1, 4).Draw(t, "brokers")), t: t, acknowledged: map[int64]simRecord{}, hws: map[string]int64{}}
	h.minISR = rapid.IntRange(1, 2).Draw(t, "min ISR")
	h.change(func(p *metadata.Partition) {
		p.Leader, p.Replicas, p.ISR = 1, h.ids(), h.ids()
	})
	for _, n := range h.nodes {
		n.learn()
	}
	actions := []func(){
		h.append, h.append, h.fetch, h.exchange, h.exchange, h.exchange, h.arrive, h.arrive, h.lose, h.pass, h.learn,
		h.fence, h.restart, h.elect,
	}
	for range rapid.IntRange(1, 200).Draw(t, "steps") {
		rapid.SampledFrom(actions).Draw(t, "action")()
		h.check(t)
	}
}

func (h *history) anyNode() *simNode {
	return h.nodes[rapid.SampledFrom(h.ids()).Draw(h.t, "broker")]
}

func (h *history) append() {
	n := h.anyNode()
	if n.state == nil {
		return
	}
	r, err := n.appendTo(rapid.IntRange(1, 3).Draw(h.t, "records"), NoEpoch, true)
	if err == nil {
		h.waits = append(h.waits, wait{n.id, n.state.LeaderEpoch, n.log.end(), r})
	}
	h.propose(n)
}

// exchange is a fetch that is answered at once.
func (h *history) exchange() {
	if ask := h.ask(); ask != nil {
		ask()()
	}
}

// fetch is a fetch that arrives later, and so does the answer.
func (h *history) fetch() {
	if ask := h.ask(); ask != nil {
		h.flights = append(h.flights, func() { h.flights = append(h.flights, ask()) })
	}
}

// ask returns a fetch of a follower from the leader that it knows, which returns the answer; nil if there is none.
func (h *history) ask() func() flight {
	n := h.anyNode()
	if n.state == nil || n.state.Leading || n.state.Leader < 0 {
		return nil
	}
	f, leader, life := n.ask(), h.nodes[n.state.Leader], h.brokers[n.id].Epoch
	most := rapid.IntRange(1, 4).Draw(h.t, "records at most")
	return func() flight {
		a := leader.serve(f, most)
		h.propose(leader)
		return func() {
			if h.brokers[n.id].Epoch == life {
				n.take(a, leader)
			}
		}
	}
}

func (h *history) arrive() {
	if f := h.anyFlight(); f != nil {
		f()
	}
}

func (h *history) lose() { h.anyFlight() }

func (h *history) learn() { h.anyNode().learn() }

// anyFlight takes a message out of those under way.
func (h *history) anyFlight() flight {
	if len(h.flights) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(h.flights)-1).Draw(h.t, "message")
	f := h.flights[i]
	h.flights = slices.Delete(h.flights, i, i+1)
	return f
}

// propose sends what a leader asks of the controller, unless it is under way.
func (h *history) propose(n *simNode) {
	if n.state == nil || n.state.Pending == nil {
		return
	}
	q := n.state.Pending
	h.flights = append(h.flights, func() {
		a := h.decide(n.id, q)
		h.flights = append(h.flights, func() {
			if n.answer(q, a) {
				h.propose(n)
			}
		})
	})
}

func (h *history) pass() {
	h.nowMs += int64(rapid.SampledFrom([]int{100, 20_000, 40_000}).Draw(h.t, "ms"))
	for _, id := range h.ids() {
		n := h.nodes[id]
		if n.state == nil || !n.state.Leading {
			continue
		}
		if next := n.state.ShrinkISR(n.view()); next != nil {
			n.state = next
		}
		h.propose(n)
	}
}

// fence lets the controller find that a broker is gone, or is back.
func (h *history) fence() {
	n := h.anyNode()
	b := *h.brokers[n.id]
	b.Fenced = !b.Fenced
	h.brokers[n.id] = &b
	if b.Fenced {
		h.leave(n.id)
	}
	h.elect()
}

// leave takes a broker out of the ISR, unless it is the last one.
func (h *history) leave(id int32) {
	isr := slices.DeleteFunc(slices.Clone(h.meta.ISR), func(i int32) bool { return i == id })
	if len(isr) == len(h.meta.ISR) {
		return
	}
	h.change(func(p *metadata.Partition) {
		if len(isr) > 0 {
			p.ISR = isr
		}
		if p.Leader == id {
			p.Leader = -1
		}
	})
}

// elect makes any member of the ISR that lives the leader, perhaps the one that is.
func (h *history) elect() {
	live := slices.DeleteFunc(slices.Clone(h.meta.ISR), func(id int32) bool { return !h.brokers[id].Active() })
	if len(live) == 0 {
		return
	}
	id := rapid.SampledFrom(live).Draw(h.t, "leader")
	h.change(func(p *metadata.Partition) {
		if p.Leader = id; p.Leader == h.meta.Leader {
			p.LeaderEpoch++
		}
	})
}

// restart ends a broker's life and begins another. If the ISR goes on without it, it may have lost the end of its log.
func (h *history) restart() {
	n := h.anyNode()
	h.leave(n.id)
	if !slices.Contains(h.meta.ISR, n.id) {
		n.log.truncate(int64(rapid.IntRange(0, int(n.log.end())).Draw(h.t, "left")))
	}
	n.log.hw = int64(rapid.IntRange(0, int(n.log.hw)).Draw(h.t, "checkpoint"))
	b := *h.brokers[n.id]
	b.Epoch += 100
	h.brokers[n.id] = &b
	n.state = nil
	h.elect()
	n.learn()
}

func (h *history) check(t *rapid.T) {
	h.acknowledge()
	for offset, r := range h.acknowledged {
		for _, id := range h.meta.ISR {
			if l := &h.nodes[id].log; offset >= l.end() || l.records[offset] != r {
				t.Fatalf("%d of the ISR %v has not record %v at %d, which was acknowledged", id, h.meta.ISR, r, offset)
			}
		}
	}
	for _, id := range h.ids() {
		h.checkNode(t, h.nodes[id])
	}
}

// acknowledge answers the produces that are done.
func (h *history) acknowledge() {
	h.waits = slices.DeleteFunc(h.waits, func(w wait) bool {
		n := h.nodes[w.leader]
		if n.state == nil || n.state.LeaderEpoch != w.epoch {
			return true
		}
		done, err := n.state.CheckCommitted(w.offset, n.view())
		if done && err == nil {
			h.acknowledged[w.offset-1] = w.record
		}
		return done
	})
}

func (h *history) checkNode(t *rapid.T, n *simNode) {
	l := &n.log
	if l.hw > l.end() || l.start > l.hw {
		t.Fatalf("%v: the offsets are in disorder", n)
	}
	for _, id := range h.meta.ISR {
		other := &h.nodes[id].log
		if l.hw > other.end() || !slices.Equal(l.records[:l.hw], other.records[:l.hw]) {
			t.Fatalf("%v: the ISR %v has not all below the high watermark: %v", n, h.meta.ISR, h.nodes[id])
		}
	}
	if n.state == nil || !n.state.Leading {
		return
	}
	key := fmt.Sprint(n.id, n.state.LeaderEpoch, h.brokers[n.id].Epoch)
	if l.hw < h.hws[key] {
		t.Fatalf("%v: the high watermark was %d", n, h.hws[key])
	}
	h.hws[key] = l.hw
}
