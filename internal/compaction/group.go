package compaction

import (
	"math"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// A weight is what grouping asks of a segment.
type weight struct {
	base, next     int64 // offsets [base, next)
	bytes          int64
	offsets, times int64 // bytes of the indexes
	damaged        bool
}

func weigh(s commitlog.CleanSegment) (weight, error) {
	w := weight{base: s.BaseOffset(), next: s.Next, bytes: s.Bytes, damaged: len(s.Damages()) > 0}
	var err error
	w.offsets, w.times, err = s.IndexSizes()
	return w, err
}

// group returns how many of the first segments become one: neighbours whose batches, index
// entries and offsets fit into a segment (Kafka's groupSegmentsBySize). Empty segments join
// whatever their offsets are (KAFKA-12889). A segment with damage stays as it is, so it is a
// group of its own.
func group(segments []weight, c *commitlog.Config) int {
	sum := segments[0]
	if sum.damaged {
		return 1
	}
	for n := 1; n < len(segments); n++ {
		s := &segments[n]
		sum.bytes += s.bytes
		sum.offsets += s.offsets
		sum.times += s.times
		fits := sum.bytes <= int64(c.SegmentBytes) && sum.offsets <= int64(c.SegmentIndexBytes) && sum.times <= int64(c.SegmentIndexBytes) &&
			(s.bytes == 0 || s.next-1-sum.base <= math.MaxInt32)
		if !fits || s.damaged {
			return n
		}
	}
	return len(segments)
}
