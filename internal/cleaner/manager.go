package cleaner

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// Logs is what a Manager asks of a log manager. The Manager calls it without locks held, and
// never in the middle of a task.
type Logs interface {
	// Placed yields the open logs, each with its log directory.
	Placed() iter.Seq2[*commitlog.Log, string]
	// Place returns the log of a partition and its directory; nil and "" if there is none.
	Place(p topic.Partition) (*commitlog.Log, string)
	// FailSoon takes a log directory offline, and does not wait for it.
	FailSoon(dir string, cause error)
}

// ManagerOptions say how a Manager starts.
type ManagerOptions struct {
	FS     vfs.FS // nil is the host's
	Config Config
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	Random io.Reader        // of secret keys; nil is the host's; never fails
}

// A Manager lets threads clean the logs of a broker that need it, one after the other, and
// deletes old segments of compacted logs (Kafka's LogCleaner and LogCleanerManager). All methods
// are safe for concurrent use; Start and Close are called once, by one owner. Who changes a log
// in another way than by appending pauses it first.
//
// Lock order: changing, choosing, then the mutexes of states, of checkpoints, and mu, none of
// them with another.
type Manager struct {
	fs       vfs.FS
	logger   *slog.Logger
	now      func() time.Time
	random   io.Reader
	throttle *throttle.Throttler

	states      *states
	checkpoints *checkpoints
	forcing     chan struct{} // holds a token while a cleaning runs that somebody asked for

	logs Logs            // set by Start
	life context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // forced cleanings

	changing sync.Mutex // held while threads are started or stopped
	choosing sync.Mutex // held while a log to clean is looked for

	mu struct {
		sync.Mutex
		cfg         Config
		pool        *pool // nil: nothing runs
		closed      bool
		uncleanable map[string]map[topic.Partition]error // by directory
		history     map[topic.Partition]*Outcome         // of the last cleaning
		lastForced  *Outcome
		totals      Totals
		lastChoice  choice
	}
}

// NewManager returns a Manager that does nothing yet. Logs can be paused already.
func NewManager(o ManagerOptions) *Manager {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{
		fs: o.FS, logger: o.Logger, now: o.Now, random: o.Random,
		throttle:    throttle.New(o.Config.BytesPerSecond),
		states:      newStates(),
		checkpoints: newCheckpoints(o.FS, o.Logger),
		forcing:     make(chan struct{}, 1),
	}
	m.life, m.stop = context.WithCancel(context.Background())
	m.mu.cfg = o.Config
	m.mu.uncleanable = make(map[string]map[topic.Partition]error)
	m.mu.history = make(map[topic.Partition]*Outcome)
	return m
}

// Start begins to clean. The logs are loaded: what the checkpoints say of others is dropped.
func (m *Manager) Start(logs Logs) {
	m.logs = logs
	m.dropUnknown()
	m.changing.Lock()
	defer m.changing.Unlock()
	m.startThreads(m.config())
}

// Close ends all cleaning, as an abort does, and waits. Logs can be paused all the same.
func (m *Manager) Close() {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.stop()
	m.stopThreads()
	m.work.Wait()
}

func (m *Manager) config() Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.cfg
}

// Reconfigure puts other settings in force. Threads start anew if there is a difference, and
// what they are at is aborted, as in Kafka. Enabled cannot change.
func (m *Manager) Reconfigure(c Config) {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	c.Enabled = m.mu.cfg.Enabled
	same, running := c == m.mu.cfg, m.mu.pool != nil && !m.mu.closed
	m.mu.cfg = c
	m.mu.Unlock()
	if same {
		return
	}
	m.throttle.SetRate(c.BytesPerSecond)
	if running {
		m.stopThreads()
		m.startThreads(c)
	}
}

// dropUnknown forgets what the checkpoints say of logs that are not there.
func (m *Manager) dropUnknown() {
	known := make(map[string]map[topic.Partition]bool)
	for l, dir := range m.logs.Placed() {
		if known[dir] == nil {
			known[dir] = make(map[topic.Partition]bool)
		}
		known[dir][l.Partition()] = true
	}
	for dir, logs := range known {
		m.checkpoints.retain(dir, func(p topic.Partition) bool { return logs[p] })
	}
}

// Pause keeps cleaning and retention off a log until Resume, ends what is under way, and
// returns when that has ended. Pauses add up.
func (m *Manager) Pause(p topic.Partition) { m.states.pause(p) }

// Resume takes a pause back.
func (m *Manager) Resume(p topic.Partition) { m.states.resume(p) }

// Abort ends what is under way at a log.
func (m *Manager) Abort(p topic.Partition) {
	m.states.pause(p)
	m.states.resume(p)
}

// Truncated notes that a paused log ends at offset, and writes the checkpoint.
func (m *Manager) Truncated(dir string, p topic.Partition, offset int64) error {
	return m.checkpoints.lower(dir, p, offset)
}

// Carry notes in the checkpoint of another directory, to which a paused log moves, how far it
// is clean. Forget then drops it from the one that it left.
func (m *Manager) Carry(p topic.Partition, from, to string) error {
	m.mu.Lock()
	if reason, ok := m.mu.uncleanable[from][p]; ok {
		m.setUncleanableLocked(to, p, reason)
	}
	m.mu.Unlock()
	return m.checkpoints.carry(p, from, to)
}

// Forget drops logs that are gone from a directory, and writes its checkpoint.
func (m *Manager) Forget(dir string, partitions ...topic.Partition) error {
	m.mu.Lock()
	for _, p := range partitions {
		delete(m.mu.uncleanable[dir], p)
		delete(m.mu.history, p)
	}
	m.mu.Unlock()
	return m.checkpoints.forget(dir, partitions...)
}

// DirFailed drops a directory that goes offline. It does not wait for what is under way there:
// the disk may hang.
func (m *Manager) DirFailed(dir string, partitions ...topic.Partition) {
	m.checkpoints.dropDir(dir)
	m.mu.Lock()
	delete(m.mu.uncleanable, dir)
	for _, p := range partitions {
		delete(m.mu.history, p)
	}
	m.mu.Unlock()
	for _, p := range partitions {
		m.states.abort(p)
	}
}

func (m *Manager) setUncleanableLocked(dir string, p topic.Partition, reason error) {
	if m.mu.uncleanable[dir] == nil {
		m.mu.uncleanable[dir] = make(map[topic.Partition]error)
	}
	m.mu.uncleanable[dir][p] = reason
}

// uncleanable returns why a log is set aside, or nil.
func (m *Manager) uncleanable(dir string, p topic.Partition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.uncleanable[dir][p]
}
