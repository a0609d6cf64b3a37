package replica

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// register registers brokers, unfenced. It returns the last one's epoch.
func (b *bench) register(ids ...int32) (epoch int64) {
	b.t.Helper()
	for _, id := range ids {
		r := metadata.NewRegisterBrokerRecord()
		r.BrokerID, r.BrokerEpoch, r.Fenced = id, b.img.Offset+1, false
		epoch = r.BrokerEpoch
		b.apply(r)
	}
	return epoch
}

// led is a partition that this broker leads for three replicas, and what it asks of the controller.
func led(t *testing.T, isr ...int32) (*bench, *Partition, *[]*ISRChange) {
	t.Helper()
	asked := &[]*ISRChange{}
	b := newBench(t, nil)
	b.alter = func(_ *Partition, c *ISRChange) { *asked = append(*asked, c) }
	b.register(testNode, 2, 3)
	b.create("t", 1, testNode, []int32{testNode, 2, 3}, isr)
	return b, b.partition("t"), asked
}

// follow is a fetch of a follower, in the leader epoch 5.
func (b *bench) follow(id int32, offset int64, change func(*FetchRequest, *FetchPartition)) *FetchPartition {
	b.t.Helper()
	f := &FetchPartition{Name: []byte("t"), Offset: offset, LeaderEpoch: 5, LastFetchedEpoch: -1, MaxBytes: 1000}
	req := &FetchRequest{Follower: &Follower{ID: id, BrokerEpoch: NoBrokerEpoch}, Isolation: commitlog.ReadLogEnd, MaxBytes: 1000}
	if change != nil {
		change(req, f)
	}
	if err := b.Fetch(b.t.Context(), req, []*FetchPartition{f}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { f.Result.Read.Slice.Release() })
	return f
}

func mustAppend(t *testing.T, p *Partition, values ...string) {
	t.Helper()
	for _, v := range values {
		if _, err := p.Append(set(t, v), client); err != nil {
			t.Fatal(err)
		}
	}
}

func wantHighWatermark(t *testing.T, p *Partition, want int64) {
	t.Helper()
	if got := p.log.Load().Offsets().HighWatermark; got != want {
		t.Errorf("the high watermark is %d, want %d", got, want)
	}
}

func TestFollowersMoveTheHighWatermark(t *testing.T) {
	b, p, _ := led(t, testNode, 2, 3)
	mustAppend(t, p, "a", "b")
	f := b.follow(2, 0, nil)
	if f.Result.Err != nil || f.Result.Read.Slice.Size() == 0 {
		t.Fatalf("the follower got %+v, want what is not committed", f.Result)
	}
	b.follow(2, 2, nil)
	b.follow(3, 1, nil)
	wantHighWatermark(t, p, 1)
	done := make(chan error)
	go func() { done <- p.AwaitCommitted(t.Context(), 2, time.Now().Add(time.Minute)) }()
	for p.produces.Len() == 0 {
		runtime.Gosched()
	}
	b.follow(3, 2, nil)
	wantError(t, <-done, nil)
	wantHighWatermark(t, p, 2)
}

// A fetch that is refused, or told where its log differs, says nothing about where the follower is.
func TestFetchesThatDoNotCount(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	mustAppend(t, p, "a", "b")
	b.follow(2, 0, nil)
	epoch := b.register(2)
	f := func(id int32, offset int64, want error, change func(*FetchRequest, *FetchPartition)) {
		t.Helper()
		got := b.follow(id, offset, change)
		wantError(t, got.Result.Err, want)
		if got.Result.Read.Slice.Size() > 0 {
			t.Error("there are records with an error")
		}
		wantHighWatermark(t, p, 0)
	}
	f(9, 2, ErrUnknownLeaderEpoch, nil)
	f(testNode, 2, ErrUnknownLeaderEpoch, nil)
	f(9, 2, ErrNotLeaderOrFollower, func(_ *FetchRequest, f *FetchPartition) { f.LeaderEpoch = NoEpoch })
	f(2, 2, ErrFencedLeaderEpoch, func(_ *FetchRequest, f *FetchPartition) { f.LeaderEpoch = 4 })
	f(2, 2, ErrUnknownLeaderEpoch, func(_ *FetchRequest, f *FetchPartition) { f.LeaderEpoch = 6 })
	f(2, 1, ErrNotLeaderOrFollower, func(r *FetchRequest, _ *FetchPartition) { r.Follower.BrokerEpoch = epoch - 1 })
	f(2, 3, commitlog.ErrOffsetOutOfRange, nil)
	f(2, 3, nil, func(_ *FetchRequest, f *FetchPartition) { f.LastFetchedEpoch = 5 })
	f(2, 2, commitlog.ErrOffsetOutOfRange, func(_ *FetchRequest, f *FetchPartition) { f.LastFetchedEpoch = 6 })
	if got := b.follow(2, 2, func(r *FetchRequest, _ *FetchPartition) { r.Follower.BrokerEpoch = epoch }); got.Result.Err != nil {
		t.Error(got.Result.Err)
	}
	wantHighWatermark(t, p, 2)
}

// A follower that waits gets what is appended, before it is committed; where it is counts once, when it asked.
func TestFollowerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p, _ := led(t, testNode, 2, 3)
		before := time.Now()
		got := make(chan *FetchPartition)
		go func() {
			got <- b.follow(2, 0, func(r *FetchRequest, _ *FetchPartition) { r.MinBytes, r.MaxWait = 1, time.Minute })
		}()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		mustAppend(t, p, "a")
		if f := <-got; f.Result.Read.Slice.Size() == 0 {
			t.Error("nothing came")
		}
		if r := p.State().follower(2); r.fetchMs != before.UnixMilli() || r.CaughtUpMs != before.UnixMilli() {
			t.Errorf("the follower was heard of at %d, caught up at %d, want %d", r.fetchMs, r.CaughtUpMs, before.UnixMilli())
		}
		wantHighWatermark(t, p, 0)
	})
}

func TestISRExpandsAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p, asked := led(t, testNode, 2)
		mustAppend(t, p, "a")
		b.follow(2, 1, nil)
		b.follow(3, 1, nil)
		b.follow(3, 1, nil)
		if len(*asked) != 1 || fmt.Sprint((*asked)[0].ISR) != "[1 2 3]" {
			t.Fatalf("asked for %+v, want one addition", *asked)
		}
		mustAppend(t, p, "b")
		b.follow(2, 2, nil)
		wantHighWatermark(t, p, 1) // 3 counts already
		c := (*asked)[0]
		if !p.Answered(c, &ISRAnswer{Err: errors.New("no answer")}) {
			t.Error("an answer that says nothing is not asked for again")
		}
		if p.Answered(c, &ISRAnswer{ISR: c.ISR, LeaderEpoch: 5, PartitionEpoch: 1}) {
			t.Error("what was granted is asked for again")
		}
		if s := p.State(); fmt.Sprint(s.ISR, s.PartitionEpoch) != "[1 2 3] 1" || s.Pending != nil {
			t.Errorf("got %+v", s)
		}
		time.Sleep(40 * time.Second)
		b.ShrinkISRs()
		b.ShrinkISRs()
		if len(*asked) != 2 || fmt.Sprint((*asked)[1].ISR) != "[1 2]" {
			t.Fatalf("asked for %+v, want one removal", *asked)
		}
		wantHighWatermark(t, p, 1)
		p.Answered((*asked)[1], &ISRAnswer{ISR: []int32{testNode, 2}, LeaderEpoch: 5, PartitionEpoch: 2})
		wantHighWatermark(t, p, 2)
	})
}

// Without somebody to ask the ISR is what the metadata says.
func TestISRWithoutController(t *testing.T) {
	b, p, _ := led(t, testNode)
	b.alter = nil
	mustAppend(t, p, "a")
	b.follow(2, 1, nil)
	b.ShrinkISRs()
	if s := p.State(); s.Pending != nil {
		t.Errorf("%+v is asked for", s.Pending)
	}
	wantHighWatermark(t, p, 1)
}

func TestDeleteRecordsWaits(t *testing.T) {
	b, p, _ := led(t, testNode, 2, 3)
	mustAppend(t, p, "a", "b", "c")
	for _, id := range []int32{2, 3} {
		b.follow(id, 3, nil)
	}
	if low, err := p.DeleteRecords(t.Context(), 2, time.Now()); low != 0 || !errors.Is(err, ErrTimedOut) {
		t.Errorf("got %d, %v, want 0 and a timeout", low, err)
	}
	f := func(want error, change func()) {
		t.Helper()
		done := make(chan error)
		go func() {
			_, err := p.DeleteRecords(t.Context(), HighWatermark, time.Now().Add(time.Minute))
			done <- err
		}()
		for p.produces.Len() == 0 {
			runtime.Gosched()
		}
		if n := b.DelayedProduces(); n != 0 {
			t.Errorf("%d produces wait, want none", n)
		}
		change()
		wantError(t, <-done, want)
	}
	deleted := func(_ *FetchRequest, f *FetchPartition) { f.LogStart = 3 }
	f(nil, func() {
		b.follow(2, 3, deleted)
		b.follow(3, 3, deleted)
	})
	mustAppend(t, p, "d")
	b.follow(2, 4, deleted)
	b.follow(3, 4, deleted)
	f(ErrNotLeaderOrFollower, func() { b.lead(1, 2, testNode, 2) })
}

// A new leader does not know which offset is the latest until its high watermark has reached its epoch's start.
func TestLookupOfANewLeader(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	mustAppend(t, p, "a", "b")
	b.lead(1, testNode, testNode, 2)
	f := func(q Lookup, offset int64, want error) {
		t.Helper()
		q.LeaderEpoch = NoEpoch
		got, err := p.Lookup(q)
		wantError(t, err, want)
		if err == nil && got.Offset != offset {
			t.Errorf("%+v: got offset %d, want %d", q, got.Offset, offset)
		}
	}
	for _, i := range []commitlog.Isolation{commitlog.ReadUncommitted, commitlog.ReadCommitted} {
		f(Lookup{Timestamp: commitlog.Latest, Isolation: i}, 0, ErrOffsetNotAvailable)
		f(Lookup{Timestamp: 1, Isolation: i}, 0, ErrOffsetNotAvailable)
		f(Lookup{Timestamp: commitlog.MaxTimestamp, Isolation: i}, 0, ErrOffsetNotAvailable)
		f(Lookup{Timestamp: commitlog.Earliest, Isolation: i}, 0, nil)
	}
	f(Lookup{Timestamp: commitlog.Latest, Isolation: commitlog.ReadLogEnd}, 2, nil)
	b.follow(2, 2, func(_ *FetchRequest, f *FetchPartition) { f.LeaderEpoch = 6 })
	f(Lookup{Timestamp: commitlog.Latest}, 2, nil)
	f(Lookup{Timestamp: 1}, 0, nil)
}

// A consumer that may reads from a follower, up to the high watermark that that has.
func TestFetchFromFollower(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	mustAppend(t, p, "a", "b")
	b.follow(2, 1, nil)
	b.lead(1, 2, testNode, 2)
	f := &FetchPartition{Name: []byte("t"), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}
	fetch := func(any bool) error {
		t.Helper()
		if err := b.Fetch(t.Context(), &FetchRequest{MaxBytes: 1000, AnyReplica: any}, []*FetchPartition{f}); err != nil {
			t.Fatal(err)
		}
		return f.Result.Err
	}
	wantError(t, fetch(false), ErrNotLeaderOrFollower)
	wantError(t, fetch(true), nil)
	one := f.Result.Read.Slice
	if one.Size() == 0 || one.Size() > len(set(t, "a")) || f.Result.Read.Offsets.HighWatermark != 1 {
		t.Errorf("got %d bytes, high watermark %d, want the record that is committed", one.Size(), f.Result.Read.Offsets.HighWatermark)
	}
	one.Release()
	f.Result.Read.Slice = segment.Slice{}
	f.LeaderEpoch = 5
	wantError(t, fetch(true), ErrFencedLeaderEpoch)
}

// A question to any replica is answered by a follower, one to the leader is not.
func TestLookupAtFollower(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	mustAppend(t, p, "a", "b")
	b.lead(1, 2, testNode, 2)
	for any, want := range map[bool]error{true: nil, false: ErrNotLeaderOrFollower} {
		q := Lookup{Timestamp: commitlog.Latest, Isolation: commitlog.ReadLogEnd, LeaderEpoch: NoEpoch, AnyReplica: any}
		got, err := p.Lookup(q)
		wantError(t, err, want)
		if err == nil && (got.Offset != 2 || got.LeaderEpoch != 5) {
			t.Errorf("got %+v, want offset 2 in the epoch of its records", got)
		}
		_, err = p.SegmentOffsets(q, 1)
		wantError(t, err, want)
		q.LeaderEpoch = 5
		_, err = p.Lookup(q)
		wantError(t, err, ErrFencedLeaderEpoch)
	}
}

func TestIsCold(t *testing.T) {
	b, p, _ := led(t, testNode, 2)
	f := func(want bool) {
		t.Helper()
		if got := p.IsCold(); got != want {
			t.Errorf("cold %t, want %t", got, want)
		}
	}
	f(true)
	mustAppend(t, p, "a")
	f(false)
	b.lead(1, 2, testNode, 2)
	f(false)
	b.lead(1, testNode, testNode, 2)
	f(true)
	p.log.Store(nil)
	f(false)
}

// What a client read last is held against the log: where it is longer, or has an epoch that ours has not, it learns where.
func TestDivergence(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	b.create("t", 1, testNode, one, one) // epoch 5
	p := b.partition("t")
	mustAppend(t, p, "a", "b", "c")
	b.lead(1, 2, one...)
	b.lead(1, testNode, one...) // epoch 7
	mustAppend(t, p, "d")
	f := func(offset int64, last int32, err error, epoch int32, end int64) {
		t.Helper()
		f := &FetchPartition{Name: []byte("t"), Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: last, MaxBytes: 1000}
		if err := b.Fetch(t.Context(), &FetchRequest{MaxBytes: 1000}, []*FetchPartition{f}); err != nil {
			t.Fatal(err)
		}
		r := &f.Result
		defer r.Read.Slice.Release()
		wantError(t, r.Err, err)
		if r.Diverging != (end >= 0) || r.Diverging && (r.DivergingEpoch != epoch || r.DivergingEnd != end || r.Read.Offsets == nil) {
			t.Errorf("at %d after epoch %d: got %+v, want epoch %d, end %d", offset, last, *r, epoch, end)
		}
	}
	f(3, 5, nil, 0, -1)
	f(4, 5, nil, 5, 3)
	f(3, 6, nil, 5, 3)
	f(4, 7, nil, 0, -1)
	f(4, 0, nil, 0, 0)
	f(0, 8, commitlog.ErrOffsetOutOfRange, 0, -1)
	if _, err := p.DeleteRecords(t.Context(), 2, time.Now()); err != nil {
		t.Fatal(err)
	}
	f(2, 5, nil, 0, -1)
	f(1, 5, commitlog.ErrOffsetOutOfRange, 0, -1)
	if e, end, err := p.EndOffset(6, 5); e != -1 || end != -1 || !errors.Is(err, ErrFencedLeaderEpoch) {
		t.Errorf("EndOffset in an old epoch: %d, %d, %v", e, end, err)
	}
}

// A fetch that waits ends when the leadership goes, however little there is.
func TestFetchEndsWithLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := led(t, testNode)
		f := &FetchPartition{Name: []byte("t"), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}
		start, done := time.Now(), make(chan error)
		go func() {
			done <- b.Fetch(t.Context(), &FetchRequest{MinBytes: 1, MaxBytes: 1000, MaxWait: time.Minute}, []*FetchPartition{f})
		}()
		synctest.Wait()
		b.lead(1, 2, 2)
		wantError(t, <-done, nil)
		wantError(t, f.Result.Err, ErrNotLeaderOrFollower)
		if took := time.Since(start); took != 0 {
			t.Errorf("it waited %v", took)
		}
	})
}

// A topic that a session knows by its id was deleted, perhaps with another one under its name since.
func TestFetchOfADeletedTopicID(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	b.create("t", 1, testNode, one, one)
	f := &FetchPartition{TopicID: topicID(1), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1}
	fetch := func(want error) {
		t.Helper()
		if err := b.Fetch(t.Context(), &FetchRequest{MaxBytes: 1000}, []*FetchPartition{f}); err != nil {
			t.Fatal(err)
		}
		wantError(t, f.Result.Err, want)
	}
	fetch(nil)
	gone := metadata.NewRemoveTopicRecord()
	gone.TopicID = topicID(1)
	b.apply(gone)
	fetch(ErrUnknownTopicOrPartition)
	b.create("t", 2, testNode, one, one)
	fetch(ErrInconsistentTopicID)
}
