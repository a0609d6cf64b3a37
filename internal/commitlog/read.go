package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
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
// WholeFirst allows more than maxBytes for the first batch. The slice is empty at the limit
// and beyond; outside the log the error matches ErrOffsetOutOfRange, and the result has
// the Offsets all the same. Read takes no lock.
func (l *Log) Read(start int64, maxBytes int, upTo Isolation, first segment.FirstBatch) (r ReadResult, err error) {
	for {
		o := l.offsets.Load()
		r.Offsets = o
		err = l.read(&r, start, maxBytes, upTo, first)
		if err == nil || l.offsets.Load() == o {
			return r, err
		}
		r = ReadResult{} // a truncation or a deletion may have pulled the file away: look again
	}
}

// read fills in what r, which has Offsets and nothing else, does not have yet.
func (l *Log) read(r *ReadResult, start int64, maxBytes int, upTo Isolation, first segment.FirstBatch) error {
	o := r.Offsets
	if start < o.LogStart || start > o.End {
		return ErrOffsetOutOfRange
	}
	limit := o.limit(upTo)
	if start >= limit.offset {
		return nil
	}
	limit, err := l.locate(o, limit)
	if err != nil {
		return err
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
		r.Slice, err = s.Read(start, maxBytes, end, first)
		if err == segment.ErrNotFound {
			continue
		}
		if err != nil {
			return fmt.Errorf("%v: %w", l.partition, err)
		}
		if r.Slice.Size() == 0 {
			r.Slice.Release()
			r.Slice = segment.Slice{}
		} else if upTo == ReadCommitted {
			err = l.decide(i, start, r)
		}
		return err
	}
	return nil
}

// locate looks up the place of a limit in the files, if it is not known. A limit inside a
// batch becomes that batch's start.
func (l *Log) locate(o *Offsets, limit position) (position, error) {
	if s := limit.segment; s == o.active() && s.BaseOffset() <= limit.offset {
		return limit, nil
	}
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

// errUndecided: it cannot be told whether records were committed.
var errUndecided = errors.New("transaction is undecided: its marker is damaged")

// decide says which transactions with records in the slice, read from start on of segment i, are
// aborted, and cuts the slice in front of the first record of one that is undecided. A slice that
// begins with such a record is an error, as if it was damaged.
func (l *Log) decide(i int, start int64, r *ReadResult) error {
	o := r.Offsets
	s := o.segments[i]
	upper, ok := s.UpperBound(r.Slice.Position(), r.Slice.Size())
	switch {
	case ok:
	case i+1 < len(o.segments):
		upper = o.segments[i+1].BaseOffset()
	default:
		upper = o.End
	}
	aborted, undecided, err := l.transactions(o, i, i, start, upper)
	if err == nil && len(undecided) > 0 {
		r.Slice, err = cutUndecided(s, r.Slice, start, undecided)
	}
	if err != nil {
		r.Slice.Release()
		r.Slice = segment.Slice{}
		return fmt.Errorf("%v: %w", l.partition, err)
	}
	r.Aborted = aborted
	return nil
}

func cutUndecided(s *segment.Segment, slice segment.Slice, start int64, undecided []UndecidedTxn) (segment.Slice, error) {
	first := segment.Header{Position: -1}
	err := s.Headers(slice.Position(), slice.Position()+int64(slice.Size()), func(h segment.Header) bool {
		if h.Transactional && !h.Control && h.Last >= start && slices.ContainsFunc(undecided, func(u UndecidedTxn) bool {
			return u.ProducerID == h.ProducerID && h.First >= u.FirstOffset && h.First < u.EndOffset
		}) {
			first = h
		}
		return first.Position < 0
	})
	switch {
	case err != nil || first.Position < 0:
		return slice, err
	case first.Position == slice.Position():
		return slice, &segment.CorruptError{
			Path: s.Path(segment.LogFile), Position: first.Position, Offset: first.First, Err: errUndecided, End: first.Last + 1,
		}
	}
	return slice.Cut(int(first.Position - slice.Position())), nil
}
