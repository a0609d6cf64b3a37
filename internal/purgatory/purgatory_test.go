package purgatory

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitIsSignalled(t *testing.T) {
	f := func(expect int64, wakes []int64, want Reason) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var a, b List
			o := New()
			o.Start(2)
			o.Watch(&a)
			o.Watch(&b)
			o.Expect(expect)
			go func() {
				for i, n := range wakes {
					[]*List{&a, &b}[i%2].Wake(n)
				}
			}()
			if got := o.Wait(t.Context(), time.Now().Add(time.Second)); got != want {
				t.Errorf("expect %d, wakes %v: got %v, want %v", expect, wakes, got, want)
			}
			o.Stop()
			if a.Len() != 0 || b.Len() != 0 {
				t.Errorf("lists hold %d and %d operations after Stop", a.Len(), b.Len())
			}
		})
	}
	f(1, []int64{1}, Signalled)
	f(100, []int64{50, 49}, Expired)
	f(100, []int64{50, 50}, Signalled)
	f(1, nil, Expired)
	f(1<<40, []int64{1}, Expired)
}

func TestWakeAllSignalsWhateverIsExpected(t *testing.T) {
	var l List
	o := New()
	o.Start(1)
	o.Watch(&l)
	o.Expect(1 << 60)
	for range 5 { // more than once: the number of missing bytes must not wrap
		l.WakeAll()
	}
	if got := o.Wait(t.Context(), time.Now().Add(time.Hour)); got != Signalled {
		t.Errorf("got %v, want Signalled", got)
	}
}

func TestWakeBetweenWatchAndExpectIsNotLost(t *testing.T) {
	var l List
	o := New()
	o.Start(1)
	o.Watch(&l)
	l.Wake(1)
	o.Expect(1 << 40)
	if got := o.Wait(t.Context(), time.Now().Add(time.Hour)); got != Signalled {
		t.Errorf("got %v, want Signalled", got)
	}
}

func TestWaitCancelled(t *testing.T) {
	var l List
	o := New()
	o.Start(1)
	o.Watch(&l)
	o.Expect(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := o.Wait(ctx, time.Now().Add(time.Hour)); got != Cancelled {
		t.Errorf("got %v, want Cancelled", got)
	}
}

func TestSignalOfLastUseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l List
		o := New()
		o.Start(1)
		o.Watch(&l)
		l.WakeAll()
		o.Stop()
		o.Start(1)
		o.Watch(&l)
		o.Expect(1)
		if got := o.Wait(t.Context(), time.Now().Add(time.Second)); got != Expired {
			t.Errorf("got %v, want Expired", got)
		}
		o.Stop()
	})
}

// Operations come and go while keys are woken; in the end every list is empty.
func TestConcurrent(t *testing.T) {
	lists := make([]List, 4)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			o := New()
			for j := range 200 {
				o.Start(len(lists))
				for k := range lists {
					o.Watch(&lists[k])
				}
				o.Expect(1)
				lists[(i+j)%len(lists)].Wake(1)
				if got := o.Wait(t.Context(), time.Now().Add(time.Minute)); got != Signalled {
					t.Errorf("got %v, want Signalled", got)
				}
				o.Stop()
			}
		})
	}
	wg.Wait()
	for i := range lists {
		if lists[i].Len() != 0 || lists[i].mu.head != nil {
			t.Errorf("list %d is not empty", i)
		}
	}
}

func TestOperationAllocatesOnce(t *testing.T) {
	var l List
	o := New()
	if n := testing.AllocsPerRun(100, func() {
		o.Start(1)
		o.Watch(&l)
		o.Expect(1)
		l.Wake(1)
		o.Wait(context.Background(), time.Time{})
		o.Stop()
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func BenchmarkWakeNobody(b *testing.B) {
	var l List
	for b.Loop() {
		l.Wake(1)
	}
}
