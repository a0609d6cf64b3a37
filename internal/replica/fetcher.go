package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// FollowOptions say how followers fetch. (replica.fetch.* of the configuration.)
type FollowOptions struct {
	// Leader makes the connection of one of this broker's fetchers to a leader. Without it nothing is followed.
	Leader func(broker int32, fetcher int) Leader
	// BrokerEpoch names this life of the broker.
	BrokerEpoch func() int64

	FetchersPerLeader int           // num.replica.fetchers
	MaxWait           time.Duration // replica.fetch.wait.max.ms
	MinBytes          int           // replica.fetch.min.bytes
	MaxBytes          int           // replica.fetch.response.max.bytes
	PartitionMaxBytes int           // replica.fetch.max.bytes
	Backoff           time.Duration // replica.fetch.backoff.ms
}

// A fetcher fetches from one leader what some partitions of this broker lack. One goroutine does, for as long as there
// are such partitions. (Kafka class ReplicaFetcherThread.)
type fetcher struct {
	m      *Manager
	key    fetcherKey
	leader Leader
	life   context.Context
	end    context.CancelFunc
	wake   chan struct{} // capacity 1: changes are there

	// mu guards what the metadata changed since the goroutine looked.
	mu struct {
		sync.Mutex
		changes []followChange
	}

	// What follows is the goroutine's.
	followed map[PartitionID]*followedPartition
	session  clientSession
	query    LeaderFetch
	asks     []AskedPartition
	told     string // the error of the leader that was logged last
}

// A followChange says that a partition is followed in a leader epoch, or not any more.
type followChange struct {
	p     *Partition
	epoch int32
	ends  bool
}

// A followedPartition is a partition that a fetcher fetches.
type followedPartition struct {
	followed
	p    *Partition
	told string // the error that was logged last
}

func newFetcher(m *Manager, key fetcherKey) *fetcher {
	f := &fetcher{m: m, key: key, leader: m.o.Follow.Leader(key.leader, key.index), wake: make(chan struct{}, 1), followed: map[PartitionID]*followedPartition{}}
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// change tells the goroutine.
func (f *fetcher) change(c followChange) {
	f.mu.Lock()
	f.mu.changes = append(f.mu.changes, c)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fetcher) run() {
	defer f.leader.Close()
	for f.life.Err() == nil {
		f.takeChanges()
		f.begin()
		f.fetch()
	}
}

func (f *fetcher) takeChanges() {
	f.mu.Lock()
	changes := f.mu.changes
	f.mu.changes = nil
	f.mu.Unlock()
	for _, c := range changes {
		id := c.p.PartitionID()
		if _, ok := f.session.known[id]; ok { // what was answered last may have come to nothing, and nobody would say it again
			f.session.failed()
		}
		if c.ends {
			delete(f.followed, id)
		} else {
			f.followed[id] = &followedPartition{followed: followed{LeaderEpoch: c.epoch}, p: c.p}
		}
	}
}

// begin finds out where partitions begin that are new, and cuts those of which too little is known.
func (f *fetcher) begin() {
	now := time.Now().UnixMilli()
	for _, w := range f.followed {
		if w.phase > phaseTruncating || now < w.WaitUntilMs {
			continue
		}
		err := w.p.follow(&w.followed)
		if err == nil && w.phase == phaseTruncating {
			err = w.p.truncateToHighWatermark(&w.followed)
		}
		f.note(w, err)
	}
}

// fetch asks the leader once, or waits until there is something to ask for.
func (f *fetcher) fetch() {
	now := time.Now()
	asks, next := f.list(now.UnixMilli())
	if len(asks) == 0 {
		f.sleep(next - now.UnixMilli())
		return
	}
	f.prepare(asks)
	asked := f.session.known // whatever becomes of the session
	a, err := f.leader.Fetch(f.life, &f.query)
	switch {
	case err != nil:
		f.session.failed()
		f.pause(err)
		return
	case !f.session.answered(a):
		if f.query.SessionEpoch == InitialEpoch {
			f.pause(a.Err)
		}
		return
	}
	f.told = ""
	for i := range a.Partitions {
		f.take(&a.Partitions[i], asked)
	}
}

// list returns what to ask for, and when there is more if that is nothing.
func (f *fetcher) list(nowMs int64) (asks []AskedPartition, nextMs int64) {
	asks, nextMs = f.asks[:0], nowMs+time.Hour.Milliseconds()
	for id, w := range f.followed {
		switch {
		case w.asks(nowMs):
			asks = append(asks, AskedPartition{PartitionID: id, Offset: w.Offset, LogStart: w.p.logStart(), LeaderEpoch: w.LeaderEpoch, LastEpoch: w.LastEpoch})
		case w.phase != phaseFailed:
			nextMs = min(nextMs, w.WaitUntilMs)
		}
	}
	f.asks = asks
	return asks, nextMs
}

func (f *fetcher) prepare(asks []AskedPartition) {
	o, q := &f.m.o.Follow, &f.query
	q.Follower = Follower{ID: f.m.o.NodeID, BrokerEpoch: o.BrokerEpoch()}
	q.MaxWait, q.MinBytes, q.MaxBytes, q.PartitionMax = o.MaxWait, o.MinBytes, o.MaxBytes, o.PartitionMaxBytes
	f.session.next(asks, q)
}

// sleep waits for changes, or for a time to come.
func (f *fetcher) sleep(ms int64) {
	timer := time.NewTimer(time.Duration(max(ms, 1)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-f.life.Done():
	}
}

// pause waits after a fetch that came to nothing, for replica.fetch.backoff.ms.
func (f *fetcher) pause(err error) {
	if f.life.Err() != nil {
		return
	}
	if err != nil && err.Error() != f.told {
		f.told = err.Error()
		f.m.o.Logger.Warn("cannot fetch from a leader", "leader", f.key.leader, "fetcher", f.key.index, "err", err)
	}
	timer := time.NewTimer(f.m.o.Follow.Backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.life.Done():
	}
}

// take does what the answer about one partition asks for.
func (f *fetcher) take(a *AnsweredPartition, asked map[PartitionID]AskedPartition) {
	w := f.followed[a.PartitionID]
	ask, ok := asked[a.PartitionID]
	if w == nil || !ok {
		return
	}
	switch w.answered(ask.LeaderEpoch, ask.Offset, a.Err, a.Diverging != nil) {
	case stepAppend:
		f.note(w, w.p.take(&w.followed, a))
	case stepTruncate:
		f.session.failed() // the leader has told its watermarks, and they were of no use yet
		f.note(w, w.p.truncateDiverging(&w.followed, *a.Diverging))
	case stepRestart:
		f.note(w, f.restart(w))
	case stepWait:
		f.note(w, a.Err)
	case stepFail:
		w.fail()
	}
}

func (f *fetcher) restart(w *followedPartition) error {
	id := w.p.ID()
	start, end, err := f.leader.LogOffsets(f.life, id.Topic, id.Partition, w.LeaderEpoch)
	if err != nil {
		return err
	}
	if start < 0 || end < start {
		return commitlog.ErrOffsetOutOfRange
	}
	return w.p.restart(&w.followed, start, end)
}

// note takes over how a step went: after one that failed the partition begins anew, later.
func (f *fetcher) note(w *followedPartition, err error) {
	if err == nil {
		w.told = ""
		return
	}
	w.beginAnew(time.Now().Add(f.m.o.Follow.Backoff).UnixMilli())
	if text := err.Error(); text != w.told && f.life.Err() == nil && !errors.Is(err, errNotFollowing) {
		w.told = text
		f.m.o.Logger.Warn("partition does not follow", "partition", w.p.ID(), "leader", f.key.leader, "leader epoch", w.LeaderEpoch, "err", err)
	}
}
