package purgatory

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A List is the operations that watch one key. The zero value is empty and ready. All
// methods may be called concurrently.
type List struct {
	count atomic.Int32 // of watches, so that Wake costs nothing when there are none

	// mu guards the links of all watches in the list.
	mu struct {
		sync.Mutex
		head *watch
	}
}

// A watch ties an operation to a list.
type watch struct {
	prev, next *watch
	list       *List
	op         *Operation
}

// Len returns how many operations watch l.
func (l *List) Len() int { return int(l.count.Load()) }

// Wake says that n bytes came. It signals the operations that now have what they expect.
func (l *List) Wake(n int64) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := l.mu.head; w != nil; w = w.next {
		w.op.arrived(n)
	}
}

// WakeAll says that something other than bytes happened: every operation looks again.
func (l *List) WakeAll() { l.Wake(math.MaxInt64 >> 1) }

// An Operation waits for its Lists. It is used by one goroutine; only the Lists call it
// from others.
type Operation struct {
	signal  chan struct{} // holds one signal
	missing atomic.Int64  // bytes until the next signal; not positive: every Wake signals
	watches []watch
	timer   *time.Timer
}

// New returns an Operation that watches nothing. It may be used again after Stop.
func New() *Operation {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Operation{signal: make(chan struct{}, 1), timer: t}
}

// Start begins a wait for at most n Lists. Until Expect every Wake leaves a signal.
func (o *Operation) Start(n int) {
	o.missing.Store(0)
	select {
	case <-o.signal: // of the last use
	default:
	}
	if cap(o.watches) < n {
		o.watches = make([]watch, 0, n)
	}
}

// Watch adds o to l. It panics when Start announced fewer lists.
func (o *Operation) Watch(l *List) {
	if len(o.watches) == cap(o.watches) {
		panic("BUG: an operation watches more lists than it announced")
	}
	o.watches = append(o.watches, watch{list: l, op: o})
	w := &o.watches[len(o.watches)-1] // stays where it is: the slice has room
	l.mu.Lock()
	defer l.mu.Unlock()
	w.next = l.mu.head
	if w.next != nil {
		w.next.prev = w
	}
	l.mu.head = w
	l.count.Add(1)
}

// Expect says after how many bytes, over all Lists, o wants to be signalled.
func (o *Operation) Expect(n int64) { o.missing.Store(n) }

func (o *Operation) arrived(n int64) {
	if o.missing.Add(-n) > 0 {
		return
	}
	o.missing.Store(0) // so that it never wraps
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// A Reason says why Wait returned.
type Reason int

// The reasons.
const (
	Signalled Reason = iota // something happened: look
	Expired                 // the deadline has come
	Cancelled               // the context has ended
)

// Wait waits for a signal, until the deadline or the end of ctx.
func (o *Operation) Wait(ctx context.Context, deadline time.Time) Reason {
	select {
	case <-o.signal:
		return Signalled
	default:
	}
	left := time.Until(deadline)
	if left <= 0 {
		return Expired
	}
	o.timer.Reset(left)
	defer o.timer.Stop()
	select {
	case <-o.signal:
		return Signalled
	case <-o.timer.C:
		return Expired
	case <-ctx.Done():
		return Cancelled
	}
}

// Stop ends the wait: o watches nothing any more.
func (o *Operation) Stop() {
	for i := range o.watches {
		o.watches[i].unlink()
		o.watches[i] = watch{}
	}
	o.watches = o.watches[:0]
}

func (w *watch) unlink() {
	w.list.mu.Lock()
	defer w.list.mu.Unlock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		w.list.mu.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.list.count.Add(-1)
}
