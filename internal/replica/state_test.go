package replica

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// Only who leads, and has somebody to lead, knows of followers: an idle partition costs nothing more.
func TestLeadershipIsOfFollowers(t *testing.T) {
	f := func(leader int32, replicas []int32, want bool) {
		t.Helper()
		var none *PartitionState
		s := none.Next(&metadata.Partition{Leader: leader, Replicas: replicas, ISR: replicas}, 1, &View{})
		if got := s.leadership != nil; got != want {
			t.Errorf("leader %d of %v: knows of followers %t, want %t", leader, replicas, got, want)
		}
		if got := s.Commits(1); got != (leader == 1 && !want) {
			t.Errorf("leader %d of %v: commits alone %t", leader, replicas, got)
		}
	}
	f(1, []int32{1}, false)
	f(1, []int32{1, 2}, true)
	f(2, []int32{1, 2}, false)
	f(-1, []int32{1}, false)
}

func TestCommitsNeedsEnoughInSync(t *testing.T) {
	s := &PartitionState{Leading: true, assigned: &metadata.Partition{Replicas: []int32{1}}}
	if s.Commits(1) || !s.Commits(0) {
		t.Error("commits with fewer in sync than are asked for, or not with enough")
	}
}

func TestHighWatermarkMovesOrNot(t *testing.T) {
	s := &PartitionState{Leading: true, ISR: []int32{1}, assigned: &metadata.Partition{Replicas: []int32{1}}}
	f := func(hw, end int64, want bool) {
		t.Helper()
		if got, moves := s.HighWatermark(&View{HW: hw, End: end}); got != end || moves != want {
			t.Errorf("from %d, end %d: got %d, %t, want it to move: %t", hw, end, got, moves, want)
		}
	}
	f(3, 4, true)
	f(4, 4, false)
	s.Leading = false
	if hw, moves := s.HighWatermark(&View{HW: 1, End: 2}); hw != 1 || moves {
		t.Errorf("a follower moves its high watermark to %d by itself", hw)
	}
}

func TestTruncationFor(t *testing.T) {
	v := &View{HW: 3, End: 10}
	f := func(leaderEpoch int32, leaderEnd int64, ourEpoch int32, ourEnd, want int64, final bool) {
		t.Helper()
		got := TruncationFor(EpochEnd{leaderEpoch, leaderEnd}, EpochEnd{ourEpoch, ourEnd}, v)
		if got != (Truncation{want, final}) {
			t.Errorf("leader %d to %d, ours %d to %d: got %+v, want %d, %t", leaderEpoch, leaderEnd, ourEpoch, ourEnd, got, want, final)
		}
	}
	f(2, 7, 2, 9, 7, true)
	f(2, 9, 2, 7, 7, true)
	f(2, 20, 2, 20, 10, true)
	f(2, 7, 1, 5, 5, false)
	f(2, 7, 1, 20, 10, false)
	f(0, 7, 0, 5, 5, true)
	f(0, 0, 0, 5, 0, true)
	f(1, 7, 0, 5, 5, false)
	f(-1, -1, -1, -1, 3, true) // the leader knows nothing: the high watermark
	f(2, -1, 2, 5, 3, true)
	f(-1, 7, 2, 5, 7, true) // one of them has no epochs
	f(2, 7, -1, -1, 7, true)
	f(2, 20, -1, -1, 10, true)
}

func TestRestartFor(t *testing.T) {
	v := &View{End: 10}
	f := func(start, end int64, want Restart) {
		t.Helper()
		if got := RestartFor(start, end, v); got != want {
			t.Errorf("leader from %d to %d: got %+v, want %+v", start, end, got, want)
		}
	}
	f(0, 9, Restart{Offset: 9, Truncate: true})
	f(0, 10, Restart{Offset: 10})
	f(10, 12, Restart{Offset: 10})
	f(11, 12, Restart{Offset: 11, Wipe: true})
}

func TestFollowerOffsets(t *testing.T) {
	v := &View{LogStart: 2, HW: 5, End: 8}
	for leader, want := range map[int64]int64{3: 5, 5: 5, 7: 7, 9: 8} {
		if got := FollowerHighWatermark(leader, v); got != want {
			t.Errorf("leader's high watermark %d: got %d, want %d", leader, got, want)
		}
	}
	for leader, want := range map[int64]int64{1: 2, 4: 4, 7: 5} {
		if got := FollowerLogStart(leader, v); got != want {
			t.Errorf("leader's log start %d: got %d, want %d", leader, got, want)
		}
	}
	if NextFetch(-1, v) != 5 || NextFetch(0, v) != 8 {
		t.Error("a follower fetches from elsewhere than its end, or its high watermark without epochs")
	}
}

// A refused fetch says that nothing changed.
func TestFetchedRefused(t *testing.T) {
	c := newCluster(2)
	c.change(func(p *metadata.Partition) { p.Leader, p.Replicas, p.ISR = 1, []int32{1, 2}, []int32{1} })
	n := c.nodes[1]
	n.learn()
	for _, from := range []Follower{{3, NoBrokerEpoch}, {2, 101}} {
		changed, err := n.state.Fetched(FollowerFetch{Follower: from}, n.view())
		wantError(t, err, ErrNotLeaderOrFollower)
		if changed {
			t.Errorf("a fetch of %+v changed something", from)
		}
	}
}

// In the same leader epoch a leader goes on with what it knows of its followers.
func TestSameLeaderEpoch(t *testing.T) {
	c := newCluster(3)
	c.change(func(p *metadata.Partition) { p.Leader, p.Replicas, p.ISR = 1, []int32{1, 2}, []int32{1, 2} })
	n := c.nodes[1]
	n.learn()
	before := *n.state.follower(2)
	if _, err := n.appendTo(2, NoEpoch, false); err != nil {
		t.Fatal(err)
	}
	c.nowMs += 1000
	c.change(func(p *metadata.Partition) { p.Replicas = []int32{1, 2, 3} })
	n.learn()
	if got := *n.state.follower(2); got != before || n.state.leadership.epochStart != 0 || n.state.follower(3) == nil {
		t.Errorf("got %+v, epoch from %d, want %+v from 0", got, n.state.leadership.epochStart, before)
	}
}
