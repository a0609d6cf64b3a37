package cleaner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A pool is the threads that run with one configuration, and the retention of compacted logs beside them.
type pool struct {
	stop    context.CancelFunc
	threads []*thread
	work    sync.WaitGroup
}

// A thread cleans one log after the other.
type thread struct {
	alive  atomic.Bool
	atWork atomic.Pointer[cleaning] // nil: it waits
	last   atomic.Pointer[Outcome]  // nil: it has cleaned nothing yet
}

// startThreads starts threads. The caller holds m.changing.
func (m *Manager) startThreads(c Config) {
	ctx, stop := context.WithCancel(m.life)
	p := &pool{stop: stop}
	for range c.threads() {
		t := &thread{}
		t.alive.Store(true)
		p.threads = append(p.threads, t)
		p.work.Go(func() {
			defer t.alive.Store(false)
			m.run(ctx, t, c)
		})
	}
	if c.threads() > 0 {
		p.work.Go(func() { m.runRetention(ctx, c.backoff()) })
	}
	m.mu.Lock()
	m.mu.pool = p
	m.mu.Unlock()
}

// stopThreads ends the threads and waits for them. The caller holds m.changing.
func (m *Manager) stopThreads() {
	m.mu.Lock()
	p := m.mu.pool
	m.mu.Unlock()
	if p != nil {
		p.stop()
		p.work.Wait()
	}
}

// run is a thread's life: it pauses for log.cleaner.backoff.ms whenever there is nothing to do.
func (m *Manager) run(ctx context.Context, t *thread, c Config) {
	cleaner := compaction.New(m.options(c))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := c.backoff()
		if run := m.claim(ctx); run != nil {
			t.atWork.Store(run)
			out, err := m.clean(cleaner, run)
			t.atWork.Store(nil)
			if err == nil {
				t.last.Store(out)
				pause = 0
			}
		}
		timer.Reset(pause)
	}
}

func (m *Manager) options(c Config) compaction.Options {
	return compaction.Options{
		MapBytes: c.mapBytes(), LoadFactor: c.LoadFactor, BufferBytes: c.BufferBytes / max(c.Threads, 1),
		MaxMessageBytes: c.MaxMessageBytes, Throttle: m.throttle, Logger: m.logger, Now: m.now, Random: m.random,
	}
}

// A cleaning is a task that cleans one log.
type cleaning struct {
	task
	ctx      context.Context
	log      *commitlog.Log
	dir      string
	plan     compaction.Plan
	forced   bool
	cleanTo  int64 // where the log is clean up to already
	started  time.Time
	progress compaction.Progress
}

func (m *Manager) newCleaning(ctx context.Context, l *commitlog.Log, dir string, p compaction.Plan) *cleaning {
	c := &cleaning{log: l, dir: dir, plan: p, cleanTo: p.FirstDirty, started: m.now()}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.plan.Progress = &c.progress
	c.task.cleaning = c
	return c
}

// begin takes the log of a cleaning, if it is still there and has no state.
func (m *Manager) begin(c *cleaning) bool {
	p := c.log.Partition()
	if !m.states.begin(p, &c.task) {
		return false
	}
	if l, _ := m.logs.Place(p); l != c.log {
		m.states.end(p, &c.task)
		return false
	}
	return true
}

// errNoProgress sets a log aside that would be cleaned for ever (KAFKA-8764).
var errNoProgress = errors.New("cleaning makes no progress")

// clean runs a cleaning that has begun, and ends it. After a nil error the log is cleaner.
func (m *Manager) clean(cleaner *compaction.Cleaner, c *cleaning) (*Outcome, error) {
	p := c.log.Partition()
	before := c.log.Size()
	result, err := cleaner.Clean(c.ctx, c.log, c.plan)
	if err == nil && result.EndOffset <= c.plan.FirstDirty {
		err = fmt.Errorf("%w: it ends at offset %d, where it began", errNoProgress, result.EndOffset)
	}
	if err == nil {
		err = m.noteClean(c, result.EndOffset)
	}
	out := newOutcome(c, &result, before, c.log.Size(), m.now(), err)
	if err != nil && (m.states.isAborted(&c.task) || c.ctx.Err() != nil) {
		err = context.Canceled
	}
	m.note(p, out, err)
	m.states.end(p, &c.task)
	c.cancel()
	switch {
	case err == nil:
		m.logger.Info("log cleaned", "partition", p, "from", out.FirstDirty, "to", out.EndOffset, "before", out.BytesBefore, "after", out.BytesAfter, "ms", out.TookMs)
	case errors.Is(err, context.Canceled):
		m.logger.Info("cleaning aborted", "partition", p)
	default:
		m.failed(p, c.log, c.dir, err)
	}
	return out, err
}

// noteClean notes how far a log is clean, unless somebody wants the log: it may be truncated next.
func (m *Manager) noteClean(c *cleaning, end int64) error {
	if m.states.isAborted(&c.task) {
		return context.Canceled
	}
	return m.checkpoints.set(c.dir, map[topic.Partition]int64{c.log.Partition(): max(end, c.cleanTo)})
}
