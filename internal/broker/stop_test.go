package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestShareOfTheStop(t *testing.T) {
	f := func(logs bool, left, wantSoft, wantHard time.Duration) {
		t.Helper()
		p := part{logs: logs}
		if soft, hard := p.share(left); soft != wantSoft || hard != wantHard {
			t.Errorf("%v left, logs %v: got %v and %v, want %v and %v", left, logs, soft, hard, wantSoft, wantHard)
		}
	}
	f(false, 10*time.Second, 2*time.Second, 2500*time.Millisecond)
	f(true, 10*time.Second, 8*time.Second, 9500*time.Millisecond)
	f(false, -time.Second, 0, 0)
	f(true, 0, 0, 0)
}

// Whatever hangs, a stop is over in its time, each part has had some, and the order is kept.
func TestStopIsBounded(t *testing.T) {
	const limit = 10 * time.Second
	f := func(hanging ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // a part that hangs is left behind, and nobody has waited for it
			var asked []string
			released := make(chan struct{})
			b := &Broker{}
			for _, name := range []string{"HTTP", "log directories", "metadata log", "groups", "cleaner", "connections"} {
				stop := func(ctx context.Context) error {
					mu.Lock()
					asked = append(asked, name)
					mu.Unlock()
					if ctx.Err() != nil {
						t.Errorf("%s: no time is left", name)
					}
					if slices.Contains(hanging, name) {
						<-released
					}
					return nil
				}
				b.started = append(b.started, part{name: name, stop: stop, logs: name == "log directories"})
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			err := b.stop(ctx)
			if took := time.Since(began); took > limit {
				t.Errorf("%v hang: the stop took %v", hanging, took)
			}
			if errors.Is(err, context.DeadlineExceeded) != (len(hanging) > 0) {
				t.Errorf("%v hang: got %v", hanging, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"connections", "cleaner", "groups", "metadata log", "log directories", "HTTP"}; !slices.Equal(asked, want) {
				t.Errorf("%v hang: stopped %v, want %v", hanging, asked, want)
			}
			close(released)
			synctest.Wait()
		})
	}
	f()
	f("connections")
	f("log directories")
	f("HTTP", "log directories", "metadata log", "groups", "cleaner", "connections")
}

// Without a deadline a stop takes the time that it needs.
func TestStopWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Broker{}
		b.onStop("slow", func(ctx context.Context) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		if err := b.stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
