package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/purgatory"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/record"
)

// A Partition is our replica of a partition. All methods may be called concurrently.
type Partition struct {
	id      topic.Partition
	topicID uuid.UUID
	stats   *TopicStats
	// log is nil when its directory was offline when the partition came. A move to another
	// directory replaces it, with mu held for writing.
	log atomic.Pointer[commitlog.Log]
	// late is not nil where the log could not be created for what may pass. It is set before
	// anybody sees the partition.
	late *lateLog

	// mu is held for reading across an append, and for writing while role changes. It comes
	// before the log's mutex.
	mu   sync.RWMutex
	role atomic.Pointer[Role]

	fetches  purgatory.List // woken by what readers can see more of
	produces purgatory.List // woken by the high watermark
}

// A Role is what the metadata says about a partition, from the view of this broker. It is
// immutable.
type Role struct {
	Leading        bool // this broker is the leader
	Removed        bool // this broker has no replica any more
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas, ISR  []int32
}

// ID returns the partition's topic and number.
func (p *Partition) ID() topic.Partition { return p.id }

// TopicID returns the id of the partition's topic.
func (p *Partition) TopicID() uuid.UUID { return p.topicID }

// Stats returns what is counted for the partition's topic.
func (p *Partition) Stats() *TopicStats { return p.stats }

// Role returns the present role.
func (p *Partition) Role() *Role { return p.role.Load() }

// Log returns the partition's log, or an error that matches ErrOffline or
// commitlog.ErrStorage.
func (p *Partition) Log() (*commitlog.Log, error) {
	log := p.log.Load()
	if log == nil && p.late != nil && !p.role.Load().Removed {
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

// leading returns the log and the role if this broker leads.
func (p *Partition) leading() (*commitlog.Log, *Role, error) {
	role := p.role.Load()
	if role.Removed {
		return nil, role, ErrUnknownTopicOrPartition
	}
	log, err := p.Log()
	if err == nil && !role.Leading {
		err = ErrNotLeaderOrFollower
	}
	return log, role, err
}

// NoEpoch as a client's leader epoch means that it knows none: nothing is checked.
const NoEpoch int32 = -1

// checkEpoch compares the leader epoch that a client knows with ours.
func (r *Role) checkEpoch(epoch int32) error {
	switch {
	case epoch == NoEpoch || epoch == r.LeaderEpoch:
		return nil
	case epoch < r.LeaderEpoch:
		return ErrFencedLeaderEpoch
	}
	return ErrUnknownLeaderEpoch
}

// leadingIn is leading with a check of the client's leader epoch. An epoch that differs is
// reported first: it says more.
func (p *Partition) leadingIn(epoch int32) (*commitlog.Log, *Role, error) {
	log, role, err := p.leading()
	if err == nil || errors.Is(err, ErrNotLeaderOrFollower) {
		if epochErr := role.checkEpoch(epoch); epochErr != nil {
			err = epochErr
		}
	}
	return log, role, err
}

// inSync reports whether enough replicas are in sync for acks=all.
func (r *Role) inSync(log *commitlog.Log) bool {
	if len(r.ISR) >= len(r.Replicas) {
		return true
	}
	return len(r.ISR) >= min(log.Config().MinInsyncReplicas, len(r.Replicas))
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
	info, moved, err := p.append(set, o)
	if err == nil && !info.Duplicate {
		p.stats.Add(MessagesIn, info.Count)
		p.stats.Add(BytesIn, len(set))
	}
	switch {
	case err != nil || !moved:
	case o.Origin == record.Client:
		p.fetches.Wake(int64(len(set)))
		p.produces.WakeAll()
	default: // a marker, perhaps: then it frees more bytes than its own
		p.wakeAll()
	}
	return info, err
}

func (p *Partition) append(set []byte, o AppendOptions) (info commitlog.AppendInfo, moved bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, role, err := p.leadingIn(o.LeaderEpoch)
	switch {
	case err != nil:
		return info, false, err
	case o.AllInSync && !role.inSync(log):
		return info, false, ErrNotEnoughReplicas
	}
	info, err = log.AppendAsLeader(set, role.LeaderEpoch, commitlog.AppendOptions{Origin: o.Origin, TransactionVersion: o.TransactionVersion})
	if err != nil {
		return info, false, err
	}
	return info, p.advance(log, role), nil
}

// IsCold reports whether the next append waits for the disk: it is the first one in an epoch of the
// leader, or of all.
func (p *Partition) IsCold() bool {
	log, role := p.log.Load(), p.role.Load()
	return log != nil && role.Leading && log.IsCold(role.LeaderEpoch)
}

// advance moves the high watermark as far as the in-sync replicas are, and reports whether
// it moved.
func (p *Partition) advance(log *commitlog.Log, role *Role) bool {
	if len(role.ISR) != 1 || !role.inSync(log) {
		return false // with followers, their fetches move it
	}
	return log.IncrementHighWatermark(log.Offsets().End)
}

func (p *Partition) wakeAll() {
	p.fetches.WakeAll()
	p.produces.WakeAll()
}

// Committed reports whether the records below offset are on all in-sync replicas. With
// done false it is too early to tell.
func (p *Partition) Committed(offset int64) (done bool, err error) {
	log, role, err := p.leading()
	if err != nil {
		return true, err
	}
	if log.Offsets().HighWatermark < offset {
		return false, nil
	}
	if !role.inSync(log) {
		return true, ErrNotEnoughReplicasAfterAppend
	}
	return true, nil
}

// AwaitCommitted waits until Committed is done, until the deadline or the end of ctx; the
// last two are ErrTimedOut.
func (p *Partition) AwaitCommitted(ctx context.Context, offset int64, deadline time.Time) error {
	if done, err := p.Committed(offset); done {
		return err
	}
	op := purgatory.New()
	op.Start(1)
	op.Watch(&p.produces)
	defer op.Stop()
	for {
		if done, err := p.Committed(offset); done {
			return err
		}
		if op.Wait(ctx, deadline) != purgatory.Signalled {
			return ErrTimedOut
		}
	}
}

// change gives the partition its role in a new image of the metadata, unless it has a later
// one.
func (p *Partition) change(role *Role) {
	p.mu.Lock()
	old := p.role.Load()
	if old != nil && !role.Removed && role.PartitionEpoch < old.PartitionEpoch {
		p.mu.Unlock()
		return
	}
	p.enter(p.log.Load(), role)
	p.role.Store(role)
	if log, _, err := p.leading(); err == nil {
		p.advance(log, role)
	}
	p.mu.Unlock()
	p.wakeAll()
}

// enter tells the log in which epoch this broker leads, before anybody asks it as the leader.
func (p *Partition) enter(log *commitlog.Log, role *Role) {
	if log != nil && role != nil && role.Leading {
		log.EnterEpoch(role.LeaderEpoch)
	}
}

// Exchange runs exchange while nothing is appended, and makes the log that it returns, if
// any, the partition's. Reads of the old one that have begun go on.
func (p *Partition) Exchange(exchange func() (*commitlog.Log, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := exchange()
	if log != nil {
		p.enter(log, p.role.Load())
		p.log.Store(log)
	}
	return err
}

// equal reports whether two roles say the same.
func (r *Role) equal(o *Role) bool {
	return o != nil && r.Leading == o.Leading && r.Removed == o.Removed && r.Leader == o.Leader &&
		r.LeaderEpoch == o.LeaderEpoch && r.PartitionEpoch == o.PartitionEpoch &&
		slices.Equal(r.Replicas, o.Replicas) && slices.Equal(r.ISR, o.ISR)
}
