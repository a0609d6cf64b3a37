package logdir

import (
	"context"
	"errors"
	"sync"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
)

// Close stops the tasks, flushes and closes all logs, the directories in parallel, and
// leaves in each directory where all of that succeeded its checkpoints and the marker of a
// clean shutdown. Readers must have ended. When ctx ends, logs that are still open stay
// unflushed and the next start recovers them; an error tells what went wrong.
func (m *Manager) Close(ctx context.Context) error {
	m.tasks.Lock()
	m.tasks.closing = true
	if m.tasks.stop != nil {
		m.tasks.stop()
	}
	m.tasks.Unlock()
	m.tasks.Wait()

	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	errs := make([]error, len(m.dirs))
	var dirs sync.WaitGroup
	for i, d := range m.dirs {
		if d.holdsLogs && d.failure() == nil {
			dirs.Go(func() { errs[i] = m.closeDir(ctx, d) })
		}
	}
	dirs.Wait()
	return errors.Join(errors.Join(errs...), m.unlockAll())
}

func (m *Manager) closeDir(ctx context.Context, d *dir) error {
	if err := m.closeLogs(ctx, d); err != nil {
		return err
	}
	d.mu.Lock()
	listed, mark := d.mu.listed, d.isCleanLocked()
	d.mu.Unlock()
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
	return checkpoint.WriteCleanShutdown(m.cfg.FS, d.cleanShutdown(), m.brokerEpoch.Load())
}

// isCleanLocked reports whether a directory may be marked when its open logs are closed.
// Those that are not open must have been clean at start.
func (d *dir) isCleanLocked() bool {
	return d.startedClean || d.mu.loaded && len(d.mu.parked) == 0
}

func (m *Manager) closeLogs(ctx context.Context, d *dir) error {
	entries := m.entriesOf(d)
	errs := make([]error, len(entries))
	work := make(chan int)
	var closers sync.WaitGroup
	for range min(m.cfg.RecoveryThreads, len(entries)) {
		closers.Go(func() {
			for i := range work {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = entries[i].log.Close()
				}
			}
		})
	}
	for i := range entries {
		work <- i
	}
	close(work)
	closers.Wait()
	return errors.Join(errs...)
}
