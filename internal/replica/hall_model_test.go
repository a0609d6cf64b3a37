package replica

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A hallHistory is what happens to a hall by chance, and what its producers were told.
type hallHistory struct {
	*hall
	rng   *rand.Rand
	calls sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[int32][]string // by partition
	written      int
}

// Whatever happens to brokers and connections: when it is over all replicas have the same, and all that was acknowledged.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runHall(t, uint64(seed)) })
		})
	}
}

const historyPartitions = 3

func runHall(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &hallHistory{hall: newHall(t, 3, nil), rng: rng, acknowledged: map[int32][]string{}}
	h.config.MinInsyncReplicas = 1 + int(seed%2)
	h.create("t", 1, historyPartitions)
	h.loseAnswers(seed)
	actions := []func(){h.produce, h.produce, h.produce, h.produce, h.pass, h.pass, h.crash, h.revive, h.cut, h.heal, h.elect}
	for range 60 {
		actions[rng.IntN(len(actions))]()
	}
	h.settle()
	h.wantEqual(historyPartitions)
	h.wantAcknowledged(t)
	for _, id := range h.ids() {
		h.nodes[id].stop(t)
	}
}

// loseAnswers lets a tenth of all calls be lost, on their way there or back.
func (h *hallHistory) loseAnswers(seed uint64) {
	for id, n := range h.nodes {
		rng := rand.New(rand.NewPCG(seed, uint64(id)))
		n.wire.Lock()
		n.wire.lose = func() bool { return rng.IntN(20) == 0 }
		n.wire.Unlock()
	}
}

func (h *hallHistory) any() *hallNode { return h.nodes[h.ids()[h.rng.IntN(len(h.nodes))]] }

// produce sends records to the leader of a partition, and waits elsewhere for what becomes of them.
func (h *hallHistory) produce() {
	i := int32(h.rng.IntN(historyPartitions))
	p := h.image().Topic("t").Partitions[i]
	leader := h.nodes[max(p.Leader, 1)]
	for range 1 + h.rng.IntN(4) {
		h.written++
		value := fmt.Sprintf("record %d %s", h.written, strings.Repeat("x", h.rng.IntN(100)))
		h.calls.Go(func() {
			if leader.append(h.t, i, value) == nil {
				h.mu.Lock()
				h.acknowledged[i] = append(h.acknowledged[i], value)
				h.mu.Unlock()
			}
		})
	}
}

func (n *hallNode) isUp() bool { return n.now() != nil }

func (h *hallHistory) pass() {
	time.Sleep([]time.Duration{time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 40 * time.Second}[h.rng.IntN(4)])
}

// crash kills a broker, and now and then power fails; not for who alone is in sync.
func (h *hallHistory) crash() {
	n := h.any()
	if !n.isUp() {
		return
	}
	alone := false
	for _, p := range h.image().Topic("t").Partitions {
		alone = alone || len(p.ISR) == 1 && p.ISR[0] == n.id
	}
	if alone || h.rng.IntN(2) == 0 {
		n.kill(nil)
		return
	}
	n.kill(h.rng)
}

func (h *hallHistory) revive() {
	if n := h.any(); !n.isUp() {
		n.start()
	}
}

func (h *hallHistory) cut() {
	from, to := h.any(), h.any()
	from.wire.Lock()
	from.wire.broken[to.id] = true
	from.wire.Unlock()
}

func (h *hallHistory) heal() {
	n := h.any()
	n.wire.Lock()
	clear(n.wire.broken)
	n.wire.Unlock()
}

// elect makes another of those in sync the leader.
func (h *hallHistory) elect() {
	img := h.image()
	i := int32(h.rng.IntN(historyPartitions))
	p := img.Topic("t").Partitions[i]
	if id := liveOf(img, p.ISR, p.Leader); id >= 0 {
		h.lead(i, id)
	}
}

// settle lets all be well again.
func (h *hallHistory) settle() {
	for _, n := range h.nodes {
		n.wire.Lock()
		clear(n.wire.broken)
		n.wire.lose = nil
		n.wire.Unlock()
	}
	for _, id := range h.ids() {
		if n := h.nodes[id]; !n.isUp() {
			n.start()
		}
	}
	time.Sleep(5 * time.Minute)
	h.calls.Wait()
	time.Sleep(time.Minute)
}

// wantAcknowledged checks that each acknowledged record is there, once.
func (h *hallHistory) wantAcknowledged(t *testing.T) {
	for i := range int32(historyPartitions) {
		log := h.nodes[1].log(i)
		there := string(logBytes(t, log, log.Offsets().End))
		for _, value := range h.acknowledged[i] {
			if n := strings.Count(there, value+"\x00"); n != 1 {
				t.Errorf("t-%d has %q %d times", i, value[:10], n)
			}
		}
	}
}
