package commitlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// Timestamps of a lookup that are none (ListOffsets).
const (
	Latest                int64 = -1
	Earliest              int64 = -2
	MaxTimestamp          int64 = -3
	EarliestLocal         int64 = -4
	LatestTiered          int64 = -5
	EarliestPendingUpload int64 = -6
)

// A LookupRequest asks for an offset by time.
type LookupRequest struct {
	Timestamp int64 // ms, or one of the special ones
	Isolation Isolation
}

// Lookup returns the first record, in offset order, whose timestamp is at least the asked
// one and whose offset is below the isolation's limit; ok is false if there is none.
// Special timestamps answer with a place in the log, for which Timestamp is -1 except for
// MaxTimestamp: the first record that has the largest timestamp. Lookup takes no lock.
func (l *Log) Lookup(r LookupRequest) (t segment.TimestampOffset, ok bool, err error) {
	for {
		o := l.offsets.Load()
		t, ok, err = l.lookup(o, r)
		if err == nil || l.offsets.Load() == o {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", l.partition, err)
	}
	return t, ok, err
}

func (l *Log) lookup(o *Offsets, r LookupRequest) (segment.TimestampOffset, bool, error) {
	switch r.Timestamp {
	case Latest:
		offset := o.Limit(r.Isolation)
		epoch, _ := l.epochs.epochFor(offset, o.End) // nearly always the last, which needs no proof
		return segment.TimestampOffset{Timestamp: -1, Offset: offset, LeaderEpoch: epoch}, true, nil
	case Earliest, EarliestLocal:
		return segment.TimestampOffset{Timestamp: -1, Offset: o.LogStart, LeaderEpoch: l.EpochForOffset(o.LogStart)}, true, nil
	case MaxTimestamp:
		t, ok, err := l.lookupMax(o)
		return t, ok && t.Offset < o.Limit(r.Isolation), err
	case LatestTiered, EarliestPendingUpload:
		return segment.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}, false, nil
	}
	for _, s := range o.segments {
		largest, err := s.LargestTimestamp()
		if err != nil {
			return segment.TimestampOffset{}, false, err
		}
		shown, err := s.MaxTimestampShown()
		if err != nil {
			return segment.TimestampOffset{}, false, err
		}
		if max(largest, shown) < r.Timestamp {
			continue
		}
		// It may be empty, and then have the time of its file, or have the record below the
		// log start. Kafka asks no other segment then.
		t, ok, err := s.OffsetByTimestamp(r.Timestamp, o.LogStart)
		if ok || err != nil {
			return t, ok && t.Offset < o.Limit(r.Isolation), err
		}
	}
	return segment.TimestampOffset{}, false, nil
}

// lookupMax asks the segments in the order of their largest timestamps. The first one has the record, unless all its
// batches are without timestamps and its time index says something else: the messages had some before they were
// converted to format v0, or the file is another segment's.
func (l *Log) lookupMax(o *Offsets) (t segment.TimestampOffset, ok bool, err error) {
	type candidate struct {
		segment   *segment.Segment
		timestamp int64
	}
	var candidates []candidate
	for _, s := range o.segments {
		timestamp, err := s.MaxTimestampShown()
		if err != nil {
			return t, false, err
		}
		if timestamp >= 0 {
			candidates = append(candidates, candidate{s, timestamp})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.timestamp, a.timestamp) })
	for _, c := range candidates {
		if t, ok, err = c.segment.MaxTimestampRecord(); ok || err != nil {
			break
		}
	}
	return t, ok, err
}
