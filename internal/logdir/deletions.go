package logdir

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deletions holds what is to be removed and when: files that logs renamed to *.deleted and
// whole partitions. What is left at shutdown is dropped; the next start finds it by its
// name. (Kafka: the kafka-delete-logs task and the logs' own scheduled deletions.)
type deletions struct {
	added  chan struct{} // capacity 1: something was queued that may be due first
	halted atomic.Bool

	mu struct {
		sync.Mutex
		queue deletionHeap
	}
}

type deletion struct {
	due    time.Time
	remove func()
}

func (q *deletions) add(due time.Time, remove func()) {
	q.mu.Lock()
	heap.Push(&q.mu.queue, deletion{due, remove})
	first := q.mu.queue[0].due.Equal(due)
	q.mu.Unlock()
	if first {
		select {
		case q.added <- struct{}{}:
		default:
		}
	}
}

// removeDue runs what is due at now, and returns when the next is, if there is any. What is left after
// halt the next start removes.
func (q *deletions) removeDue(now time.Time) (next time.Time, ok bool) {
	for {
		if q.halted.Load() {
			return time.Time{}, false
		}
		d, due := q.pop(now)
		if !due {
			return d.due, d.remove != nil
		}
		d.remove()
	}
}

// pop takes the first deletion if it is due, and otherwise only shows it.
func (q *deletions) pop(now time.Time) (first deletion, due bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.queue) == 0 {
		return deletion{}, false
	}
	if first = q.mu.queue[0]; first.due.After(now) {
		return first, false
	}
	heap.Pop(&q.mu.queue)
	return first, true
}

// run removes what becomes due until ctx ends.
func (q *deletions) run(ctx context.Context, now func() time.Time) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.added:
		case <-timer.C:
		}
		if next, ok := q.removeDue(now()); ok {
			timer.Reset(next.Sub(now()))
		}
	}
}

// deletionHeap implements heap.Interface, the first to be due on top.
type deletionHeap []deletion

func (h deletionHeap) Len() int           { return len(h) }
func (h deletionHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h deletionHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deletionHeap) Push(x any)        { *h = append(*h, x.(deletion)) }

func (h *deletionHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = deletion{}
	*h = (*h)[:last]
	return d
}
