package replica

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/purgatory"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Logs is what a Manager asks of the log directories. (logdir.Manager is one.)
type Logs interface {
	// Log returns the log of a partition, or nil.
	Log(p topic.Partition) *commitlog.Log
	// Create makes the log of a partition, or returns the one that is there. isNew says that
	// it cannot be in a directory that is offline.
	Create(p topic.Partition, id uuid.UUID, c commitlog.Config, dir uuid.UUID, isNew bool) (*commitlog.Log, error)
	// Delete takes logs away; their files go later.
	Delete(p ...topic.Partition) error
	// TruncateTo makes offset the log end of a follower, TruncateFullyAndStartAt makes its log empty there. Copies
	// under way of a log lose the same.
	TruncateTo(p topic.Partition, offset int64) error
	TruncateFullyAndStartAt(p topic.Partition, offset int64) error
}

// Options are what a Manager works with.
type Options struct {
	NodeID    int32
	Logs      Logs
	LogConfig func(topicName string) commitlog.Config // settings for a log to be created
	Logger    *slog.Logger                            // nil: no log

	// OnChange, if not nil, is called after the metadata changed a partition's state, in the order of the
	// metadata, from the goroutine of Apply. Coordinators load and unload by it.
	OnChange func(p topic.Partition, s *PartitionState)

	Follow FollowOptions

	// RackAware sends consumers to a replica in their own rack (replica.selector.class).
	RackAware bool

	LagTimeMaxMs int64 // replica.lag.time.max.ms; 0: Kafka's 30 s
	// AlterPartition asks the controller for other ISRs, and returns an answer for each, or why there is none. Without it
	// the ISR is what the metadata says.
	AlterPartition func(ctx context.Context, changes []ISRRequest) ([]ISRAnswer, error)
}

// A Manager holds the partitions of this broker. All methods may be called concurrently,
// except Apply.
type Manager struct {
	o          Options
	topics     topics
	image      atomic.Pointer[metadata.Image] // of the last Apply
	operations sync.Pool                      // of *purgatory.Operation
	fetchers   fetchers
	isrs       isrSender
	alter      func(p *Partition, c *ISRChange) // isrs.send; nil: the ISR is what the metadata says
	shrinking  sync.WaitGroup

	gone           TopicStats // of topics that were deleted
	delayedFetches atomic.Int32
	delayedDeletes atomic.Int32
}

// NewManager returns a Manager without partitions.
func NewManager(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnChange == nil {
		o.OnChange = func(topic.Partition, *PartitionState) {}
	}
	if o.LagTimeMaxMs == 0 {
		o.LagTimeMaxMs = 30_000
	}
	m := &Manager{o: o}
	m.topics.init()
	m.fetchers.m = m
	m.isrs.init(m)
	if o.AlterPartition != nil {
		m.alter = m.isrs.send
	}
	m.operations.New = func() any { return purgatory.New() }
	m.image.Store(metadata.NewImage(""))
	return m
}

// Start begins to look for followers that lag, twice in replica.lag.time.max.ms.
func (m *Manager) Start() {
	if m.alter == nil {
		return
	}
	m.shrinking.Go(func() {
		ticker := time.NewTicker(time.Duration(m.o.LagTimeMaxMs) * time.Millisecond / 2)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.ShrinkISRs()
			case <-m.isrs.life.Done():
				return
			}
		}
	})
}

// Close ends what runs between replicas and waits for it. Partitions go on serving.
func (m *Manager) Close() {
	m.fetchers.close()
	m.isrs.close()
	m.shrinking.Wait()
}

// Image returns the metadata that the partitions are in accordance with, or will be in a
// moment.
func (m *Manager) Image() *metadata.Image { return m.image.Load() }

// Topic returns the topic of that name if this broker hosts a partition of it, or nil. It
// does not keep name.
func (m *Manager) Topic(name []byte) *Topic { return m.topics.find(name) }

// TopicByID is Topic for an id.
func (m *Manager) TopicByID(id uuid.UUID) *Topic { return m.topics.findID(id) }

// Partition returns a hosted partition, or the error that clients get instead.
func (m *Manager) Partition(p topic.Partition) (*Partition, error) {
	if t := m.topics.find([]byte(p.Topic)); t != nil {
		if hosted := t.Partition(p.Partition); hosted != nil {
			return hosted, nil
		}
	}
	return nil, m.Missing([]byte(p.Topic), p.Partition)
}

// Missing says why a partition is not hosted here: it is elsewhere, or unknown.
func (m *Manager) Missing(name []byte, partition int32) error {
	return missing(m.Image().Topic(string(name)), partition, ErrUnknownTopicOrPartition)
}

// MissingID is Missing for a topic id.
func (m *Manager) MissingID(id uuid.UUID, partition int32) error {
	return missing(m.Image().TopicByID(id), partition, ErrUnknownTopicID)
}

func missing(t *metadata.Topic, partition int32, unknown error) error {
	switch {
	case t == nil:
		return unknown
	case partition < 0 || int(partition) >= len(t.Partitions):
		return ErrUnknownTopicOrPartition
	}
	return ErrNotLeaderOrFollower
}

// Apply brings the partitions in accordance with new metadata. It is called with one delta
// after the other, in order. What fails concerns single partitions: they are offline, and
// the error, which names them, is for the log.
func (m *Manager) Apply(d *metadata.Delta) error {
	gone := m.deleteTopics(d.DeletedTopics)
	m.image.Store(d.After)
	errs := []error{m.deleteLogs(gone)}
	var changed []*Partition
	for _, c := range m.prepare(d.ChangedTopics) {
		some, err := m.changeTopic(c)
		changed, errs = append(changed, some...), append(errs, err)
	}
	for _, p := range changed { // when all leaders lead
		m.fetchers.follow(p)
	}
	return errors.Join(errs...)
}

func (m *Manager) deleteTopics(deleted []*metadata.Topic) (gone []*Partition) {
	for _, d := range deleted {
		t := m.topics.findID(d.ID)
		if t == nil {
			continue
		}
		m.topics.remove(t)
		m.gone.addAll(&t.Stats)
		for _, p := range *t.partitions.Swap(&[]*Partition{}) {
			if p != nil {
				m.end(p)
				gone = append(gone, p)
			}
		}
	}
	return gone
}

// end tells a partition that nobody finds any more, and whoever waits for it.
func (m *Manager) end(p *Partition) {
	p.end()
	m.fetchers.follow(p)
	m.o.OnChange(p.ID(), p.State())
}

func (m *Manager) deleteLogs(gone []*Partition) error {
	var ids []topic.Partition
	for _, p := range gone {
		if p.log.Load() != nil {
			ids = append(ids, p.ID())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return m.o.Logs.Delete(ids...)
}

// changeTopic takes over the new and changed partitions of a topic. Everybody sees them at
// once; then OnChange is told. It returns those that have learned something.
func (m *Manager) changeTopic(c topicChange) (changed []*Partition, err error) {
	list, changed, gone, errs := m.partitionsAfter(c)
	c.topic.partitions.Store(&list)
	if c.isNew {
		m.topics.set(c.topic)
	}
	for _, p := range gone {
		m.end(p)
	}
	for _, p := range changed {
		m.o.OnChange(p.ID(), p.State())
	}
	return changed, errors.Join(append(errs, m.deleteLogs(gone))...)
}

// partitionsAfter returns the partitions of a topic after a change, which of them have learned something,
// and which are hosted no more. The errors are of those without a log.
func (m *Manager) partitionsAfter(c topicChange) (list, changed, gone []*Partition, errs []error) {
	list = c.topic.copyPartitions(len(c.New.Partitions))
	for i, change := range c.Partitions() {
		p := list[i]
		switch {
		case !slices.Contains(change.New.Replicas, m.o.NodeID):
			if list[i] = nil; p != nil {
				gone = append(gone, p)
			}
			continue
		case p == nil:
			p = c.newcomers[0].p
			errs = append(errs, c.newcomers[0].err)
			list[i], c.newcomers = p, c.newcomers[1:]
		}
		if p.learn(change.New, m.o.NodeID) {
			changed = append(changed, p)
		}
	}
	return list, changed, gone, errs
}

// ReplaceLog is Partition.ReplaceLog for a partition by its name. One that is not hosted runs
// open only.
func (m *Manager) ReplaceLog(id topic.Partition, open func() (*commitlog.Log, error)) error {
	p, err := m.Partition(id)
	if err != nil {
		_, err = open()
		return err
	}
	return p.ReplaceLog(open)
}

// Partitions calls f for each hosted partition, in no order.
func (m *Manager) Partitions(f func(*Partition)) {
	for t := range m.topics.all {
		for _, p := range *t.partitions.Load() {
			if p != nil {
				f(p)
			}
		}
	}
}
