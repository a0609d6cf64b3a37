package commitlog

import (
	"fmt"
	"slices"
)

// SegmentOffsets answers ListOffsets 0, which knows segments and no records: at most count
// offsets where segments begin, newest first, from the newest segment on that was last written
// no later than before (ms, Latest or Earliest). The log end counts as the beginning of a
// segment that is written now, if the last one has records. Instead of what lies above the
// isolation's limit there is the limit. (Kafka's Log.legacyFetchOffsetsBefore.)
func (l *Log) SegmentOffsets(before int64, count int, upTo Isolation) ([]int64, error) {
	for {
		o := l.offsets.Load()
		offsets, err := l.segmentOffsets(o, before)
		if err == nil {
			offsets = capped(offsets, o.Limit(upTo))
			return offsets[:min(max(count, 0), len(offsets))], nil
		}
		if l.offsets.Load() == o {
			return nil, fmt.Errorf("%v: %w", l.partition, err)
		}
		// A deletion may have pulled a file away: look again.
	}
}

func (l *Log) segmentOffsets(o *Offsets, before int64) ([]int64, error) {
	starts := make([]int64, 0, len(o.segments)+1)
	for _, s := range o.segments {
		starts = append(starts, max(s.BaseOffset(), o.LogStart))
	}
	if o.active().Size() > 0 {
		starts = append(starts, o.End)
	}
	n, err := l.countWritten(o, len(starts), before)
	if err != nil {
		return nil, err
	}
	starts = starts[:n]
	slices.Reverse(starts)
	return starts, nil
}

// countWritten returns how many of the first n starts are up to the newest one that was
// written no later than before.
func (l *Log) countWritten(o *Offsets, n int, before int64) (int, error) {
	switch before {
	case Latest:
		return n, nil
	case Earliest:
		return 1, nil
	}
	if n > len(o.segments) { // the last is the log end
		if l.now().UnixMilli() <= before {
			return n, nil
		}
		n--
	}
	for ; n > 0; n-- {
		written, err := o.segments[n-1].ModTime()
		if err != nil {
			return 0, err
		}
		if written.UnixMilli() <= before {
			break
		}
	}
	return n, nil
}

// capped puts limit in the place of the offsets above it, which come first.
func capped(offsets []int64, limit int64) []int64 {
	above := 0
	for above < len(offsets) && offsets[above] > limit {
		above++
	}
	if above == 0 {
		return offsets
	}
	offsets = offsets[above-1:]
	offsets[0] = limit
	return offsets
}
