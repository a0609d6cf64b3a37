package cleaner

import (
	"context"
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Refusals of CleanNow.
var (
	ErrUnknownPartition = errors.New("no such log")
	ErrNotCompacted     = errors.New("topic is not compacted: its cleanup.policy does not have compact")
	ErrPaused           = errors.New("cleaning is paused: the log is being moved, truncated or deleted")
	ErrNothingToClean   = errors.New("nothing to clean")
	ErrClosed           = errors.New("cleaner is closed")
	ErrAborted          = errors.New("cleaning was aborted: the log is being moved, truncated or deleted, or its policy has changed")
)

// CleanNow cleans a log whatever its dirty ratio, also one that is set aside as uncleanable, and
// with log.cleaner.enable=false. It keeps to every other rule. What is dirty is cleaned, in as
// many rounds as it takes; if nothing is, everything is cleaned again, for tombstones and markers
// whose time has come. With roll the active segment is closed first, so that it belongs to it.
// One call runs at a time; the others wait. It needs the memory of one more thread.
func (m *Manager) CleanNow(ctx context.Context, p topic.Partition, roll bool) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	if !m.join() {
		return nil, ErrClosed
	}
	defer m.work.Done()
	select {
	case m.forcing <- struct{}{}:
		defer func() { <-m.forcing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := m.prepareForced(p, roll); err != nil {
		return nil, err
	}
	cleaner := compaction.New(m.options(m.config()))
	return m.cleanRounds(ctx, cleaner, p)
}

// join makes Close wait for the caller.
func (m *Manager) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return false
	}
	m.work.Add(1)
	return true
}

func (m *Manager) prepareForced(p topic.Partition, roll bool) error {
	l, _ := m.logs.Place(p)
	switch {
	case l == nil:
		return fmt.Errorf("%v: %w", p, ErrUnknownPartition)
	case !l.Config().Compact:
		return fmt.Errorf("%v: %w", p, ErrNotCompacted)
	case roll:
		return l.Roll()
	}
	return nil
}

// cleanRounds cleans up to what was the first uncleanable offset at the beginning.
func (m *Manager) cleanRounds(ctx context.Context, cleaner *compaction.Cleaner, p topic.Partition) (*Outcome, error) {
	var sum *Outcome
	from := int64(noCheckpoint)
	for {
		c, err := m.claimForced(ctx, p, from)
		if err != nil {
			return sum, err
		}
		goal := c.plan.FirstUncleanable
		out, err := m.clean(cleaner, c)
		if sum != nil {
			out = sum.then(out)
		}
		sum = out
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			err = ErrAborted
		}
		if err != nil {
			return sum, fmt.Errorf("%v: %w", p, err)
		}
		m.mu.Lock()
		delete(m.mu.uncleanable[c.dir], p)
		m.mu.history[p], m.mu.lastForced = sum, sum
		m.mu.Unlock()
		if from = out.EndOffset; from >= goal {
			return sum, nil
		}
	}
}

// claimForced gives a log to a forced cleaning, behind the task that it may have. from is where
// the round before ended.
func (m *Manager) claimForced(ctx context.Context, p topic.Partition, from int64) (*cleaning, error) {
	for {
		switch t, paused := m.states.running(p); {
		case paused:
			return nil, fmt.Errorf("%v: %w", p, ErrPaused)
		case t != nil:
			select {
			case <-t.done:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c, err := m.planForced(ctx, p, from)
		if err != nil {
			return nil, err
		}
		if m.begin(c) {
			return c, nil
		}
		c.cancel()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (m *Manager) planForced(ctx context.Context, p topic.Partition, from int64) (*cleaning, error) {
	l, dir := m.logs.Place(p)
	if l == nil {
		return nil, fmt.Errorf("%v: %w", p, ErrUnknownPartition)
	}
	config, checkpoint := l.Config(), m.checkpoints.get(dir, p)
	a, err := assessForced(shapeOf(l), checkpoint, &config, m.now())
	if err != nil {
		return nil, err
	}
	if a.cleanableBytes == 0 {
		return nil, fmt.Errorf("%v: %w: it is held back by the %s", p, ErrNothingToClean, a.limit)
	}
	plan := a.plan()
	plan.FirstDirty = max(plan.FirstDirty, from)
	c := m.newCleaning(ctx, l, dir, plan)
	c.forced = true
	if checkpoint <= l.Offsets().End {
		c.cleanTo = max(c.cleanTo, checkpoint)
	}
	return c, nil
}
