package logdir

import (
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

const unknownEpoch = checkpoint.UnknownBrokerEpoch

// A Manager keeps all logs of a broker. Open, Load, Start, Halt and Close are called once each,
// in this order, by one owner, Halt perhaps earlier or not at all; all else is safe for concurrent use.
type Manager struct {
	cfg    Config // complete
	logger *slog.Logger
	dirs   []*dir // fixed by Open

	clusterID     string // settled by Open
	nodeID        int32
	previousEpoch int64 // settled by Load
	brokerEpoch   atomic.Int64

	progress      progress
	deletions     deletions
	errands       errands
	ofLogs        chores
	ailing        ailing
	shortage      atomic.Pointer[error] // why Load cannot go on, though the disks are well
	mover         mover
	moveThrottler throttle.Throttler // of all copies together
	live          liveSettings
	lastScrub     atomic.Pointer[ScrubReport]
	scrubbing     scrubMeter
	flushTimes    metrics.Histogram
	producerCount atomic.Int64

	// tasks are the goroutines of Start, which stop ends, and those that take a failed
	// directory offline, one for each directory at most. Close waits for all of them, and
	// nothing joins once closing is set.
	halted atomic.Bool // the stop has begun
	tasks  struct {
		sync.Mutex
		sync.WaitGroup
		closing bool
		stop    context.CancelFunc
	}

	// changes are the partitions that somebody creates, deletes, moves or opens again: one at a time
	// each. Whoever does it enters the directories that it is about (dir.changing) as well.
	changes claims
	closed  atomic.Bool // set by Close: nobody enters a directory any more

	// mu guards the map of logs; it is held for moments only.
	mu struct {
		sync.RWMutex
		logs      map[topic.Partition]entry
		futures   map[topic.Partition]entry // copies of moves under way
		preferred map[topic.Partition]*dir  // where logs are to be created
	}
}

// An entry is an open log and where it lies.
type entry struct {
	log *commitlog.Log
	dir *dir
	// loadedHighWatermark is what the checkpoint said at start, or -1.
	loadedHighWatermark int64
}

// ClusterID returns the id of the cluster that the directories belong to.
func (m *Manager) ClusterID() string { return m.clusterID }

// NodeID returns the id of the broker that the directories belong to.
func (m *Manager) NodeID() int32 { return m.nodeID }

// PreviousBrokerEpoch returns the epoch under which the broker was last registered, or -1
// if it did not stop cleanly or its directories disagree. Load settles it.
func (m *Manager) PreviousBrokerEpoch() int64 { return m.previousEpoch }

// SetBrokerEpoch notes the epoch that a clean shutdown will leave in its markers.
func (m *Manager) SetBrokerEpoch(epoch int64) { m.brokerEpoch.Store(epoch) }

// Log returns the log of a partition, or nil.
func (m *Manager) Log(p topic.Partition) *commitlog.Log {
	e, _ := m.entry(p)
	return e.log
}

// FlushTimes are those of the syncs of all logs.
func (m *Manager) FlushTimes() *metrics.Histogram { return &m.flushTimes }

// DirectoryID returns the id of the directory that a partition's log is in.
func (m *Manager) DirectoryID(p topic.Partition) (id uuid.UUID, ok bool) {
	e, ok := m.entry(p)
	if !ok {
		return uuid.Zero, false
	}
	return e.dir.id, true
}

// MetadataDirectoryID returns the id of the directory that holds the metadata log.
func (m *Manager) MetadataDirectoryID() uuid.UUID {
	for _, d := range m.dirs {
		if d.path == filepath.Clean(m.cfg.MetadataDir) {
			return d.id
		}
	}
	return uuid.Zero
}

func (m *Manager) entry(p topic.Partition) (entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.mu.logs[p]
	return e, ok
}

// Logs yields the logs that are open now, in no order.
func (m *Manager) Logs() iter.Seq2[topic.Partition, *commitlog.Log] {
	return func(yield func(topic.Partition, *commitlog.Log) bool) {
		for _, e := range m.entries() {
			if !yield(e.log.Partition(), e.log) {
				return
			}
		}
	}
}

// entries returns a copy, so that its users hold no lock.
func (m *Manager) entries() []entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list := make([]entry, 0, len(m.mu.logs))
	for _, e := range m.mu.logs {
		list = append(list, e)
	}
	return list
}

func (m *Manager) entriesOf(d *dir) []entry {
	return slices.DeleteFunc(m.entries(), func(e entry) bool { return e.dir != d })
}

// put adds an open log, unless its directory has gone offline meanwhile. Who takes a
// directory offline marks it first and sweeps the map then, so nothing stays behind.
func (m *Manager) put(p topic.Partition, e entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := e.dir.failure(); err != nil {
		return err
	}
	m.mu.logs[p] = e
	e.dir.logCount++
	return nil
}

func (m *Manager) take(p topic.Partition) (entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.mu.logs[p]
	if ok {
		delete(m.mu.logs, p)
		e.dir.logCount--
	}
	return e, ok
}

// online returns the log directories that serve.
func (m *Manager) online() []*dir {
	return slices.DeleteFunc(slices.Clone(m.dirs), func(d *dir) bool { return !d.holdsLogs || d.failure() != nil })
}

// CordonedIDs returns the ids of the directories that take no new logs.
func (m *Manager) CordonedIDs() []uuid.UUID {
	var ids []uuid.UUID
	for _, d := range m.online() {
		if d.cordoned.Load() {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// HighWatermark returns the high watermark that the checkpoint gave a log at start. It is
// in force already, within the log.
func (m *Manager) HighWatermark(p topic.Partition) (int64, bool) {
	e, ok := m.entry(p)
	return e.loadedHighWatermark, ok && e.loadedHighWatermark >= 0
}

// SetConfig puts a configuration in force for the logs of a topic with so many partitions.
func (m *Manager) SetConfig(topicName string, partitions int, c commitlog.Config) {
	for n := range partitions {
		p := topic.Partition{Topic: topicName, Partition: int32(n)}
		if e, ok := m.entry(p); ok {
			m.setConfig(e.log, c)
		}
		if e, ok := m.future(p); ok {
			m.setConfig(e.log, c)
		}
	}
}

func (m *Manager) setConfig(l *commitlog.Log, c commitlog.Config) {
	before := l.Config()
	if before == c {
		return // without the log's mutex, which an append may hold for long
	}
	l.SetConfig(c)
	if before.Compact && !c.Compact {
		m.cfg.Cleaner.Abort(l.Partition())
	}
}
