package compaction

import (
	"errors"
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// An output writes the batches that survive of a group of segments to .cleaned segments: one,
// or more if they do not fit. Batches wait for company, so that writes are large.
type output struct {
	log      *commitlog.Log
	segments []*segment.Segment
	aborted  []segment.AbortedTxn  // that the transaction indexes are to have, by marker
	used     func(bytes int) error // told of what was written

	buf     []byte // batches that wait
	bufSize int    // when they have waited enough
	last    int64  // last offset in buf

	// run is a stretch of a chunk that waits where it lies: batches that stay as they are.
	chunk      []byte
	start, end int
	runLast    int64
}

// directRun is the size from which on a run is not copied to the buffer.
const directRun = 64 << 10

// begin makes the next segment.
func (o *output) begin(base int64) error {
	s, err := o.log.CreateCleaned(base)
	if err == nil {
		o.segments = append(o.segments, s)
	}
	return err
}

// keep appends chunk[at:at+size], a batch that stays as it is. The chunk must not change until
// endRun.
func (o *output) keep(chunk []byte, at, size int, last int64) error {
	if o.end != at || o.start == o.end {
		if err := o.endRun(); err != nil {
			return err
		}
		o.chunk, o.start = chunk, at
	}
	o.end, o.runLast = at+size, last
	return nil
}

// endRun lets go of the chunk.
func (o *output) endRun() error {
	run := o.chunk[o.start:o.end]
	o.chunk, o.start, o.end = nil, 0, 0
	if len(run) < directRun {
		o.buf = append(o.buf, run...)
		return o.wrote(o.runLast, len(run))
	}
	if err := o.flush(); err != nil {
		return err
	}
	return o.write(run, o.runLast)
}

// rebuild appends a batch that make appends to what it is given.
func (o *output) rebuild(last int64, make func(dst []byte) ([]byte, error)) error {
	if err := o.endRun(); err != nil {
		return err
	}
	before := len(o.buf)
	buf, err := make(o.buf)
	if err != nil {
		return err
	}
	o.buf = buf
	return o.wrote(last, len(buf)-before)
}

// wrote takes notice of size bytes that were appended to the buffer.
func (o *output) wrote(last int64, size int) error {
	if size > 0 {
		o.last = last
	}
	if len(o.buf) < o.bufSize {
		return nil
	}
	return o.flush()
}

// flush writes what waits in the buffer.
func (o *output) flush() error {
	err := o.write(o.buf, o.last)
	if o.buf = o.buf[:0]; cap(o.buf) > 4*o.bufSize {
		o.buf = nil
	}
	return err
}

// write appends whole batches to the last segment. They do not fit if tombstones, which grow
// a little when they get their delete horizon, fill a segment of the largest size there is.
func (o *output) write(set []byte, last int64) error {
	if o.fits(len(set), last) {
		return o.append(set)
	}
	for b, err := range record.Batches(set) {
		if err != nil {
			return err
		}
		if !o.fits(len(b), b.LastOffset()) {
			base, err := b.FirstOffset()
			if err == nil {
				err = o.begin(base)
			}
			if err != nil {
				return err
			}
		}
		if err := o.append(b); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) fits(size int, last int64) bool {
	s := o.segments[len(o.segments)-1]
	return s.Size()+int64(size) <= math.MaxInt32 && last-s.BaseOffset() <= math.MaxInt32
}

func (o *output) append(set []byte) error {
	if len(set) == 0 {
		return nil
	}
	if err := o.segments[len(o.segments)-1].Append(set); err != nil {
		return err
	}
	return o.used(len(set))
}

// finish brings all to the disk. The files get the time of the newest source, by which
// retention goes where records have no timestamp.
func (o *output) finish(modified time.Time) error {
	err := o.endRun()
	if err == nil {
		err = o.flush()
	}
	if err != nil {
		return err
	}
	if err := o.indexAborted(); err != nil {
		return err
	}
	for _, s := range o.segments {
		if err := s.Seal(); err != nil {
			return err
		}
		if err := s.Flush(); err != nil {
			return err
		}
		if err := s.SetModTime(modified); err != nil {
			return err
		}
	}
	return nil
}

// indexAborted makes the transaction indexes: an entry is where the marker is.
func (o *output) indexAborted() error {
	i := 0
	for _, a := range o.aborted {
		for i+1 < len(o.segments) && o.segments[i+1].BaseOffset() <= a.LastOffset {
			i++
		}
		if err := o.segments[i].AppendAborted(a); err != nil {
			return err
		}
	}
	return nil
}

// discard removes what was written.
func (o *output) discard() error {
	var err error
	for _, s := range o.segments {
		err = errors.Join(err, s.Remove())
	}
	o.segments = nil
	return err
}
