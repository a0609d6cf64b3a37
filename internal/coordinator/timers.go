package coordinator

import (
	"container/heap"
	"time"
)

// Timers is a set of deadlines, at most one per key. The zero value is empty. It is part
// of a machine's state and used as a machine is: by one goroutine at a time.
type Timers[K comparable] struct {
	heap  timerHeap[K]
	byKey map[K]*timer[K]
	count uint64
}

type timer[K comparable] struct {
	key   K
	at    time.Time
	order uint64 // among equal deadlines: the one that was set first
	index int    // in the heap
}

// Set gives key a deadline, in place of the one it had.
func (t *Timers[K]) Set(key K, at time.Time) {
	t.count++
	if have, ok := t.byKey[key]; ok {
		have.at, have.order = at, t.count
		heap.Fix(&t.heap, have.index)
		return
	}
	if t.byKey == nil {
		t.byKey = make(map[K]*timer[K])
	}
	n := &timer[K]{key: key, at: at, order: t.count}
	t.byKey[key] = n
	heap.Push(&t.heap, n)
}

// Cancel takes the key's deadline away, if it has one.
func (t *Timers[K]) Cancel(key K) {
	if have, ok := t.byKey[key]; ok {
		heap.Remove(&t.heap, have.index)
		delete(t.byKey, key)
	}
}

// Next is the earliest deadline.
func (t *Timers[K]) Next() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].at, true
}

// PopDue removes the key with the earliest deadline, if that is not after now.
func (t *Timers[K]) PopDue(now time.Time) (key K, ok bool) {
	if len(t.heap) == 0 || t.heap[0].at.After(now) {
		return key, false
	}
	n := heap.Pop(&t.heap).(*timer[K])
	delete(t.byKey, n.key)
	return n.key, true
}

type timerHeap[K comparable] []*timer[K]

func (h timerHeap[K]) Len() int { return len(h) }

func (h timerHeap[K]) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}

func (h timerHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap[K]) Push(x any) {
	n := x.(*timer[K])
	n.index = len(*h)
	*h = append(*h, n)
}

func (h *timerHeap[K]) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
