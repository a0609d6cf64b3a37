package commitlog

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A flusher makes sure that at most one sync of a log runs, and that all who come while it
// runs share the next one (group commit). Nobody waits for company: a delay made every
// case slower.
//
//	caller A   sync --------|
//	caller B       wait ....|sync --------|
//	caller C            wait|.............|   B's sync covered C's bytes
type flusher struct {
	mu      sync.Mutex
	done    sync.Cond // a sync ended
	running bool

	lastFlush atomic.Int64 // ms

	times atomic.Pointer[metrics.Histogram] // nil: nobody wants to know
}

// RecoveryPoint returns the offset up to which nothing needs checking after a crash. Write
// it to the checkpoint file after each truncation and from time to time: a low one is safe.
func (l *Log) RecoveryPoint() int64 { return l.offsets.recoveryPoint.Load() }

// LastFlush returns when the log was last flushed or opened.
func (l *Log) LastFlush() time.Time { return time.UnixMilli(l.flush.lastFlush.Load()) }

// ObserveFlushes makes h count how long each sync takes that has anything to write, from now on
// (Kafka class LogFlushStats).
func (l *Log) ObserveFlushes(h *metrics.Histogram) { l.flush.times.Store(h) }

// FlushTo returns when all records below offset are on disk. Callers at the same time
// share syncs. A *StorageError poisons the log: after a failed sync nobody knows what is on disk.
func (l *Log) FlushTo(offset int64) error {
	f := &l.flush
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if err := l.Failed(); err != nil {
			return err
		}
		if l.offsets.recoveryPoint.Load() >= min(offset, l.DataEnd()) {
			return nil
		}
		if f.running {
			f.done.Wait()
			continue
		}
		if err := l.runSync(l.syncAll); err != nil {
			return err
		}
	}
}

// Flush returns when everything that was appended before is on disk, with the indexes,
// the producer snapshots and the names of the files, and moves the recovery point there.
func (l *Log) Flush() error { return l.syncOnce(l.syncAll) }

// flushSealed syncs the segments that rolls have sealed and moves the recovery point past
// them, so that an unclean stop leaves only one segment to check.
func (l *Log) flushSealed() error { return l.syncOnce(l.syncSealed) }

// syncOnce runs a sync of its own when no other runs.
func (l *Log) syncOnce(sync func() error) error {
	f := &l.flush
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.done.Wait()
	}
	if err := l.prepare(); err != nil {
		return err
	}
	return l.runSync(sync)
}

// runSync runs sync without flush.mu, which the caller holds.
func (l *Log) runSync(sync func() error) error {
	f := &l.flush
	f.running = true
	f.mu.Unlock()
	err := sync()
	switch vfs.FaultOf(err) {
	case vfs.NoFault:
	case vfs.ValueFault, vfs.ProcessFault:
		err = l.spare("flush", err) // no sync has failed: what is not on disk is owed as before
	default:
		err = l.fail("flush", err)
	}
	f.mu.Lock()
	f.running = false
	f.done.Broadcast()
	return err
}

// await returns when no sync runs that began before.
func (f *flusher) await() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.done.Wait()
	}
}

// DirIsDurable notes that the name of the log's directory is on disk: somebody has synced the
// directory that it lies in.
func (l *Log) DirIsDurable() { l.newDir.Store(false) }

// A syncJob is what one sync has to do, captured under the mutex.
type syncJob struct {
	log         *Log
	end         int64              // everything below is durable after it
	segments    []*segment.Segment // sealed ones, ascending
	active      *segment.Segment   // nil: not this time
	snapshots   []string
	offsets     []int64 // of the snapshots
	dir         string
	truncations uint32
}

// captureLocked takes over the debts of the log up to end.
func (l *Log) captureLocked(end int64) syncJob {
	j := syncJob{log: l, end: end, segments: slices.Clone(l.mu.unsynced), dir: l.dirLocked(), truncations: l.mu.truncations}
	j.offsets = l.mu.snapshots.takeUnsynced(end)
	for _, offset := range j.offsets {
		j.snapshots = append(j.snapshots, l.mu.snapshots.path(offset))
	}
	return j
}

// run does the job in the order that keeps every crash state loadable: what explains data
// before the data (KAFKA-9892), old data before new.
func (j *syncJob) run() error {
	l := j.log
	if l.newDir.Load() {
		if err := l.fs.SyncDir(filepath.Dir(j.dir)); err != nil {
			return err
		}
		l.DirIsDurable()
	}
	if err := l.syncEpochs(); err != nil {
		return err
	}
	for _, path := range j.snapshots {
		if err := syncFile(l.fs, path); err != nil {
			return err
		}
	}
	segments := j.segments
	if j.active != nil {
		segments = append(segments, j.active)
	}
	if len(j.snapshots) > 0 {
		if err := segment.SyncDir(l.fs, j.dir, segments...); err != nil {
			return err
		}
	}
	for _, s := range segments {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// owe gives back the debts of a job that was not done.
func (j *syncJob) owe() {
	l := j.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.snapshots.giveBack(j.offsets)
}

// finish publishes what a job made durable, unless a truncation made it void.
func (j *syncJob) finish() {
	l := j.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.unsynced = slices.DeleteFunc(l.mu.unsynced, func(s *segment.Segment) bool { return slices.Contains(j.segments, s) })
	if j.truncations != l.mu.truncations {
		return
	}
	l.offsets.synced(j.end)
	l.flush.lastFlush.Store(l.now().UnixMilli())
}

// syncAll syncs everything up to the log end. Of the active segment it leaves the indexes
// alone, which recovery makes anew.
func (l *Log) syncAll() error {
	l.mu.Lock()
	j := l.captureLocked(l.offsets.dataEnd())
	j.active = l.offsets.Load().active()
	l.mu.Unlock()
	return j.do()
}

// syncSealed syncs what lies below the active segment.
func (l *Log) syncSealed() error {
	l.mu.Lock()
	j := l.captureLocked(l.offsets.Load().active().BaseOffset())
	l.mu.Unlock()
	return j.do()
}

func (j *syncJob) do() error {
	l := j.log
	began := metrics.StartStopwatch()
	err := j.run()
	if err != nil {
		j.owe()
	}
	if h := l.flush.times.Load(); h != nil && j.end > l.RecoveryPoint() {
		h.Observe(began.Elapsed())
	}
	if err != nil {
		return err
	}
	j.finish()
	return nil
}
