package metrics

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets of a Histogram: the first ends at firstBound, each further one at twice the bound
// before it, and the last has no end.
const (
	firstBoundShift = 16 // 2^16 ns = 65.5 us
	bucketCount     = 21 // the last but one ends at 2^35 ns = 34 s
)

// A Histogram counts durations. The zero value is empty. Observe may be called concurrently,
// and costs two atomic additions.
type Histogram struct {
	buckets [bucketCount]atomic.Int64
	sum     atomic.Int64 // ns
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
}

// bucketOf finds the first bucket whose bound is not below d.
func bucketOf(d time.Duration) int {
	if d <= 1<<firstBoundShift {
		return 0
	}
	return min(bits.Len64(uint64(d-1))-firstBoundShift, bucketCount-1)
}

// boundOf is the bound of a bucket that has one.
func boundOf(bucket int) time.Duration { return 1 << (firstBoundShift + bucket) }

// Sum returns a histogram of all that others have counted.
func Sum(list ...*Histogram) *Histogram {
	sum := &Histogram{}
	for _, h := range list {
		for i := range h.buckets {
			sum.buckets[i].Add(h.buckets[i].Load())
		}
		sum.sum.Add(h.sum.Load())
	}
	return sum
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (count int64) {
	for i := range h.buckets {
		count += h.buckets[i].Load()
	}
	return count
}
