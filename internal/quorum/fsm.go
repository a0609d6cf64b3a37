package quorum

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/record"
)

// A stateMachine is the Image as raft's state machine. raft calls it from one goroutine.
type stateMachine struct {
	now   func() time.Time
	image atomic.Pointer[metadata.Image]

	// applied is called with the index of each batch after it was published, onBroken once with the
	// error of a batch that could not be applied.
	applied  func(index uint64)
	onBroken func(error)

	// replayed is the index up to which Read has applied the log: raft passes those again.
	replayed uint64

	// mu guards the fields below, and is held while subscribers are called: they see the
	// images in order and one at a time.
	mu struct {
		sync.Mutex
		transactions metadata.Transactions
		subscribers  []func(*metadata.Image, *metadata.Delta)
		broken       error // a committed batch could not be applied
	}
}

// Apply implements raft.FSM. It returns an error, or nil.
func (m *stateMachine) Apply(log *raft.Log) any {
	if log.Index <= m.replayed {
		m.applied(log.Index)
		return nil
	}
	if err := m.apply(record.Batch(log.Data)); err != nil {
		return err
	}
	m.applied(log.Index)
	return nil
}

// apply publishes the image after a batch. One that cannot be applied is the last that is tried:
// no image after it can be trusted.
func (m *stateMachine) apply(batch record.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.broken != nil {
		return m.mu.broken
	}
	if m.mu.broken = m.applyLocked(batch); m.mu.broken != nil {
		m.onBroken(m.mu.broken)
	}
	return m.mu.broken
}

// broken returns why nothing is applied any more, or nil.
func (m *stateMachine) broken() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.broken
}

func (m *stateMachine) applyLocked(batch record.Batch) error {
	all, err := decodeData(batch)
	if err != nil {
		return fmt.Errorf("metadata batch at offset %d: %w", batch.BaseOffset(), err)
	}
	records, err := m.mu.transactions.Next(all)
	if err != nil {
		return fmt.Errorf("metadata batch at offset %d: %w", batch.BaseOffset(), err)
	}
	if m.mu.transactions.Open() && len(records) == 0 {
		return nil // the image stays before the transaction
	}
	img, delta, err := m.image.Load().Apply(records, batch.LastOffset(), batch.LeaderEpoch())
	if err != nil {
		return fmt.Errorf("metadata batch at offset %d: %w", batch.BaseOffset(), err)
	}
	m.image.Store(img)
	for _, f := range m.mu.subscribers {
		f(img, delta)
	}
	return nil
}

// subscribe adds a subscriber and brings it up to date.
func (m *stateMachine) subscribe(f func(*metadata.Image, *metadata.Delta)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	img := m.image.Load()
	f(img, metadata.DeltaOf(img))
	m.mu.subscribers = append(m.mu.subscribers, f)
}

// load makes a checkpoint the state.
func (m *stateMachine) load(c checkpointData, id snapshotID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loadLocked(c, id)
}

func (m *stateMachine) loadLocked(c checkpointData, id snapshotID) error {
	img, _, err := metadata.NewImage(m.image.Load().ClusterID).Apply(c.records, id.endOffset-1, id.epoch)
	if err != nil {
		return err
	}
	m.image.Store(img)
	m.mu.transactions = metadata.Transactions{}
	return nil
}

// transactionOpen reports whether the log ends inside a transaction.
func (m *stateMachine) transactionOpen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.transactions.Open()
}

// Snapshot implements raft.FSM.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.broken != nil:
		return nil, m.mu.broken
	case m.mu.transactions.Open():
		return nil, fmt.Errorf("a metadata transaction is open")
	}
	return &stateSnapshot{image: m.image.Load(), now: m.now().UnixMilli()}, nil
}

// A stateSnapshot is an Image on its way into a checkpoint.
type stateSnapshot struct {
	image *metadata.Image
	now   int64
}

// Persist implements raft.FSMSnapshot.
func (s *stateSnapshot) Persist(sink raft.SnapshotSink) error {
	level := s.image.Feature(metadata.MetadataVersion)
	c, err := sink.(*snapshotSink).take()
	if err == nil {
		err = writeCheckpoint(sink, c, s.image.Records(), level, s.image.Epoch, s.now)
	}
	if err != nil {
		return fmt.Errorf("%w (cancelled: %v)", err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *stateSnapshot) Release() {}
