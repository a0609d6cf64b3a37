package replica

import (
	"errors"
	"testing"
	"time"
)

func TestFollowersCopy(t *testing.T) {
	inHall(t, 3, func(t *testing.T, h *hall) {
		h.create("t", 1, 3)
		for i := range int32(3) {
			leader := h.nodes[h.img.Topic("t").Partitions[i].Leader]
			if err := leader.append(t, i, "a", "b", "c"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		h.wantEqual(3)
	})
}

// An idle follower asks twice a second, and says nothing in it: no partition.
func TestIdleFollowerIsQuiet(t *testing.T) {
	inHall(t, 2, func(t *testing.T, h *hall) {
		h.create("t", 1, 1)
		time.Sleep(time.Second)
		h.nodes[2].wire.Lock()
		before := h.nodes[2].wire.fetches
		h.nodes[2].wire.Unlock()
		time.Sleep(10 * time.Second)
		h.nodes[2].wire.Lock()
		n := h.nodes[2].wire.fetches - before
		h.nodes[2].wire.Unlock()
		if n < 19 || n > 21 { // those at the ends of the time may be in it or not
			t.Errorf("%d fetches in 10 s, want 20", n)
		}
	})
}

// A follower that is gone leaves the ISR after replica.lag.time.max.ms, and what waited for it is done; it joins when it
// is back and has all.
func TestLostFollowerLeavesAndJoins(t *testing.T) {
	inHall(t, 2, func(t *testing.T, h *hall) {
		h.create("t", 1, 1)
		if err := h.nodes[1].append(t, 0, "a"); err != nil {
			t.Fatal(err)
		}
		f := h.nodes[2]
		f.wire.Lock()
		f.wire.broken[1] = true
		f.wire.Unlock()
		time.Sleep(time.Second)
		start := time.Now()
		if err := h.nodes[1].append(t, 0, "b"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 25*time.Second || took > 50*time.Second {
			t.Errorf("it took %v", took)
		}
		if isr := h.image().Topic("t").Partitions[0].ISR; len(isr) != 1 {
			t.Errorf("in sync are %v", isr)
		}
		f.wire.Lock()
		f.wire.broken[1] = false
		f.wire.Unlock()
		time.Sleep(5 * time.Second)
		h.wantEqual(1)
	})
}

// What a leader wrote that nobody has is cut when another one leads.
func TestOldLeaderTruncates(t *testing.T) {
	inHall(t, 3, func(t *testing.T, h *hall) {
		h.create("t", 1, 1)
		if err := h.nodes[1].append(t, 0, "a"); err != nil {
			t.Fatal(err)
		}
		for id := int32(2); id <= 3; id++ {
			h.nodes[id].wire.Lock()
			h.nodes[id].wire.broken[1] = true
			h.nodes[id].wire.Unlock()
		}
		time.Sleep(time.Second)
		done := make(chan error)
		go func() { done <- h.nodes[1].append(t, 0, "lost") }()
		time.Sleep(time.Second)
		h.lead(0, 2, 2, 3)
		if err := <-done; !errors.Is(err, ErrNotLeaderOrFollower) {
			t.Errorf("the produce ended with %v", err)
		}
		if err := h.nodes[2].append(t, 0, "b", "c", "d"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		h.wantEqual(1)
		if end := h.nodes[1].log(0).Offsets().End; end != 4 {
			t.Errorf("the log ends at %d, want 4", end)
		}
	})
}
