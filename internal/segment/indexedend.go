package segment

import (
	"errors"
	"io"
	"math"
)

// IndexedEnd returns the offset behind the last batch that the index files know of, if that is
// behind the last good batch; next is where that seems to be. It is 0 for none. All offsets are below
// bound, the base of the next segment, or math.MaxInt64. A file may be another log's, or have a bit
// turned round, so that an entry counts only
//
//   - with both of its fields: a position, or a timestamp, behind all of the file as well as the offset,
//   - and if something else speaks for it: its offset is in the gap behind a batch and in front of the next
//     segment, bad bytes are at the end, the other index leads there, or an entry of the same index leads
//     to its batch.
//
// The .log file is only read where an entry leads further.
func (s *Segment) IndexedEnd(next, bound int64) (int64, error) {
	w, err := s.IndexWitness()
	if err != nil {
		return 0, err
	}
	return s.EndBy(w, next, bound)
}

// EndBy is IndexedEnd by what the index files were before, see IndexWitness.
func (s *Segment) EndBy(w *IndexWitness, next, bound int64) (int64, error) {
	if !w.leads(next) {
		return 0, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	p := newProver(&s.files, f, s.size.Load(), math.MaxInt64)
	defer p.release()
	if err := w.walk(p); err != nil {
		return 0, err
	}
	return w.end(s.size.Load(), bound), nil
}

// An IndexWitness holds what the index files of a segment say against its batches.
type IndexWitness struct {
	base    int64
	offsets []offsetEntry // not yet passed, at least one
	times   []timeEntry

	position   int64 // behind the last good batch
	next       int64 // and the offset there
	largest    int64 // timestamp
	offsetsFit bool  // an entry leads to its batch
	timesFit   bool
}

// IndexWitness reads the index files, which Recover makes anew.
func (s *Segment) IndexWitness() (*IndexWitness, error) {
	offsets, _, _, err := offsetLayout.load(s, func(offsetEntry) bool { return true })
	times, _, _, timesErr := timeLayout.load(s, func(timeEntry) bool { return true })
	w := &IndexWitness{base: s.base, next: s.base, offsets: offsets, times: times, largest: -1}
	return w, errors.Join(err, timesErr)
}

// leads reports whether an entry has an offset of next or more.
func (w *IndexWitness) leads(next int64) bool { return w.offset(next) > 0 || w.time(next) > 0 }

// offset returns the offset behind the last entry of the offset index, 0 if that is not above next.
func (w *IndexWitness) offset(next int64) int64 {
	if n := len(w.offsets); n > 0 && w.base+int64(w.offsets[n-1].offset) >= next {
		return w.base + int64(w.offsets[n-1].offset) + 1
	}
	return 0
}

// time is offset for the time index.
func (w *IndexWitness) time(next int64) int64 {
	if n := len(w.times); n > 0 && w.base+int64(w.times[n-1].offset) >= next {
		return w.base + int64(w.times[n-1].offset) + 1
	}
	return 0
}

// walk goes through the good batches.
func (w *IndexWitness) walk(p *prover) error {
	for {
		l, d, err := p.step()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if d.Size == 0 {
			w.pass(l)
		}
	}
}

// pass compares the entries that are not behind a batch.
func (w *IndexWitness) pass(l Located) {
	w.position = l.Position + int64(l.Batch.Size())
	w.largest = max(w.largest, l.Batch.MaxTimestamp())
	last := l.Batch.LastOffset()
	for ; len(w.offsets) > 1 && int64(w.offsets[0].position) < w.position; w.offsets = w.offsets[1:] {
		e := w.offsets[0]
		w.offsetsFit = w.offsetsFit || int64(e.position) == l.Position && w.base+int64(e.offset) >= w.next
	}
	for ; len(w.times) > 1 && w.base+int64(w.times[0].offset) <= last; w.times = w.times[1:] {
		w.timesFit = w.timesFit || w.times[0].timestamp == l.Batch.MaxTimestamp()
	}
	w.next = last + 1
}

// end returns what is believed once all of a file has been passed.
func (w *IndexWitness) end(size, bound int64) int64 {
	offset, time := w.offset(w.next), w.time(w.next)
	if offset > bound || offset > 0 && int64(w.offsets[len(w.offsets)-1].position) < w.position {
		offset = 0
	}
	if time > bound || time > 0 && w.times[len(w.times)-1].timestamp <= w.largest {
		time = 0
	}
	if w.position < size || bound < math.MaxInt64 && w.position > 0 || offset > 0 && time > 0 {
		return max(offset, time)
	}
	if offset > 0 && w.offsetsFit {
		return offset
	}
	if time > 0 && w.timesFit {
		return time
	}
	return 0
}
