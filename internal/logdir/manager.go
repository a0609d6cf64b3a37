package logdir

import (
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

const unknownEpoch = checkpoint.UnknownBrokerEpoch

// A Manager keeps all logs of a broker. Open, Load, Start, Halt and Close are called once each,
// in this order, by one owner, Halt perhaps earlier or not at all; all else is safe for concurrent use.
type Manager struct {
	cfg    Config // complete
	logger *slog.Logger
	dirs   directories // fixed by Open

	clusterID     string // set by Open
	nodeID        int32
	previousEpoch int64 // set by Load
	brokerEpoch   atomic.Int64

	progress      progress
	deletions     deletions
	handoffs      handoffs
	ofLogs        logRequests
	failedLogs    failedLogs
	shortage      atomic.Pointer[error] // why Load cannot go on, though the disks are well
	mover         mover
	live          liveSettings
	scrubber      Scrubber
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

	places places
}

// Scrubber returns what reads all logs now and then.
func (m *Manager) Scrubber() *Scrubber { return &m.scrubber }

// ClusterID returns the id of the cluster that the directories belong to.
func (m *Manager) ClusterID() string { return m.clusterID }

// NodeID returns the id of the broker that the directories belong to.
func (m *Manager) NodeID() int32 { return m.nodeID }

// PreviousBrokerEpoch returns the epoch under which the broker was last registered, or -1
// if it did not stop cleanly or its directories disagree. Load resolves that.
func (m *Manager) PreviousBrokerEpoch() int64 { return m.previousEpoch }

// SetBrokerEpoch notes the epoch that a clean shutdown will leave in its markers.
func (m *Manager) SetBrokerEpoch(epoch int64) { m.brokerEpoch.Store(epoch) }

// Log returns the log of a partition, or nil.
func (m *Manager) Log(p topic.Partition) *commitlog.Log {
	e, _ := m.places.entry(p)
	return e.log
}

// FlushTimes are those of the syncs of all logs.
func (m *Manager) FlushTimes() *metrics.Histogram { return &m.flushTimes }

// DirectoryID returns the id of the directory that a partition's log is in.
func (m *Manager) DirectoryID(p topic.Partition) (id uuid.UUID, ok bool) {
	e, ok := m.places.entry(p)
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

// Logs yields the logs that are open now, in no order.
func (m *Manager) Logs() iter.Seq2[topic.Partition, *commitlog.Log] {
	return func(yield func(topic.Partition, *commitlog.Log) bool) {
		for _, e := range m.places.entries() {
			if !yield(e.log.Partition(), e.log) {
				return
			}
		}
	}
}

// CordonedIDs returns the ids of the directories that take no new logs.
func (m *Manager) CordonedIDs() []uuid.UUID {
	var ids []uuid.UUID
	for _, d := range m.dirs.online() {
		if d.cordoned.Load() {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// HighWatermark returns the high watermark that the checkpoint gave a log at start. It is
// in force already, within the log.
func (m *Manager) HighWatermark(p topic.Partition) (int64, bool) {
	e, ok := m.places.entry(p)
	return e.loadedHighWatermark, ok && e.loadedHighWatermark >= 0
}

// SetConfig puts a configuration in force for the logs of a topic with so many partitions.
func (m *Manager) SetConfig(topicName string, partitions int, c commitlog.Config) {
	for n := range partitions {
		p := topic.Partition{Topic: topicName, Partition: int32(n)}
		if e, ok := m.places.entry(p); ok {
			m.setConfig(e.log, c)
		}
		if e, ok := m.places.future(p); ok {
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
