package logdir

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A dir is one log directory, or a metadata.log.dir that is not one.
type dir struct {
	path      string
	holdsLogs bool      // false: only the metadata log lives here
	id        uuid.UUID // set by Open; zero if the directory was offline then
	lock      io.Closer // set by Open; released by who puts the directory offline, or Close

	found   FoundDir // as Open found it
	listing listing  // for Load, which takes it

	meta    checkpoint.MetaProperties // what meta.properties is to say
	metaDue bool                      // and does not say yet

	leftAlone        map[topic.Partition]int64 // what the file of that name said
	leftAloneDamaged bool                      // and it said more, which could not be read

	cordoned atomic.Bool // takes no new logs

	disk  commitlog.Disk
	meter loadMeter

	// Set by Load, for Close: was the marker there, and with which broker epoch?
	startedClean bool
	brokerEpoch  int64

	// mu guards the state of the directory. It is held for moments only.
	mu struct {
		sync.Mutex
		err    error // a *DirError: why the directory is offline; nil while it serves
		listed bool  // Load has read the checkpoints and filled parked
		loaded bool  // Load has come to the end
		// parked has the partitions that lie here and have no open log: not loaded yet,
		// damaged, or the future copy of a move. Their checkpoint entries are carried over.
		parked map[topic.Partition]parkedLog
		// missing has the partitions that should lie here, as the checkpoints know them, and have no
		// directory. Their entries are kept for their creation.
		missing map[topic.Partition]bool
		found   offsets // what the checkpoints said at start
		// stale says that the files have entries of partitions that are gone.
		stale bool
		// tooHigh says that an offset in the files is above its log's.
		tooHigh bool
		states  cleanStates // what the logs said of themselves at the last clean stop
	}

	logCount int // open logs, and those that are being created; guarded by places.mu

	// changing is held for reading by who changes partitions that lie here, across file operations, and
	// for writing by who takes all of them away. See enter.
	changing sync.RWMutex

	// writing is held by the one who writes checkpoint files; written is what they hold.
	writing sync.Mutex
	written offsets
}

// failure returns why the directory is offline, or nil.
func (d *dir) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.err
}

// setFailure takes the directory offline and reports whether it was online.
func (d *dir) setFailure(cause error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.err != nil {
		return false
	}
	d.mu.err = &DirError{d.path, cause}
	return true
}

// A parkedLog is a partition's directory without an open log.
type parkedLog struct {
	path string
	err  error // why there is no log
}

func (d *dir) park(p topic.Partition, path string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.parked[p] = parkedLog{path, err}
}

// unpark forgets that the partition was parked, and what the checkpoints said of it.
func (d *dir) unpark(p topic.Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unparkLocked(p)
}

func (d *dir) unparkLocked(p topic.Partition) {
	delete(d.mu.parked, p)
	delete(d.mu.missing, p)
	d.mu.found.forget(p)
}

// isMissing reports whether the partition's directory was missing at start, and is to this day.
func (d *dir) isMissing(p topic.Partition) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.missing[p]
}

// loaded unparks the partition of a log.
func (d *dir) loaded(l *commitlog.Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := l.Partition()
	o := l.Offsets()
	if l.RecoveryPoint() < d.mu.found[recoveryPoints][p] || o.End < d.mu.found[highWatermarks][p] || o.LogStart < d.mu.found[logStarts][p] {
		d.mu.tooHigh = true
	}
	d.unparkLocked(p)
}

func (d *dir) parked(p topic.Partition) (parkedLog, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.mu.parked[p]
	return l, ok
}

// unlock releases the lock file, for another broker to take.
func (d *dir) unlock() error {
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// A Dir describes a log directory.
type Dir struct {
	Path     string
	ID       uuid.UUID // zero if the directory was offline from the start
	Online   bool
	Cordoned bool             // takes no new logs
	Err      error            // why it is offline, or nil
	Logs     []*commitlog.Log // in no order
	// Futures are the copies of moves to this directory.
	Futures []Future

	fs vfs.FS
}

// A Future is the copy of a partition on its way to another directory.
type Future struct {
	Log *commitlog.Log
	Lag int64 // records that it has not got yet
}

// Space returns the size of the file system below and what is free of it, in bytes.
func (d *Dir) Space() (total, free int64, err error) { return d.fs.Space(d.Path) }

// Dirs describes the log directories, in the order of the configuration.
func (m *Manager) Dirs() []Dir {
	logs := make(map[*dir][]*commitlog.Log)
	for _, e := range m.places.entries() {
		logs[e.dir] = append(logs[e.dir], e.log)
	}
	futures := make(map[*dir][]Future)
	for _, e := range m.places.allFutures(nil) {
		if live := m.Log(e.log.Partition()); live != nil {
			futures[e.dir] = append(futures[e.dir], Future{e.log, max(0, live.Offsets().End-e.log.Offsets().End)})
		}
	}
	var list []Dir
	for _, d := range m.dirs {
		if d.holdsLogs {
			err := d.failure()
			list = append(list, Dir{Path: d.path, ID: d.id, Online: err == nil, Cordoned: d.cordoned.Load(), Err: errors.Unwrap(err), Logs: logs[d], Futures: futures[d], fs: m.cfg.FS})
		}
	}
	return list
}
