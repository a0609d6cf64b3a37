package replica

import (
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// racks registers brokers, each in its rack.
func (b *bench) racks(racks map[int32]string) {
	b.t.Helper()
	for id, rack := range racks {
		r := metadata.NewRegisterBrokerRecord()
		r.BrokerID, r.BrokerEpoch, r.Fenced, r.Rack = id, b.img.Offset+1, false, &rack
		b.apply(r)
	}
}

// A consumer reads from a replica in its own rack that is in sync and has what it asks for; the leader, if there is
// none.
func TestPreferredReplica(t *testing.T) {
	b, p, _ := led(t, testNode, 2, 3)
	b.o.RackAware = true
	b.racks(map[int32]string{testNode: "a", 2: "b", 3: "b"})
	mustAppend(t, p, "a", "b", "c")
	b.follow(2, 2, nil)
	b.follow(3, 1, nil)
	f := func(rack string, offset int64, want int32) {
		t.Helper()
		part := &FetchPartition{Name: []byte("t"), Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}
		req := &FetchRequest{MaxBytes: 1000, MinBytes: 1, MaxWait: time.Hour, AnyReplica: true, Rack: []byte(rack)}
		if want == testNode {
			req.MaxWait = 0
		}
		if err := b.Fetch(t.Context(), req, []*FetchPartition{part}); err != nil {
			t.Fatal(err)
		}
		r := &part.Result
		defer r.Read.Slice.Release()
		got := int32(testNode)
		if r.Elsewhere {
			got = r.Preferred
		}
		if got != want || r.Err != nil || r.Elsewhere && (r.Read.Slice.Size() > 0 || r.Read.Offsets == nil || !part.Changed()) {
			t.Errorf("rack %q, offset %d: got %d, %+v, want %d", rack, offset, got, *r, want)
		}
	}
	f("", 0, testNode)
	f("a", 0, testNode)
	f("elsewhere", 0, testNode)
	f("b", 0, 2) // which has more than 3
	f("b", 2, 2)
	f("b", 3, testNode)
	b.follow(3, 3, nil)
	f("b", 3, 3)
	b.follow(3, 3, func(_ *FetchRequest, f *FetchPartition) { f.LogStart = 1 })
	f("b", 0, 2)
	b.lead(1, leaderUnchanged, testNode, 2)
	f("b", 3, testNode) // 3 is not in sync
	b.o.RackAware = false
	f("b", 0, testNode)
}

// A broker that is gone, or is about to go, is nobody to read from.
func TestPreferredReplicaServes(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	b.o.RackAware = true
	b.racks(map[int32]string{testNode: "a", 2: "b"})
	mustAppend(t, p, "a")
	b.follow(2, 1, nil)
	f := func(want int32) {
		t.Helper()
		v := p.wideView(p.log.Load(), p.log.Load().Offsets())
		if got := p.State().PreferredReplica([]byte("b"), 0, &v); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	f(2)
	c := metadata.NewBrokerRegistrationChangeRecord()
	c.BrokerID, c.BrokerEpoch, c.Fenced = 2, b.img.Broker(2).Epoch, 1
	b.apply(c)
	f(testNode)
}
