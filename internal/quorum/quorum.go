package quorum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options say where the metadata log is and who votes. FS, Dir, NodeID and ClusterID must be
// set.
type Options struct {
	FS        vfs.FS
	Dir       string // log directory that holds __cluster_metadata-0 (metadata.log.dir)
	NodeID    int32
	ClusterID string
	Logger    *slog.Logger     // nil: no log
	Now       func() time.Time // time.Now when nil

	// SnapshotBytes is how much the log grows before a snapshot is taken, 1 MiB when 0. It is
	// also the size of a segment.
	SnapshotBytes int64

	// OnFailure is called once, from a goroutine of the quorum's, when the log can no longer
	// be written. It must not call Close. May be nil.
	OnFailure func(error)

	// Peers are the other voters and the way to them, nil when this node votes alone.
	Peers *Peers

	peers *peers // made of Peers

	// OnBroken is called once when a committed batch cannot be applied: the metadata stays as it
	// is until the next start. May be nil.
	OnBroken func(error)
}

// timeout bounds raft's timers. A lone voter is elected on request and hears from nobody, so
// they only have to be long.
const timeout = time.Minute

// electionWait is how long Open waits to become leader, which takes milliseconds.
const electionWait = 30 * time.Second

const defaultSnapshotBytes = 1 << 20

// A Quorum is a quorum of one: it holds the metadata log and the Image that it adds up to.
// Its methods may be called concurrently.
type Quorum struct {
	opts      Options
	dir       string
	log       *metadataLog
	state     *quorumState
	snapshots *snapshotStore
	machine   *stateMachine
	raft      *raft.Raft
	link      *link    // to the other voters, nil when there are none
	refusals  sync.Map // int32 of a voter -> the reason that it gave last, a string
	fail      *failure
	isNew     bool // the log was empty when Read found it
	started   bool // Start has begun
	evidence  Evidence

	notify     chan bool     // raft: leadership gained or lost
	wake       chan struct{} // a snapshot is due
	stop       chan struct{}
	done       sync.WaitGroup // the goroutine run
	completing sync.WaitGroup // the goroutine of completeProposals
	leads      atomic.Bool    // what the leader before left undone is done

	proposals proposals

	// mu guards what is known about snapshots.
	mu struct {
		sync.Mutex
		closed   bool
		snapshot snapshot // the newest
	}

	caughtUp     chan struct{} // closed when raft has passed the batches that Read found
	caughtUpAt   uint64
	caughtUpOnce sync.Once
}

// Open opens or creates the metadata log of a quorum of one and becomes its leader. It returns
// when the Image has all that was ever committed. A directory that Kafka wrote is continued.
// The caller holds the lock of the log directory.
func Open(o Options) (*Quorum, error) {
	q, err := Read(o)
	if err != nil {
		return nil, err
	}
	if err := q.Start(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Read reads a metadata log, which may be missing, and changes nothing: the Image is there, and the
// Evidence of whose it is. What cannot be understood is an error that names file, offset and
// record. The caller holds the lock of the log directory, and calls Start or Close.
func Read(o Options) (*Quorum, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = defaultSnapshotBytes
	}
	if o.OnBroken == nil {
		o.OnBroken = func(error) {}
	}
	if o.Peers != nil {
		o.peers = o.Peers.complete()
	}
	q := &Quorum{
		opts: o, dir: logDir(o.Dir), fail: newFailure(),
		proposals: newProposals(),
		notify:    make(chan bool, 8), wake: make(chan struct{}, 1), stop: make(chan struct{}), caughtUp: make(chan struct{}),
	}
	if err := q.load(); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

// Start makes this node the leader of what Read found and writes what that takes. Close it after an
// error.
func (q *Quorum) Start() error {
	q.machine.onBroken = q.opts.OnBroken
	if err := q.createDir(); err != nil {
		return err
	}
	if err := errors.Join(q.snapshots.removeParts(), q.log.mendFiles(), q.snapshots.nameReceived()); err != nil {
		return err
	}
	go q.machine.run()
	q.started = true
	q.completing.Go(q.completeProposals)
	if q.opts.peers != nil {
		return q.join()
	}
	if err := q.elect(); err != nil {
		return err
	}
	q.done.Add(1)
	go q.run()
	return q.begin()
}

// createDir makes the directory of the metadata log.
func (q *Quorum) createDir() error {
	if _, err := q.opts.FS.Stat(q.dir); err == nil {
		return nil
	}
	if err := vfs.MkdirAll(q.opts.FS, q.dir, 0o755); err != nil {
		return err
	}
	return q.opts.FS.SyncDir(q.opts.Dir)
}

// load reads the newest good snapshot and the log behind it.
func (q *Quorum) load() error {
	o := &q.opts
	q.machine = &stateMachine{publisher: newPublisher(), now: o.Now, applied: q.applied, onBroken: func(error) {}}
	q.machine.image.Store(metadata.NewImage(o.ClusterID))
	q.log = &metadataLog{
		fs: o.FS, dir: q.dir, nodeID: o.NodeID, static: o.static(), ballot: o.ballot(),
		now: o.Now, logger: o.Logger, fail: q.fail, segmentBytes: o.SnapshotBytes,
	}
	q.snapshots = &snapshotStore{
		fs: o.FS, dir: q.dir, static: o.static(), log: q.log, fail: q.fail, current: q.currentSnapshot, taken: q.snapshotTaken,
	}
	q.mu.snapshot.kraft.votersOffset = -1
	snapshot, err := q.loadSnapshot()
	if err != nil {
		return err
	}
	if err := q.loadLog(snapshot); err != nil {
		return err
	}
	q.isNew = q.log.NextOffset() == 0
	if o.peers == nil {
		if err := q.replay(); err != nil {
			return err
		}
	}
	if err := q.openState(); err != nil {
		return err
	}
	q.evidence, err = q.gather()
	return err
}

// loadLog reads the log behind the snapshot.
func (q *Quorum) loadLog(c checkpointData) error {
	if q.mu.snapshot.received {
		q.log.replace(q.mu.snapshot)
		return nil
	}
	end := q.mu.snapshot.id.endOffset
	if err := q.log.load(end, end); err != nil {
		return err
	}
	if err := q.fit(c); err != nil || q.opts.peers == nil || q.mu.snapshot.id != bootstrapID {
		return err
	}
	return q.loadFormatted()
}

// loadFormatted takes the voters that a storage tool wrote, for a log that names none.
func (q *Quorum) loadFormatted() error {
	c, _, err := q.readCheckpoint(q.snapshots.path(bootstrapID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	q.mu.snapshot.kraft = q.log.noteCheckpoint(c)
	return nil
}

// openState opens quorum-state. A damaged one is made anew if the log itself says who leads and votes:
// a lone voter needs nothing else of it.
func (q *Quorum) openState() (err error) {
	o := &q.opts
	epoch := max(q.log.lastEpoch(), q.mu.snapshot.id.epoch)
	q.state, err = openQuorumState(o.FS, q.dir, q.log, epoch)
	if errors.Is(err, ErrCorrupt) && q.log.mu.leader.offset >= 0 && o.peers == nil {
		o.Logger.Error("quorum-state is damaged, and written anew", "err", err)
		q.state, err = newQuorumState(o.FS, q.dir, q.log, epoch), nil
	}
	return err
}

// loadSnapshot makes the newest readable snapshot the Image. A damaged one is reported and
// passed over: if the log does not reach back to the one before it, fit finds that out. Not one that was
// about to replace the log: what it was to replace is no log any more.
func (q *Quorum) loadSnapshot() (checkpointData, error) {
	received, err := q.snapshots.received()
	if err != nil || received != nil {
		return q.loadReceived(received, err)
	}
	ids, err := q.snapshots.checkpoints()
	if err != nil {
		return checkpointData{}, err
	}
	for _, id := range ids {
		c, err := q.loadCheckpoint(q.snapshots.path(id), id)
		if errors.Is(err, ErrCorrupt) || errors.Is(err, metadata.ErrCorrupt) {
			q.opts.Logger.Error("a snapshot of the metadata log is damaged", "file", q.snapshots.path(id), "err", err)
			continue
		}
		return c, err
	}
	return checkpointData{}, nil
}

func (q *Quorum) loadReceived(id *snapshotID, err error) (c checkpointData, _ error) {
	if err != nil {
		return c, err
	}
	path := q.snapshots.path(*id) + checkpoint.ReceivedSuffix
	c, err = q.loadCheckpoint(path, *id)
	if err == nil && (c.place.index == 0 || c.place.endOffset != id.endOffset) {
		err = &CorruptError{Path: path, Position: -1, Offset: -1, Err: errors.New("it does not say where in the log it belongs")}
	}
	q.mu.snapshot.received = true
	return c, err
}

// loadCheckpoint makes a checkpoint the Image and the snapshot.
func (q *Quorum) loadCheckpoint(path string, id snapshotID) (checkpointData, error) {
	c, size, err := q.readCheckpoint(path)
	if err == nil {
		err = q.machine.load(c, id)
	}
	if err == nil {
		q.mu.snapshot = c.snapshot(id)
		q.mu.snapshot.size = size
	}
	return c, err
}

// fit finds the place of the snapshot in the log, and refuses one that does not fit there: it is the
// state of another offset, or the log between them is missing.
func (q *Quorum) fit(c checkpointData) error {
	id := q.mu.snapshot.id
	placed, err := q.log.anchor(q.mu.snapshot)
	switch {
	case err != nil && id == bootstrapID:
		return &CorruptError{Path: q.dir, Position: -1, Offset: -1, Err: fmt.Errorf(
			"the log begins at offset %d, and no snapshot that can be read holds what was before; bring back the missing or damaged files", q.log.start())}
	case err != nil && q.log.start() > id.endOffset:
		return &CorruptError{Path: q.snapshots.path(id), Position: -1, Offset: -1, Err: fmt.Errorf(
			"this is the newest snapshot that can be read, and the log begins behind it, at offset %d; bring back the missing or damaged files", q.log.start())}
	case err == nil:
		q.mu.snapshot = placed
		before := q.log.mark(id.endOffset)
		if before.epoch == noEpoch || before == (mark{id.epoch, c.timestamp}) {
			return nil
		}
		err = fmt.Errorf("its last batch is of time %d, in the log the batch before offset %d is of epoch %d and time %d",
			c.timestamp, id.endOffset, before.epoch, before.timestamp)
	}
	return &CorruptError{Path: q.snapshots.path(id), Position: -1, Offset: -1, Err: fmt.Errorf(
		"the snapshot is not of the offset and epoch in its name: %w; move it away to go on from what is before it, the log begins at offset %d", err, q.log.start())}
}

// replay applies the log behind the snapshot.
func (q *Quorum) replay() error {
	for index, e := range q.log.loaded() {
		if e.control {
			continue
		}
		batch := record.Batch(e.data)
		if err := q.machine.apply(batch); err != nil {
			return &CorruptError{Path: filepath.Join(q.dir, segmentName(e.segment.base)), Position: e.position, Offset: batch.BaseOffset(), Err: err}
		}
		q.machine.replayed = index
	}
	if q.caughtUpAt = q.log.lastCommand(); q.caughtUpAt == 0 {
		q.caughtUpOnce.Do(func() { close(q.caughtUp) })
	}
	return nil
}

// raftConfig is what any quorum has of raft's settings.
func (q *Quorum) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(addressOf(q.opts.NodeID))
	conf.SnapshotThreshold, conf.SnapshotInterval = math.MaxUint64, 24*time.Hour // this package says when
	conf.TrailingLogs = 0
	conf.MaxAppendEntries, conf.BatchApplyCh = inFlightMax, true // so that its queue has a place for each proposal
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	conf.NotifyCh = q.notify
	conf.Logger = newRaftLogger(q.opts.Logger, q.opts.Now)
	return conf
}

// elect starts raft and makes this node the leader.
func (q *Quorum) elect() error {
	conf := q.raftConfig()
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = timeout, timeout, timeout
	transport := newLoneTransport(addressOf(q.opts.NodeID))
	var err error
	if q.raft, err = raft.NewRaft(conf, q.machine, q.log, q.state, q.snapshots, transport); err != nil {
		return err
	}
	transport.electNow(conf.LocalID)
	timer := time.NewTimer(electionWait)
	defer timer.Stop()
	select {
	case <-q.notify:
		if err := q.raft.VerifyLeader().Error(); err != nil { // the term's first batch is written
			return q.explain(err)
		}
		q.beginEpoch(int32(q.raft.CurrentTerm()))
		return nil
	case <-q.fail.done:
		return q.fail.get()
	case <-timer.C:
		return fmt.Errorf("no leader of the metadata log after %v", electionWait)
	}
}

// begin waits for raft to pass the log and completes what a crash left undone.
func (q *Quorum) begin() error {
	select {
	case <-q.caughtUp:
	case <-q.fail.done:
		return q.fail.get()
	}
	q.log.forgetData()
	return q.complete(context.Background())
}

// complete ends what the leader before left undone: a cluster that has no metadata.version yet gets its
// first records, and an open transaction is given up.
func (q *Quorum) complete(ctx context.Context) error {
	if q.machine.transactionOpen() {
		if err := q.commit(ctx, []metadata.Record{metadata.NewAbortTransactionRecord()}); err != nil {
			return err
		}
	}
	if q.Image().Feature(metadata.MetadataVersion) != 0 {
		return nil
	}
	records, err := q.bootstrap()
	if err != nil {
		return err
	}
	return q.commit(ctx, records)
}

// commit proposes records that make a transaction, or end one, and waits for them. Nobody else
// proposes yet.
func (q *Quorum) commit(ctx context.Context, records []metadata.Record) error {
	wait, err := q.submit(ctx, q.Tail(), Tail{}, records)
	if err != nil {
		return err
	}
	return wait(ctx)
}

// Image returns the newest image.
func (q *Quorum) Image() *metadata.Image { return q.machine.image.Load() }

// NextOffset returns the offset of the next record in the log.
func (q *Quorum) NextOffset() int64 { return q.log.NextOffset() }

// Subscribe calls f with the present Image and a Delta from nothing, and from then on for each
// change, in order and never twice at a time, on a goroutine of the quorum's. f must not wait for a
// proposal, nor call Subscribe. There is no call after Close.
func (q *Quorum) Subscribe(f func(*metadata.Image, *metadata.Delta)) { q.machine.subscribe(f) }

// applied is called by the state machine after each batch.
func (q *Quorum) applied(index uint64) {
	if index >= q.caughtUpAt {
		q.caughtUpOnce.Do(func() { close(q.caughtUp) })
	}
	q.mu.Lock()
	due := q.log.bytesSinceSnapshot() > max(q.opts.SnapshotBytes, q.mu.snapshot.size)
	q.mu.Unlock()
	if due {
		select {
		case q.wake <- struct{}{}:
		default: // already awake
		}
	}
}

func (q *Quorum) currentSnapshot() snapshot {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.snapshot
}

func (q *Quorum) snapshotTaken(s snapshot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.snapshot = s
	q.log.snapshotTaken(s.index)
}

// run writes what nobody waits for, takes snapshots when they are due and reports a failure,
// until Close.
func (q *Quorum) run() {
	defer q.done.Done()
	q.writeCompanions()
	failed := q.fail.done
	for {
		select {
		case <-q.stop:
			return
		case leads := <-q.notify: // a lone voter loses its leadership only to a failure
			if q.opts.peers != nil {
				q.lead(leads)
			}
		case <-q.wake:
			q.maybeSnapshot()
		case <-failed:
			failed = nil
			if q.opts.OnFailure != nil {
				q.opts.OnFailure(fmt.Errorf("metadata log: %w", q.fail.get()))
			}
		}
	}
}

func (q *Quorum) maybeSnapshot() {
	if q.machine.transactionOpen() {
		return // the next batch asks again
	}
	err := q.raft.Snapshot().Error()
	if err == nil {
		err = errors.Join(q.snapshots.prune(), q.writeEpochs(filepath.Join(q.dir, checkpoint.LeaderEpochs)))
	}
	if err != nil && !errors.Is(err, raft.ErrRaftShutdown) && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		q.opts.Logger.Error("cannot take a snapshot of the metadata", "err", err)
	}
}

// Close stops raft and closes the files. What was committed is on disk already.
func (q *Quorum) Close() error {
	q.mu.Lock()
	closed := q.mu.closed
	q.mu.closed = true
	q.mu.Unlock()
	if closed {
		return nil
	}
	return q.close()
}

func (q *Quorum) close() error {
	close(q.stop)
	q.closeProposals()
	q.completing.Wait() // before raft: it forgets those of its queue when it ends
	var err error
	if q.raft != nil {
		err = q.raft.Shutdown().Error()
	}
	if q.started {
		q.machine.close()
	}
	q.done.Wait()
	if q.log != nil {
		if q.raft != nil && q.fail.get() == nil {
			q.writeEnd()
		}
		err = errors.Join(err, q.log.close())
	}
	return err
}
