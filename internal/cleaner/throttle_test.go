package cleaner

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(1000, nil)
		took := func(bytes int) time.Duration {
			t.Helper()
			began := time.Now()
			must(t, th.Use(t.Context(), bytes))
			return time.Since(began)
		}
		f := func(got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("took %v, want %v", got, want)
			}
		}
		f(took(500), 500*time.Millisecond)
		f(took(2000), 2*time.Second)
		time.Sleep(time.Hour) // idle time is no licence for a burst
		f(took(1000), time.Second)
		th.SetRate(10_000)
		f(took(1000), 100*time.Millisecond)
		th.SetRate(math.MaxFloat64)
		f(took(1<<40), 0)
		if err := (*Throttle)(nil).Use(t.Context(), 1<<40); err != nil {
			t.Error(err)
		}
	})
}

// Two cleaners share the rate.
func TestThrottleShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(1000, nil)
		began := time.Now()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				for range 10 {
					_ = th.Use(t.Context(), 100)
				}
			})
		}
		both.Wait()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("2000 bytes took %v", took)
		}
	})
}

func TestThrottleAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := NewThrottle(1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := th.Use(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
