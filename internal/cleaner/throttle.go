package cleaner

import (
	"context"
	"sync"
	"time"
)

// A Throttle bounds the bytes that all cleaners together read and write in a second
// (log.cleaner.io.max.bytes.per.second). It is safe for concurrent use.
//
// Bytes are paid for afterwards: who has used some waits until they would have been allowed.
// Nothing is saved up, so that an idle time is no licence for a burst.
type Throttle struct {
	now func() time.Time

	mu   sync.Mutex
	rate float64   // bytes per second
	paid time.Time // when all that was used is paid for
}

// NewThrottle returns a Throttle for a number of bytes per second; Kafka's default, the
// largest float64, is no limit. now may be nil.
func NewThrottle(bytesPerSecond float64, now func() time.Time) *Throttle {
	if now == nil {
		now = time.Now
	}
	return &Throttle{rate: bytesPerSecond, now: now}
}

// SetRate changes the limit, also for what is not paid for yet by who comes next.
func (t *Throttle) SetRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.paid.After(now) && bytesPerSecond > 0 {
		owed := float64(t.paid.Sub(now)) * t.rate / bytesPerSecond
		t.paid = now.Add(time.Duration(min(owed, float64(time.Hour))))
	}
	t.rate = bytesPerSecond
}

// Use pays for bytes: it returns when they are allowed, or when ctx ends, with its error. A nil
// Throttle allows everything.
func (t *Throttle) Use(ctx context.Context, bytes int) error {
	wait := t.charge(bytes)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// charge returns how long to wait.
func (t *Throttle) charge(bytes int) time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cost := float64(bytes) / t.rate * float64(time.Second)
	if t.rate <= 0 || cost < 1 {
		return 0
	}
	now := t.now()
	if t.paid.Before(now) {
		t.paid = now
	}
	t.paid = t.paid.Add(time.Duration(min(cost, float64(time.Hour))))
	return t.paid.Sub(now)
}
