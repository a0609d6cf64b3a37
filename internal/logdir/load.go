package logdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

var (
	errNotLoaded = errors.New("not loaded")
	errFuture    = errors.New("copy of a partition that was moving here, and is not loaded")
)

// Load opens the logs of all directories, with Config.RecoveryThreads goroutines for each.
// A damaged log is left out, and a directory whose disk fails goes offline; both are
// logged, and the rest loads. An error means that the broker cannot go on: a partition
// lies in two directories, ctx ended, or no directory is left. Close it then all the same.
func (m *Manager) Load(ctx context.Context, o LoadOptions) error {
	if o.LogConfig == nil {
		o.LogConfig = func(string) commitlog.Config { return commitlog.DefaultConfig() }
	}
	if err := m.SettleMeta(); err != nil {
		return err
	}
	m.progress.begin(m.cfg.Now())
	defer func() { m.progress.end(m.cfg.Now()) }()
	dirs := m.dirs.online()
	found := make([]listing, len(dirs))
	for i, d := range dirs {
		found[i], d.listing = d.listing, listing{}
		if !m.removeCleanState(d) {
			found[i].states = nil
		}
	}
	m.mover.resolveCopies(dirs, found)
	if err := checkDuplicates(found); err != nil {
		return err
	}
	l := loader{m: m, o: o, found: found}
	var loaders, reporter sync.WaitGroup
	reporting, stopReporting := context.WithCancel(ctx)
	reporter.Go(func() { m.report(reporting) })
	for i, d := range dirs {
		loaders.Go(func() { l.loadDir(ctx, d, found[i]) })
	}
	defer context.AfterFunc(ctx, func() { m.stopRecovery(dirs) })()
	if !waitFor(ctx, &loaders) {
		stopReporting()
		return fmt.Errorf("%w: log directories do not answer", ctx.Err())
	}
	l.loadFutures(ctx, dirs, found)
	stopReporting()
	reporter.Wait()
	m.lowerPoints(dirs)
	m.previousEpoch = commonEpoch(m.dirs)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.shortage.Load(); err != nil {
		return *err
	}
	return m.dirs.enough(m.cfg.MetadataDir)
}

// stopRecovery ends the checks of logs that are under way.
func (m *Manager) stopRecovery(dirs []*dir) {
	for _, d := range dirs {
		d.meter.recovery.Stop()
	}
}

// waitFor waits for work, which ctx ends as well, and reports whether it has ended: not much later
// than ctx at most.
func waitFor(ctx context.Context, work *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(closeGrace):
		return false
	}
}

// A listing is what lies in a log directory.
type listing struct {
	live, future []FoundPartition
	deleted      []string    // paths
	aside        []string    // names, of those that are deleted or stray
	states       cleanStates // what logs said of themselves at the last clean stop
}

// list reads a directory. What does not belong there is named and left alone; Kafka would
// not start (KAFKA-5118).
func (m *Manager) list(d *dir) (listing, error) {
	var l listing
	entries, err := m.cfg.FS.ReadDir(d.path)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		path := d.file(e.Name())
		if !m.isDir(path, e) {
			continue
		}
		kind, p := classify(e.Name())
		if kind == deletedDir || kind == strayDir {
			l.aside = append(l.aside, e.Name())
		}
		switch kind {
		case liveDir:
			l.live = append(l.live, FoundPartition{Partition: p, Path: path})
		case futureDir:
			l.future = append(l.future, FoundPartition{Partition: p, Path: path})
		case deletedDir:
			l.deleted = append(l.deleted, path)
		case strayDir:
			m.logger.Info("stray partition directory left alone", "dir", path)
		case foreignDir:
			m.logger.Warn("not a partition directory, ignored; Kafka would not start with it", "dir", path)
		}
	}
	return l, nil
}

func (m *Manager) isDir(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := m.cfg.FS.Stat(path)
	return err == nil && info.IsDir()
}

// checkDuplicates refuses a partition that lies in two directories: nobody knows which of
// them is right.
func checkDuplicates(found []listing) error {
	for _, kind := range []func(listing) []FoundPartition{
		func(l listing) []FoundPartition { return l.live },
		func(l listing) []FoundPartition { return l.future },
	} {
		first := make(map[topic.Partition]string)
		for _, l := range found {
			for _, at := range kind(l) {
				if other, ok := first[at.Partition]; ok {
					return fmt.Errorf("%w: partition %v lies in %s and in %s; move one of them away", ErrDuplicate, at.Partition, other, at.Path)
				}
				first[at.Partition] = at.Path
			}
		}
	}
	return nil
}

// commonEpoch is the broker epoch of the clean-shutdown markers, if every directory is
// online and had one and all agree.
func commonEpoch(dirs []*dir) int64 {
	epoch := int64(unknownEpoch)
	for i, d := range dirs {
		switch {
		case !d.holdsLogs:
		case d.failure() != nil || !d.startedClean || i > 0 && d.brokerEpoch != epoch:
			return unknownEpoch
		default:
			epoch = d.brokerEpoch
		}
	}
	return epoch
}

// A loader is one call of Load.
type loader struct {
	m     *Manager
	o     LoadOptions
	found []listing // of all directories
}

// loadDir loads one directory.
func (l *loader) loadDir(ctx context.Context, d *dir, found listing) {
	if d.failure() != nil {
		return
	}
	if err := l.prepare(d, found); err != nil {
		l.m.failed(d, err)
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	d.meter.clean.Store(d.startedClean)
	d.meter.logs.Store(int64(len(found.live)))
	defer d.meter.ended.Store(true)
	for range min(int(l.m.live.recoveryThreads.Load()), len(found.live)) {
		workers.Go(func() {
			for ctx.Err() == nil && d.failure() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(found.live) {
					return
				}
				if err := l.loadLog(d, found.live[i]); err != nil {
					l.m.failed(d, err)
				}
				d.meter.done.Add(1)
			}
		})
	}
	workers.Wait()
	if ctx.Err() == nil && d.failure() == nil {
		if err := l.finish(d, found); err != nil {
			l.m.failed(d, err)
		}
	}
}

// prepare takes the clean-shutdown marker, before any log is touched, reads the
// checkpoints, and queues what was deleted.
func (l *loader) prepare(d *dir, found listing) (err error) {
	m := l.m
	d.startedClean, d.brokerEpoch, err = checkpoint.TakeCleanShutdown(m.cfg.FS, d.cleanShutdown(), d.path)
	if err != nil {
		return err
	}
	var read offsets
	for k := range checkpointKinds {
		if read[k], err = m.readCheckpoint(d, k); err != nil {
			return err
		}
	}
	for _, path := range found.deleted {
		m.deletions.add(m.cfg.Now().Add(m.fileDeleteDelay()), func() { m.removeAll(path) })
	}
	for _, at := range found.future {
		d.park(at.Partition, at.Path, errFuture)
	}
	for _, at := range found.live {
		d.park(at.Partition, at.Path, errNotLoaded)
	}
	if !d.startedClean && len(found.live) > 0 {
		m.logger.Info("directory was not stopped cleanly, logs are checked from their recovery points on", "dir", d.path, "logs", len(found.live))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.found = read
	d.mu.states = found.states
	d.mu.listed = true
	return nil
}

// loadLog opens one log, unless its fate is another. A log that cannot be opened for what is in it
// is parked. An error takes the directory offline.
func (l *loader) loadLog(d *dir, at FoundPartition) error {
	m, p := l.m, at.Partition
	if kept, err := l.meetFate(d, &at); !kept {
		return err
	}
	log, err := l.open(d, at)
	if err == nil && at.remembered && log.TopicID() != at.TopicID { // its file has changed since the stop
		m.readTopicID(&at)
		at.Changed = true
		return errors.Join(log.Close(), l.loadLog(d, at))
	}
	if err == nil && log.TopicID().IsZero() && l.o.TopicID != nil {
		if err = log.Close(); err == nil {
			log, err = l.openAs(d, p, l.o.TopicID(p.Topic))
		}
	}
	if errors.Is(err, commitlog.ErrStopped) {
		return nil // it stays parked: not loaded
	}
	if isDamage(err) {
		m.logger.Error("log is damaged, and not served", "partition", p, "dir", at.Path, "err", err)
		d.park(p, at.Path, err)
		return nil
	}
	if err != nil {
		return err
	}
	e := entry{log, d, d.foundOffset(highWatermarks, p)}
	if e.loadedHighWatermark >= 0 {
		log.SetHighWatermark(e.loadedHighWatermark)
	}
	if err := m.places.put(p, e); err != nil {
		return errors.Join(err, log.Close())
	}
	d.loaded(log)
	return nil
}

// meetFate does what is decided about a partition, and reports whether it is to be loaded.
func (l *loader) meetFate(d *dir, at *FoundPartition) (kept bool, err error) {
	if l.o.Fate == nil {
		return true, nil
	}
	switch decision := l.o.Fate(*at); decision.Fate {
	case Heal:
		l.m.logger.Warn("topic id of a partition was damaged, and is written anew", "dir", at.Path, "id", decision.TopicID, "found", at.TopicID, "reason", decision.Reason)
		if err := checkpoint.WritePartitionMetadata(l.m.cfg.FS, filepath.Join(at.Path, checkpoint.PartitionMetadataFile), decision.TopicID); err != nil {
			l.m.logger.Warn("topic id is not written, the next start will try again", "dir", at.Path, "err", err)
		}
		l.m.readTopicID(at)
	case LeaveAlone:
		l.m.logger.Error("partition is left alone, and not served", "dir", at.Path, "reason", decision.Reason)
		d.park(at.Partition, at.Path, fmt.Errorf("%w: %s", ErrLeftAlone, decision.Reason))
		return false, nil
	case PutAside:
		return false, l.putAside(d, *at, decision.Reason)
	}
	return true, nil
}

// open opens a log as the checkpoints and the marker say, of the topic that its directory says.
func (l *loader) open(d *dir, at FoundPartition) (*commitlog.Log, error) {
	o := l.options(d, at.Partition, uuid.Zero)
	if o.TopicIDRead = at.IDErr == nil && !at.remembered; o.TopicIDRead {
		o.TopicID = at.TopicID
	}
	return l.m.openLog(o)
}

// openAs is open for a log whose directory does not say it.
func (l *loader) openAs(d *dir, p topic.Partition, id uuid.UUID) (*commitlog.Log, error) {
	return l.m.openLog(l.options(d, p, id))
}

func (l *loader) options(d *dir, p topic.Partition, id uuid.UUID) commitlog.Options {
	o := l.m.logOptions(d, p, id, l.o.LogConfig(p.Topic))
	d.prove(&o, p)
	if o.Clean = d.isClean(p); o.Clean {
		o.CleanState = d.cleanState(p)
	}
	return o
}

// isDamage reports whether the bytes of a log are wrong, not the disk. What a log can bound by itself
// it does; left are a damaged file that a crash kept from taking the place of others, of which
// nobody knows what it was to replace, a copy of another topic, and files that cannot be what they are
// called.
func isDamage(err error) bool {
	fault := vfs.FaultOf(err)
	return (fault == vfs.ValueFault || fault == vfs.FileFault) && !errors.Is(err, commitlog.ErrStopped) ||
		errors.Is(err, record.ErrCorrupt) || errors.Is(err, commitlog.ErrInconsistentTopicID)
}

// foundOffset returns what a checkpoint said of a log at start, -1 for nothing.
func (d *dir) foundOffset(k checkpointKind, p topic.Partition) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if offset, ok := d.mu.found[k][p]; ok {
		return offset
	}
	return -1
}

// prove adds what the checkpoints said of a log at start.
func (d *dir) prove(o *commitlog.Options, p topic.Partition) {
	o.RecoveryPoint = max(d.foundOffset(recoveryPoints, p), 0)
	o.HighWatermark = max(d.foundOffset(highWatermarks, p), 0)
	o.LogStartOffset = max(d.foundOffset(logStarts, p), 0)
}

// cleanState returns what a log said of itself when it was closed, or nil. It is of use
// once.
func (d *dir) cleanState(p topic.Partition) *commitlog.CleanState {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.mu.states[p]
	delete(d.mu.states, p)
	return s
}

// logOptions are what every log of a directory has in common. The log counts as new and
// clean.
func (m *Manager) logOptions(d *dir, p topic.Partition, id uuid.UUID, c commitlog.Config) commitlog.Options {
	return commitlog.Options{
		FS:                   m.cfg.FS,
		Dir:                  d.file(p.String()),
		Partition:            p,
		TopicID:              id,
		Config:               c,
		Clean:                true,
		ProducerIDExpiration: time.Duration(m.live.producerIDExpiration.Load()),
		Now:                  m.cfg.Now,
		Logger:               m.logger,
		Recovery:             &d.meter.recovery,
		DeleteLater:          m.ofLogs.later,
		Background:           m.ofLogs.soon,
		Disk:                 &d.disk,
		OnFailure:            func(err error) { m.logFailed(d, p, err) },
	}
}

// openLog opens a log whose syncs count.
func (m *Manager) openLog(o commitlog.Options) (*commitlog.Log, error) {
	l, err := commitlog.Open(o)
	if err == nil {
		l.ObserveFlushes(&m.flushTimes)
	}
	return l, err
}

// openCopy opens the log, empty or not, that is to follow another one.
func (m *Manager) openCopy(d *dir, name string, live *commitlog.Log) (*commitlog.Log, error) {
	o := m.logOptions(d, live.Partition(), live.TopicID(), live.Config())
	o.Dir = d.file(name)
	return m.openLog(o)
}

// putAside renames a partition that does not belong to this broker.
func (l *loader) putAside(d *dir, at FoundPartition, reason string) error {
	stray := d.file(asideName(l.m.cfg.Random, at.Partition, checkpoint.StrayDirSuffix))
	l.m.logger.Warn("partition does not belong to this broker, put aside", "partition", at.Partition, "dir", stray, "reason", reason)
	if err := l.m.cfg.FS.Rename(at.Path, stray); err != nil {
		return err
	}
	d.mu.Lock()
	d.unparkLocked(at.Partition)
	d.mu.stale = true
	d.mu.Unlock()
	return l.m.cfg.FS.SyncDir(d.path)
}

// finish removes from the checkpoints what has no directory any more: a partition created under
// the same name must not inherit it. Unless it should have one.
func (l *loader) finish(d *dir, found listing) error {
	if err := l.m.writeLeftAlone(d); err != nil {
		return err
	}
	d.mu.Lock()
	d.mu.loaded = true
	d.mu.states = nil
	d.mu.parked = shrunk(d.mu.parked) // all are in it when loading begins
	for k := range d.mu.found {
		d.mu.found[k] = shrunk(d.mu.found[k])
	}
	for _, p := range d.mu.found.partitions() {
		if _, ok := d.mu.parked[p]; ok || d.mu.missing[p] {
			continue
		}
		if l.isGone(p, found) {
			d.mu.stale = true
			d.mu.found.forget(p)
			continue
		}
		d.mu.missing[p] = true
		l.m.logger.Error("partition's directory is missing; it will go on where it ended", "partition", p, "dir", d.file(p.String()),
			"recovery point", d.mu.found[recoveryPoints][p], "high watermark", d.mu.found[highWatermarks][p])
	}
	stale := d.mu.stale
	d.mu.Unlock()
	if !stale {
		return nil
	}
	return l.m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks)
}

// shrunk returns a copy of a map that does not keep the room that it once needed.
func shrunk[V any](m map[topic.Partition]V) map[topic.Partition]V {
	small := make(map[topic.Partition]V, len(m))
	maps.Copy(small, m)
	return small
}

// isGone reports whether a partition of which a directory has nothing but entries in checkpoints
// is none any more: not of this broker, put aside here, or in another directory. aside is what was
// put aside.
func (l *loader) isGone(p topic.Partition, found listing) bool {
	if l.o.Belongs != nil && !l.o.Belongs(p) {
		return true
	}
	isIt := func(at FoundPartition) bool { return at.Partition == p }
	elsewhere := func(other listing) bool { return slices.ContainsFunc(other.live, isIt) }
	return slices.ContainsFunc(found.aside, func(name string) bool { return isAsideOf(name, p) }) || slices.ContainsFunc(l.found, elsewhere)
}

// lowerPoints stores the checkpoints if an offset in them is above its log's, before anything is
// appended: see commitlog.Open. What was not believed now might be after the next stop.
func (m *Manager) lowerPoints(dirs []*dir) {
	for _, d := range dirs {
		d.mu.Lock()
		tooHigh := d.mu.tooHigh && d.mu.err == nil
		d.mu.Unlock()
		if !tooHigh {
			continue
		}
		if err := m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks); err != nil {
			m.failed(d, err)
		}
	}
}

// removeAll removes a directory that was put aside for that.
func (m *Manager) removeAll(path string) {
	if err := vfs.RemoveAll(m.cfg.FS, path); err != nil {
		m.logger.Warn("cannot remove a deleted partition, the next start will try again", "dir", path, "err", err)
	}
}
