package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/purgatory"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A Partition is our replica of a partition: the shell around a PartitionState and a log. All methods may be called
// concurrently.
type Partition struct {
	topic *Topic
	index int32
	// log is nil when its directory was offline when the partition came. A move to another
	// directory replaces it, with mu held for writing.
	log atomic.Pointer[commitlog.Log]
	// late is not nil where the log could not be created for what may pass. It is set before
	// anybody sees the partition.
	late *lateLog

	// follows is held across each step of a follower, such as a truncation, and while the state changes: no log is cut that
	// has become the leader's. It comes before all other mutexes.
	follows sync.Mutex
	// fetcher fetches for the partition while it follows, in the leader epoch followedIn. Both are guarded by fetchers.mu.
	fetcher    *runningFetcher
	followedIn int32

	// mu is held for reading across an append and while a follower's fetch is taken in, and for writing while state
	// changes but for a pending ISR. It comes before the log's mutex.
	mu    sync.RWMutex
	state atomic.Pointer[PartitionState]

	// followers guards what state knows of the followers, and a pending ISR. It comes after mu and before the log's
	// mutex.
	followers sync.Mutex

	fetches  purgatory.List // woken by what readers can see more of
	produces purgatory.List // woken by the high watermark, and by the low one
}

// ID returns the partition's topic and number.
func (p *Partition) ID() topic.Partition { return p.topic.partition(p.index) }

// PartitionID returns the partition's name by the id of its topic.
func (p *Partition) PartitionID() PartitionID { return PartitionID{p.topic.ID, p.index} }

// logStart returns where the log begins, -1 without a log.
func (p *Partition) logStart() int64 {
	if log := p.log.Load(); log != nil {
		return log.Offsets().LogStart
	}
	return -1
}

// TopicID returns the id of the partition's topic.
func (p *Partition) TopicID() uuid.UUID { return p.topic.ID }

// Stats returns what is counted for the partition's topic.
func (p *Partition) Stats() *TopicStats { return &p.topic.Stats }

// State returns the present state.
func (p *Partition) State() *PartitionState { return p.state.Load() }

// Log returns the partition's log, or an error that matches ErrOffline or
// commitlog.ErrStorage.
func (p *Partition) Log() (*commitlog.Log, error) {
	log := p.log.Load()
	if log == nil && p.late != nil && !p.state.Load().Removed {
		log = p.createLate(time.Now())
	}
	if log == nil {
		return nil, ErrOffline
	}
	if err := log.Failed(); err != nil {
		return nil, err
	}
	return log, nil
}

// Waiting returns how many fetches wait for the partition.
func (p *Partition) Waiting() int { return p.fetches.Len() }

// hosted returns the log and the state if this broker has a replica that can be used.
func (p *Partition) hosted() (*commitlog.Log, *PartitionState, error) {
	s := p.state.Load()
	if s.Removed {
		return nil, s, ErrUnknownTopicOrPartition
	}
	log, err := p.Log()
	return log, s, err
}

// leading is hosted if this broker leads, in the epoch that a client knows.
func (p *Partition) leading(epoch int32) (*commitlog.Log, *PartitionState, error) {
	log, s, err := p.hosted()
	if err == nil {
		err = s.CheckLeader(epoch)
	}
	return log, s, err
}

// view is what s decides by now, if o is what the log looks like.
func (p *Partition) view(s *PartitionState, log *commitlog.Log, o *commitlog.Offsets) View {
	if s.leadership != nil {
		return p.wideView(log, o)
	}
	return View{MinISR: log.MinInsyncReplicas(), LogStart: o.LogStart, HW: o.HighWatermark, End: o.End}
}

// wideView is what a state with followers decides by.
func (p *Partition) wideView(log *commitlog.Log, o *commitlog.Offsets) View {
	m := p.topic.manager
	return View{
		NowMs: time.Now().UnixMilli(), LagTimeMaxMs: m.o.LagTimeMaxMs, Brokers: m.Image(),
		MinISR: log.MinInsyncReplicas(), LogStart: o.LogStart, HW: o.HighWatermark, End: o.End,
	}
}

// AppendOptions say who appends and what for.
type AppendOptions struct {
	Origin             record.Origin
	TransactionVersion int16 // of a coordinator's marker
	AllInSync          bool  // acks=all: refuse when too few replicas are in sync
	LeaderEpoch        int32 // refuse in any other; NoEpoch: whatever it is
}

// Append appends a record set as leader. The set is changed in place and is the caller's
// again on return.
func (p *Partition) Append(set []byte, o AppendOptions) (commitlog.AppendInfo, error) {
	info, more, err := p.append(set, o)
	if err == nil && !info.Duplicate {
		stats := p.Stats()
		stats.Add(MessagesIn, info.Count)
		stats.Add(BytesIn, len(set))
	}
	switch {
	case err != nil || !more:
	case o.Origin == record.Client:
		p.fetches.Wake(int64(len(set)))
		p.produces.WakeAll()
	default: // a marker, perhaps: then it frees more bytes than its own
		p.wakeAll()
	}
	return info, err
}

// append reports whether somebody may see more than before.
func (p *Partition) append(set []byte, o AppendOptions) (info commitlog.AppendInfo, more bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, s, err := p.hosted()
	if err != nil {
		return info, false, err
	}
	minISR := log.MinInsyncReplicas()
	if err := s.CheckAppend(o.LeaderEpoch, o.AllInSync, minISR); err != nil {
		return info, false, err
	}
	ao := commitlog.AppendOptions{Origin: o.Origin, TransactionVersion: o.TransactionVersion, Commits: s.Commits(minISR)}
	info, err = log.AppendAsLeader(set, s.LeaderEpoch, ao)
	switch {
	case err != nil:
		return info, false, err
	case s.leadership != nil:
		p.advance(log, s)
		return info, true, nil // to followers, who see the log end
	}
	return info, ao.Commits && !info.Duplicate, nil
}

// IsCold reports whether the next append waits for the disk: it is the first one in an epoch of the
// leader, or of all.
func (p *Partition) IsCold() bool {
	log, s := p.log.Load(), p.state.Load()
	return log != nil && s.Leading && log.IsCold(s.LeaderEpoch)
}

// advance moves the high watermark as far as s lets it, and reports whether it moved.
func (p *Partition) advance(log *commitlog.Log, s *PartitionState) bool {
	if s.leadership != nil {
		p.followers.Lock()
		defer p.followers.Unlock()
		s = p.state.Load() // whose ISR may be about to grow
	}
	v := p.view(s, log, log.Offsets())
	hw, moves := s.HighWatermark(&v)
	return moves && log.IncrementHighWatermark(hw)
}

func (p *Partition) wakeAll() {
	p.fetches.WakeAll()
	p.produces.WakeAll()
}

// Committed reports whether the records below offset are on all in-sync replicas. With
// done false it is too early to tell.
func (p *Partition) Committed(offset int64) (done bool, err error) {
	log, s, err := p.hosted()
	if err != nil {
		return true, err
	}
	v := p.view(s, log, log.Offsets())
	return s.CheckCommitted(offset, &v)
}

// AwaitCommitted waits until Committed is done, until the deadline or the end of ctx; the
// last two are ErrTimedOut.
func (p *Partition) AwaitCommitted(ctx context.Context, offset int64, deadline time.Time) error {
	return p.await(ctx, deadline, func() (bool, error) { return p.Committed(offset) })
}

// await waits until done says so. It looks again whenever a watermark moves or the state changes.
func (p *Partition) await(ctx context.Context, deadline time.Time, done func() (bool, error)) error {
	if ok, err := done(); ok {
		return err
	}
	op := purgatory.New()
	op.Start(1)
	op.Watch(&p.produces)
	defer op.Stop()
	for {
		if ok, err := done(); ok {
			return err
		}
		if op.Wait(ctx, deadline) != purgatory.Signalled {
			return ErrTimedOut
		}
	}
}

// learn takes over new metadata, and reports whether they change anything. In an epoch that
// is not later than ours they do not.
func (p *Partition) learn(mp *metadata.Partition, local int32) bool {
	return p.change(func(s *PartitionState) *PartitionState {
		var v View
		if log := p.log.Load(); log != nil {
			v = p.wideView(log, log.Offsets())
		}
		return s.Next(mp, local, &v)
	})
}

// end says that this broker has no replica any more.
func (p *Partition) end() {
	p.change(func(s *PartitionState) *PartitionState {
		next := *s
		next.Leading, next.Removed, next.Pending, next.leadership = false, true, nil, nil
		return &next
	})
}

// change replaces the state while nothing is appended, and reports whether it is another one.
func (p *Partition) change(next func(*PartitionState) *PartitionState) bool {
	p.follows.Lock()
	defer p.follows.Unlock()
	p.mu.Lock()
	old := p.state.Load()
	s := next(old)
	if s == old {
		p.mu.Unlock()
		return false
	}
	p.enter(p.log.Load(), s)
	p.state.Store(s)
	if log, s, err := p.leading(NoEpoch); err == nil {
		p.advance(log, s)
	}
	p.mu.Unlock()
	p.wakeAll()
	return true
}

// enter tells the log in which epoch this broker leads, before anybody asks it as the leader.
func (p *Partition) enter(log *commitlog.Log, s *PartitionState) {
	if log != nil && s != nil && s.Leading {
		log.EnterEpoch(s.LeaderEpoch)
	}
}

// ReplaceLog runs open while nothing is appended, and makes the log that it returns, if
// any, the partition's. Reads of the old one that have begun go on.
func (p *Partition) ReplaceLog(open func() (*commitlog.Log, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := open()
	if log != nil {
		p.enter(log, p.state.Load())
		p.log.Store(log)
	}
	return err
}
