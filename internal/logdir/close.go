package logdir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// Halt begins the stop: tasks end, and logs are not created or moved any more, so that whoever is about
// to create thousands of them comes to an end. The next start does what is left out. Appends and
// reads go on.
func (m *Manager) Halt() {
	m.halted.Store(true)
	m.deletions.halted.Store(true)
	m.tasks.Lock()
	defer m.tasks.Unlock()
	m.tasks.closing = true
	if m.tasks.stop != nil {
		m.tasks.stop()
	}
}

// Close stops the tasks, flushes and closes all logs, the directories in parallel, and
// leaves in each directory where all of that succeeded its checkpoints and the marker of a
// clean shutdown. Readers must have ended. When ctx ends, logs that are still open stay
// unflushed and the next start recovers them; an error tells what went wrong. Close does not wait
// much longer then, whatever the disks do.
func (m *Manager) Close(ctx context.Context) error {
	m.Halt()
	done := make(chan error, 1)
	go func() { done <- m.close(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(closeGrace):
		return fmt.Errorf("%w: log directories do not answer", ctx.Err())
	}
}

// closeGrace is how long Close waits, when its time is up, for what is under way and for the
// checkpoints of what was closed.
const closeGrace = time.Second

func (m *Manager) close(ctx context.Context) error {
	m.tasks.Wait()
	if m.closed.Swap(true) {
		return nil
	}
	errs := make([]error, len(m.dirs))
	var dirs sync.WaitGroup
	for i, d := range m.dirs {
		if d.holdsLogs && d.failure() == nil {
			dirs.Go(func() { errs[i] = m.closeDir(ctx, d) })
		}
	}
	dirs.Wait()
	return errors.Join(errors.Join(errs...), m.dirs.unlock())
}

func (m *Manager) closeDir(ctx context.Context, d *dir) error {
	d.changing.Lock() // those who have entered come to an end first
	defer d.changing.Unlock()
	states, err := m.closeLogs(ctx, d)
	d.mu.Lock()
	listed, mark := d.mu.listed, d.isCleanLocked()
	d.mu.Unlock()
	if err != nil {
		if ctx.Err() != nil && listed { // what was closed need not be checked at the next start
			err = errors.Join(err, m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks))
		}
		return err
	}
	if !listed {
		return nil // as the directory was found, marker included
	}
	if err := m.writeCheckpoints(d, recoveryPoints, logStarts, highWatermarks); err != nil {
		return err
	}
	if !mark {
		m.logger.Warn("no clean shutdown: logs were not loaded", "dir", d.path)
		return nil
	}
	if err := checkpoint.WriteCleanShutdown(m.cfg.FS, d.cleanShutdown(), m.brokerEpoch.Load()); err != nil {
		return err
	}
	m.writeCleanState(d, states)
	return nil
}

// isCleanLocked reports whether a directory may be marked when its open logs are closed. Those that
// are not open must have been clean at start, or are noted in the file of those left alone.
func (d *dir) isCleanLocked() bool {
	if d.startedClean {
		return true
	}
	for _, l := range d.mu.parked {
		if !errors.Is(l.err, ErrLeftAlone) {
			return false
		}
	}
	return d.mu.loaded
}

// closeWorkers is how many logs of a directory are closed at once. Each waits for a handful of
// syncs, and the disk takes up many with one commit of its journal.
const closeWorkers = 16

// closeLogs closes the logs of a directory and returns what the next start may know of
// the live ones.
func (m *Manager) closeLogs(ctx context.Context, d *dir) (cleanStates, error) {
	entries := m.places.entriesOf(d)
	live := len(entries)
	entries = append(entries, m.places.allFutures(d)...)
	if err := m.syncNames(d, entries); err != nil {
		return nil, err
	}
	errs := make([]error, len(entries))
	closed := make([]*commitlog.CleanState, len(entries))
	work := make(chan int)
	var left atomic.Int64
	var closers sync.WaitGroup
	for range min(closeWorkers, len(entries)) {
		closers.Go(func() {
			for i := range work {
				if ctx.Err() != nil {
					left.Add(1)
					continue
				}
				closed[i], errs[i] = closeLog(entries[i].log)
			}
		})
	}
	for i := range entries {
		work <- i
	}
	close(work)
	closers.Wait()
	states := make(cleanStates, live)
	for i, s := range closed[:live] {
		if s != nil {
			states[entries[i].log.Partition()] = s
		}
	}
	if n := left.Load(); n > 0 {
		errs = append(errs, fmt.Errorf("%s: %d logs of %d are not closed, the next start checks them: %w", d.path, n, len(entries), ctx.Err()))
	}
	return states, errors.Join(errs...)
}

// syncNames makes the names of the logs' directories durable, at once instead of one by one.
func (m *Manager) syncNames(d *dir, entries []entry) error {
	if err := m.cfg.FS.SyncDir(d.path); err != nil {
		return err
	}
	for _, e := range entries {
		e.log.DirIsDurable()
	}
	return nil
}

func closeLog(l *commitlog.Log) (*commitlog.CleanState, error) {
	if err := l.Close(); err != nil {
		return nil, err
	}
	return l.CleanState()
}
