package wire

import (
	"context"
	"sync"
)

// readBufferSize is also the longest frame that is handled in place.
const readBufferSize = 64 << 10

// bufferClasses are the capacities that buffers are kept in. The fifth holds a batch of
// 1 MB, the default limit of most clients, with what surrounds it.
var bufferClasses = [...]int{4 << 10, 16 << 10, readBufferSize, 256 << 10, 1<<20 + 64<<10, 4 << 20}

var bufferPools [len(bufferClasses)]sync.Pool

// A buffer has one owner at a time.
type buffer struct{ b []byte }

// getBuffer returns a buffer whose capacity is at least n and whose length is 0.
func getBuffer(n int) *buffer {
	for i, size := range bufferClasses {
		if n <= size {
			if b, ok := bufferPools[i].Get().(*buffer); ok {
				return b
			}
			return &buffer{make([]byte, 0, size)}
		}
	}
	return &buffer{make([]byte, 0, n)}
}

// putBuffer gives b back. One that has grown goes to the class it has grown into; one
// beyond the classes goes to the garbage collector.
func putBuffer(b *buffer) {
	size := cap(b.b)
	if size > bufferClasses[len(bufferClasses)-1] {
		return
	}
	for i := len(bufferClasses) - 1; i >= 0; i-- {
		if size >= bufferClasses[i] {
			b.b = b.b[:0]
			bufferPools[i].Put(b)
			return
		}
	}
}

// A Budget bounds the bytes of what many do at once, such as all long frames that are being read or
// handled. Those that find nothing left wait, in order of arrival.
type Budget struct {
	size int64

	mu struct {
		sync.Mutex
		used    int64
		waiters []budgetWaiter // in order of arrival
	}
}

type budgetWaiter struct {
	n     int64
	ready chan struct{} // closed with the bytes already counted as used
}

// NewBudget returns a Budget of so many bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// Acquire waits until n bytes are free. More than the whole budget counts as the whole.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	n = min(n, b.size)
	b.mu.Lock()
	if len(b.mu.waiters) == 0 && b.mu.used+n <= b.size {
		b.mu.used += n
		b.mu.Unlock()
		return nil
	}
	w := budgetWaiter{n, make(chan struct{})}
	b.mu.waiters = append(b.mu.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		b.abandon(w)
		return ctx.Err()
	}
}

// TryAcquire takes n bytes if they are free and nobody waits.
func (b *Budget) TryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.waiters) > 0 || b.mu.used+n > b.size {
		return false
	}
	b.mu.used += n
	return true
}

// Contended reports whether somebody waits.
func (b *Budget) Contended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.waiters) > 0
}

func (b *Budget) abandon(w budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.mu.waiters {
		if b.mu.waiters[i].ready == w.ready {
			b.mu.waiters = append(b.mu.waiters[:i], b.mu.waiters[i+1:]...)
			b.grantLocked()
			return
		}
	}
	b.mu.used -= w.n // granted in the meantime
	b.grantLocked()
}

// Release gives n bytes back that were acquired at once.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used -= min(n, b.size)
	b.grantLocked()
}

func (b *Budget) grantLocked() {
	for len(b.mu.waiters) > 0 && b.mu.used+b.mu.waiters[0].n <= b.size {
		b.mu.used += b.mu.waiters[0].n
		close(b.mu.waiters[0].ready)
		b.mu.waiters = b.mu.waiters[1:]
	}
}
