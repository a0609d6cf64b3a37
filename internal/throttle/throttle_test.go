package throttle

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// took returns how long a use of bytes waits.
func took(t *testing.T, th *Throttler, bytes int) time.Duration {
	t.Helper()
	began := time.Now()
	if err := th.Use(t.Context(), bytes); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func TestThrottler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := New(1000)
		f := func(bytes int, want time.Duration) {
			t.Helper()
			if got := took(t, th, bytes); got != want {
				t.Errorf("%d bytes took %v, want %v", bytes, got, want)
			}
		}
		f(500, 500*time.Millisecond)
		f(2000, 2*time.Second)
		f(0, 0)
		f(10_000_000, 10_000*time.Second)
		time.Sleep(time.Hour) // idle time is no licence for a burst
		f(1000, time.Second)
		th.SetRate(10_000)
		f(1000, 100*time.Millisecond)
		th.SetRate(0.25)
		f(1, 4*time.Second)
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(th *Throttler) {
			t.Helper()
			for range 3 {
				if got := took(t, th, 1<<40); got != 0 {
					t.Errorf("took %v", got)
				}
			}
		}
		f(nil)
		f(&Throttler{})
		for _, rate := range []float64{0, -1, math.MaxFloat64, math.Inf(1), math.NaN()} {
			f(New(rate))
		}
	})
}

// Those who use it share the rate.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := New(1000)
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
		if took := time.Since(began); took.Round(time.Microsecond) != 2*time.Second {
			t.Errorf("2000 bytes took %v", took)
		}
	})
}

// A change reaches those that wait: what they have waited counts.
func TestSetRateWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(rate float64, want time.Duration) {
			t.Helper()
			th := New(10)
			change := time.AfterFunc(10*time.Second, func() { th.SetRate(rate) })
			defer change.Stop()
			if got := took(t, th, 1100); got != want {
				t.Errorf("at 10 for 10 s, then %v: took %v, want %v", rate, got, want)
			}
			th.SetRate(10)
			if got := took(t, th, 10); got != time.Second {
				t.Errorf("after it: took %v, want a second", got)
			}
		}
		f(1000, 11*time.Second)
		f(1, 1010*time.Second)
		f(0, 10*time.Second)
		f(math.MaxFloat64, 10*time.Second)
	})
}

// A wait ends with its context. What was used is charged all the same.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := New(1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := th.Use(ctx, 3000); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
		if err := th.Use(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its end: got %v", err)
		}
		if got := took(t, th, 1000); got != 3*time.Second {
			t.Errorf("the next took %v, want 3 s", got)
		}
	})
}
