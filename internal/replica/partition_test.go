package replica

import (
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

func TestManagerDefaults(t *testing.T) {
	m := NewManager(Options{})
	if m.o.Logger == nil || m.o.LagTimeMaxMs != 30_000 {
		t.Errorf("got %+v", m.o)
	}
	logger := slog.New(slog.DiscardHandler)
	if m = NewManager(Options{Logger: logger, LagTimeMaxMs: 7}); m.o.Logger != logger || m.o.LagTimeMaxMs != 7 {
		t.Errorf("got %+v", m.o)
	}
}

// producerSet is a batch of an idempotent producer.
func producerSet(t *testing.T, transactional bool, sequence int32, value string) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{
		Producer: &record.Producer{ID: 7, BaseSequence: sequence}, Transactional: transactional,
	})
	if err := b.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// An append is news to readers, unless it is a duplicate, or not committed and nobody follows.
func TestAppendIsNews(t *testing.T) {
	f := func(name string, p *Partition, b []byte, want bool) {
		t.Helper()
		_, more, err := p.append(b, client)
		if err != nil || more != want {
			t.Errorf("%s: news %v, %v, want %v", name, more, err, want)
		}
	}
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	p := b.partition("t")
	f("alone", p, producerSet(t, false, 0, "a"), true)
	f("a duplicate", p, producerSet(t, false, 0, "a"), false)
	f("alone again", p, producerSet(t, false, 1, "b"), true)

	_, p, _ = led(t, testNode, 2, 3)
	f("followed", p, producerSet(t, false, 0, "a"), true)
	if got := p.log.Load().Offsets().HighWatermark; got != 0 {
		t.Errorf("the high watermark is %d though nobody has fetched", got)
	}
}

// A marker frees what was held back in front of it: whoever waits for more bytes than it has itself is woken.
func TestMarkerWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
		p := b.partition("t")
		if _, err := p.Append(producerSet(t, true, 0, string(make([]byte, 2000))), client); err != nil {
			t.Fatal(err)
		}
		f := &FetchPartition{Name: []byte("t"), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 9000}
		done := make(chan time.Duration)
		before := time.Now()
		go func() {
			req := &FetchRequest{MinBytes: 1500, MaxWait: time.Minute, MaxBytes: 9000, Isolation: commitlog.ReadCommitted}
			if err := b.Fetch(t.Context(), req, []*FetchPartition{f}); err != nil {
				t.Error(err)
			}
			done <- time.Since(before)
		}()
		time.Sleep(time.Second)
		marker := record.EndTxnMarker(record.EndTxn{Type: record.ControlCommit, ProducerID: 7, Timestamp: time.Now().UnixMilli()})
		if _, err := p.Append(marker, AppendOptions{Origin: record.Coordinator, LeaderEpoch: NoEpoch}); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != time.Second {
			t.Errorf("the fetch ended after %v", got)
		}
		f.Result.Read.Slice.Release()
	})
}

// Records are deleted up to the high watermark at most.
func TestDeleteRecordsBounds(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	p := b.partition("t")
	mustAppend(t, p, "a", "b", "c")
	f := func(offset int64, want error, low int64) {
		t.Helper()
		got, err := p.DeleteRecords(t.Context(), offset, time.Now())
		wantError(t, err, want)
		if err == nil && got != low {
			t.Errorf("offset %d: low watermark %d, want %d", offset, got, low)
		}
	}
	f(-2, commitlog.ErrOffsetOutOfRange, 0)
	f(math.MinInt64, commitlog.ErrOffsetOutOfRange, 0)
	f(4, commitlog.ErrOffsetOutOfRange, 0)
	f(0, nil, 0)
	f(1, nil, 1)
	f(0, nil, 1)
	f(3, nil, 3)
	f(HighWatermark, nil, 3)
}

// Metadata that say what is known change nothing, and nobody is told.
func TestLearnNothingNew(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	p := b.partition("t")
	mp := b.img.Topic("t").Partitions[0]
	if p.learn(mp, testNode) {
		t.Error("the same metadata is news")
	}
	later := *mp
	later.PartitionEpoch++
	if !p.learn(&later, testNode) {
		t.Error("a later partition epoch is no news")
	}
}

// A replacement that gives no log leaves the one that there is; another one is led like it.
func TestReplaceLog(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	b.create("t", 1, testNode, one, one)
	b.create("u", 2, testNode, one, one)
	p := b.partition("t")
	before, other := p.log.Load(), b.partition("u").log.Load()
	f := func(give *commitlog.Log, fail error, want *commitlog.Log) {
		t.Helper()
		wantError(t, p.ReplaceLog(func() (*commitlog.Log, error) { return give, fail }), fail)
		if p.log.Load() != want {
			t.Errorf("got another log than wanted")
		}
	}
	f(nil, nil, before)
	f(nil, ErrOffline, before)
	f(other, nil, other)
	mustAppend(t, p, "v")
}

// What a follower's fetch changes, and that a refused one changes nothing.
func TestNoteFetch(t *testing.T) {
	_, p, _ := led(t, testNode, 2, 3)
	mustAppend(t, p, "a", "b")
	f := func(id int32, offset, logStart int64, wantErr error, low, changed bool) {
		t.Helper()
		log, s, err := p.leading(NoEpoch)
		if err != nil {
			t.Fatal(err)
		}
		fetch := FollowerFetch{Follower: Follower{ID: id, BrokerEpoch: NoBrokerEpoch}, Offset: offset, LogStart: logStart}
		gotLow, gotChanged, _, err := p.noteFetch(log, s, fetch, 2)
		wantError(t, err, wantErr)
		if gotLow != low || gotChanged != changed {
			t.Errorf("broker %d at %d from %d: low %v, changed %v", id, offset, logStart, gotLow, gotChanged)
		}
	}
	f(9, 1, 0, ErrNotLeaderOrFollower, false, false)
	f(2, 1, 0, nil, false, true)
	f(2, 1, 0, nil, false, false)
	f(3, 2, 0, nil, true, true) // now all are known to begin at 0
	f(3, 2, 0, nil, false, false)
	f(2, 2, 0, nil, false, true)
}

// The answer of the controller is the state from then on, also where it changes nothing, and metadata of
// the same partition epoch, which come behind it, are taken over.
func TestAnsweredInTheSameEpoch(t *testing.T) {
	c := newCluster(3)
	c.change(func(p *metadata.Partition) { p.Leader, p.Replicas, p.ISR = 1, []int32{1, 2, 3}, []int32{1, 2} })
	n := c.nodes[1]
	n.learn()
	s := n.state.propose([]int32{1}, false, n.view())
	f := func(name string, a ISRAnswer, taken bool) {
		t.Helper()
		next, again := s.Answered(s.Pending, &a)
		if again || (next.Pending == nil) != taken {
			t.Errorf("%s: pending %v, again %v", name, next.Pending, again)
		}
	}
	leader, partition := s.LeaderEpoch, s.PartitionEpoch
	f("the same", ISRAnswer{ISR: []int32{1, 2}, LeaderEpoch: leader, PartitionEpoch: partition}, true)
	f("later", ISRAnswer{ISR: []int32{1}, LeaderEpoch: leader, PartitionEpoch: partition + 1}, true)
	f("earlier", ISRAnswer{ISR: []int32{1}, LeaderEpoch: leader, PartitionEpoch: partition - 1}, false)
	f("of another leader", ISRAnswer{ISR: []int32{1}, LeaderEpoch: leader + 1, PartitionEpoch: partition + 1}, false)

	answered, _ := s.Answered(s.Pending, &ISRAnswer{ISR: []int32{1}, LeaderEpoch: leader, PartitionEpoch: partition + 1})
	same := &metadata.Partition{Leader: 1, LeaderEpoch: leader, PartitionEpoch: partition + 1, Replicas: []int32{1, 3}, ISR: []int32{1}}
	if next := answered.Next(same, 1, n.view()); len(next.Replicas()) != 2 {
		t.Errorf("metadata of the same epoch were not taken over: replicas %v", next.Replicas())
	}
	before := &metadata.Partition{Leader: 1, LeaderEpoch: leader, PartitionEpoch: partition, Replicas: []int32{1, 3}, ISR: []int32{1}}
	if next := answered.Next(before, 1, n.view()); next != answered {
		t.Error("metadata of an earlier epoch were taken over")
	}
}
