// Package throttle holds work to a number of bytes per second (Kafka's Throttler).
package throttle

import (
	"context"
	"math"
	"sync"
	"time"
)

// A Throttler holds all that use it together to a rate in bytes per second. What is not above 0 is
// no limit, and so is the largest float64, Kafka's default for cleaners. The zero value has no
// limit. All methods are safe for concurrent use.
//
// Bytes are paid for afterwards: whoever has used some waits until they would have been allowed, and
// first come is first served. Nothing is saved up, so that an idle time is no licence for a burst.
type Throttler struct {
	mu struct {
		sync.Mutex
		rate    float64
		used    float64       // bytes
		paid    float64       // bytes. Invariant: paid <= used
		at      time.Time     // when paid was right
		changed chan struct{} // closed when the rate changes; nil: nobody waits for it
	}
}

// New returns a Throttler.
func New(bytesPerSecond float64) *Throttler {
	t := &Throttler{}
	t.SetRate(bytesPerSecond)
	return t
}

// SetRate changes the limit, also for those that wait already.
func (t *Throttler) SetRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
	t.mu.rate = bytesPerSecond
	if t.mu.changed != nil {
		close(t.mu.changed)
		t.mu.changed = nil
	}
}

// Use pays for bytes that were, or will be, read and written: it returns when they are allowed, or
// when ctx ends, with its error. They are charged in any case. A nil Throttler has no limit.
func (t *Throttler) Use(ctx context.Context, bytes int) error {
	if t == nil {
		return ctx.Err()
	}
	for goal := t.charge(bytes); ; {
		wait, changed := t.until(goal)
		if wait <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// charge adds bytes to what is used, and returns how much has to be paid for until they are.
func (t *Throttler) charge(bytes int) (goal float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
	t.mu.used += float64(bytes)
	return t.mu.used
}

// until returns how long it takes until goal bytes are paid for, an hour at most, and what is
// closed when that changes.
func (t *Throttler) until(goal float64) (time.Duration, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked()
	if t.mu.paid >= goal {
		return 0, nil
	}
	if t.mu.changed == nil {
		t.mu.changed = make(chan struct{})
	}
	wait := (goal - t.mu.paid) / t.mu.rate * float64(time.Second)
	return time.Duration(min(wait, float64(time.Hour))), t.mu.changed
}

// settleLocked pays for what was allowed since the last time.
func (t *Throttler) settleLocked() {
	now := time.Now()
	if t.mu.rate > 0 && t.mu.rate < math.MaxFloat64 {
		t.mu.paid = min(t.mu.used, t.mu.paid+t.mu.rate*now.Sub(t.mu.at).Seconds())
	} else {
		t.mu.paid = t.mu.used
	}
	t.mu.at = now
}
