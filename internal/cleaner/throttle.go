package cleaner

import (
	"context"
	"math"
	"sync"
	"time"
)

// A Throttle bounds the bytes that cleaners read and write together in a second
// (log.cleaner.io.max.bytes.per.second). It is safe for concurrent use.
type Throttle struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu   sync.Mutex
	rate float64 // bytes per second
	free time.Time
}

// NewThrottle returns a Throttle for a number of bytes per second.
func NewThrottle(bytesPerSecond float64, now func() time.Time) *Throttle {
	return &Throttle{rate: bytesPerSecond, now: now}
}

// SetRate changes the limit; math.MaxFloat64, Kafka's default, is none.
func (t *Throttle) SetRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = min(bytesPerSecond, math.MaxFloat64)
}
