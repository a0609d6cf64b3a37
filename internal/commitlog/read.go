package commitlog

import (
	"fmt"

	"github.com/gregor-kafka/gregor/segment"
)

// A ReadResult is a stretch of the log. Its Slice is a view of a file: the caller releases
// it when the bytes are sent. The slice tells where its first batch begins, which may be
// below the offset that was asked for (clients skip what they did not want), and whether
// the byte limit cut that batch.
type ReadResult struct {
	Slice   segment.Slice // may be empty
	Offsets *Offsets      // the state that bounded the read

	// Aborted lists, for ReadCommitted, the aborted transactions that may have records in
	// the slice, and perhaps some that have none.
	Aborted []segment.AbortedTxn
}

// Read returns a slice of at most maxBytes that begins with the batch that holds start, or
// with the next one if compaction left a hole, and ends before the isolation's limit.
// minOne allows more than maxBytes for the first batch. The slice is empty at the limit
// and beyond; outside the log the error matches ErrOffsetOutOfRange, and the result has
// the Offsets all the same. Read takes no lock.
func (l *Log) Read(start int64, maxBytes int, upTo Isolation, minOne bool) (ReadResult, error) {
	for {
		o := l.offsets.Load()
		r, err := l.read(o, start, maxBytes, upTo, minOne)
		if err == nil || l.offsets.Load() == o {
			return r, err
		}
		// A truncation or a deletion may have pulled the file away: look again.
	}
}

func (l *Log) read(o *Offsets, start int64, maxBytes int, upTo Isolation, minOne bool) (ReadResult, error) {
	r := ReadResult{Offsets: o}
	if start < o.LogStart || start > o.End {
		return r, ErrOffsetOutOfRange
	}
	limit := o.limit(upTo)
	if start >= limit.offset {
		return r, nil
	}
	limit, err := l.locate(o, limit)
	if err != nil {
		return r, err
	}
	for i := max(0, o.floor(start)); i < len(o.segments); i++ {
		s := o.segments[i]
		end := limit.pos
		if s != limit.segment {
			if s.BaseOffset() > limit.segment.BaseOffset() {
				break
			}
			end = s.Size() // sealed: complete
		}
		r.Slice, err = s.Read(start, maxBytes, end, minOne)
		if err == segment.ErrNotFound {
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%v: %w", l.partition, err)
		}
		if r.Slice.Size() == 0 {
			r.Slice.Release()
			r.Slice = segment.Slice{}
		} else if upTo == ReadCommitted {
			r.Aborted, err = l.aborted(o, i, start, r.Slice)
		}
		return r, err
	}
	return r, nil
}

// locate looks up the place of a limit in the files, if it is not known. A limit inside a
// batch becomes that batch's start.
func (l *Log) locate(o *Offsets, limit position) (position, error) {
	floor := max(0, o.floor(limit.offset))
	if s := limit.segment; s != nil && (s == o.segments[floor] || floor > 0 && s == o.segments[floor-1]) {
		return limit, nil
	}
	for i := floor; i < len(o.segments); i++ {
		p, ok, err := o.segments[i].Translate(limit.offset, 0)
		if err != nil {
			return limit, fmt.Errorf("%v: %w", l.partition, err)
		}
		if ok && (i < len(o.segments)-1 || p.Position < o.end.pos) {
			return position{limit.offset, o.segments[i], p.Position}, nil
		}
	}
	return o.end, nil // no batch at or above it: all there is lies below
}

// aborted collects the aborted transactions for a slice of segment i that was read from
// start on.
func (l *Log) aborted(o *Offsets, i int, start int64, slice segment.Slice) ([]segment.AbortedTxn, error) {
	upper, ok := o.segments[i].UpperBound(slice.Position(), slice.Size())
	switch {
	case ok:
	case i+1 < len(o.segments):
		upper = o.segments[i+1].BaseOffset()
	default:
		upper = o.End
	}
	var list []segment.AbortedTxn
	for ; i < len(o.segments); i++ {
		if err := l.proveTxns(o, o.segments[i]); err != nil {
			return nil, fmt.Errorf("%v: %w", l.partition, err)
		}
		more, done, err := o.segments[i].Aborted(start, upper)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", l.partition, err)
		}
		list = append(list, more...)
		if done {
			break
		}
	}
	return list, nil
}
