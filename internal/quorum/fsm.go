package quorum

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

// A stateMachine is the Image as raft's state machine. raft calls it from one goroutine, which only
// hands over what is committed: the publisher makes images of it.
type stateMachine struct {
	now   func() time.Time
	image atomic.Pointer[metadata.Image]
	publisher

	// applied is called with the index of each batch after it was published, onBroken once with the
	// error of a batch that could not be applied.
	applied  func(index uint64)
	onBroken func(error)

	// replayed is the index up to which Read has applied the log: raft passes those again.
	replayed uint64

	// mu guards the fields below. It is not held while subscribers are called.
	mu struct {
		sync.Mutex
		transactions metadata.Transactions
		broken       error // a committed batch could not be applied
	}
}

// Apply implements raft.FSM. It returns a *publication, or nil for a batch that Read has applied.
func (m *stateMachine) Apply(log *raft.Log) any {
	if log.Index <= m.replayed {
		m.applied(log.Index)
		return nil
	}
	p := &publication{done: make(chan struct{})}
	m.hand(func() {
		if p.err = m.apply(record.Batch(log.Data)); p.err == nil {
			m.applied(log.Index)
		}
		close(p.done)
	})
	return p
}

// apply publishes the image after a batch. One that cannot be applied is the last that is tried:
// no image after it can be trusted.
func (m *stateMachine) apply(batch record.Batch) error {
	if err := m.broken(); err != nil {
		return err
	}
	img, delta, err := m.next(batch)
	if err != nil {
		err = fmt.Errorf("metadata batch at offset %d: %w", batch.BaseOffset(), err)
		m.mu.Lock()
		m.mu.broken = err
		m.mu.Unlock()
		m.onBroken(err)
		return err
	}
	if delta != nil {
		m.image.Store(img)
		m.tell(img, delta)
	}
	return nil
}

// broken returns why nothing is applied any more, or nil.
func (m *stateMachine) broken() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.broken
}

// next returns the image after a batch. There is no delta while a transaction is open: the image
// stays before it.
func (m *stateMachine) next(batch record.Batch) (*metadata.Image, *metadata.Delta, error) {
	all, err := decodeData(batch)
	if err != nil {
		return nil, nil, err
	}
	records, open, err := m.resolveTransaction(all)
	if err != nil || open && len(records) == 0 {
		return nil, nil, err
	}
	return m.image.Load().Apply(records, batch.LastOffset(), batch.LeaderEpoch())
}

// resolveTransaction returns those of a batch's records that happen with it, and those that waited.
func (m *stateMachine) resolveTransaction(all []metadata.Record) (records []metadata.Record, open bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if records, err = m.mu.transactions.Next(all); err != nil {
		return nil, false, err
	}
	return records, m.mu.transactions.Open(), nil
}

// subscribe adds a subscriber and brings it up to date.
func (m *stateMachine) subscribe(f func(*metadata.Image, *metadata.Delta)) {
	m.hand(func() {
		img := m.image.Load()
		f(img, metadata.DeltaOf(img))
		m.subscribers = append(m.subscribers, f)
	})
	m.flush()
}

// load makes a checkpoint the state.
func (m *stateMachine) load(c checkpointData, id snapshotID) error {
	img, err := m.imageOf(c, id)
	if err == nil {
		m.replace(img)
	}
	return err
}

// imageOf returns the image that a checkpoint holds.
func (m *stateMachine) imageOf(c checkpointData, id snapshotID) (*metadata.Image, error) {
	img, _, err := metadata.NewImage(m.image.Load().ClusterID).Apply(c.records, id.endOffset-1, id.epoch)
	return img, err
}

// replace makes an image the state, between two transactions.
func (m *stateMachine) replace(img *metadata.Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.image.Store(img)
	m.mu.transactions = metadata.Transactions{}
}

// transactionOpen reports whether the log ends inside a transaction.
func (m *stateMachine) transactionOpen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.transactions.Open()
}

// Snapshot implements raft.FSM. The state is the one after all that Apply was called with, so that it
// is taken when the publisher has come that far.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	s := &stateSnapshot{taken: make(chan struct{})}
	m.hand(func() {
		s.take(m)
		close(s.taken)
	})
	return s, nil
}

// A stateSnapshot is an Image on its way into a checkpoint.
type stateSnapshot struct {
	taken chan struct{} // closed when the fields below are set

	image *metadata.Image
	now   int64
	err   error
}

func (s *stateSnapshot) take(m *stateMachine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.err = m.mu.broken; s.err == nil && m.mu.transactions.Open() {
		s.err = errors.New("a metadata transaction is open")
	}
	s.image, s.now = m.image.Load(), m.now().UnixMilli()
}

// Persist implements raft.FSMSnapshot.
func (s *stateSnapshot) Persist(sink raft.SnapshotSink) error {
	<-s.taken // the publisher ends after raft
	if s.err != nil {
		return errors.Join(s.err, sink.Cancel())
	}
	level := s.image.Feature(metadata.MetadataVersion)
	c, err := sink.(*snapshotSink).take()
	if err == nil {
		err = writeCheckpoint(sink, c, s.image.Records(), level, c.epoch, s.now)
	}
	if err != nil {
		return fmt.Errorf("%w (cancelled: %v)", err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *stateSnapshot) Release() {}
