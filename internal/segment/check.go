package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
)

// Check walks over everything: each batch with its checksum, that offsets increase and fit, and
// that the indexes say what the batches say. The error is a *CorruptError for the first thing
// that is wrong, or one of reading. Nothing may be appended or truncated meanwhile.
func (s *Segment) Check() error {
	c, err := s.newChecker()
	if err != nil {
		return err
	}
	if err := c.walk(); err != nil {
		return err
	}
	if err := c.leftOver(); err != nil {
		return err
	}
	return s.CheckTxnIndex()
}

// A checker takes index entries away as it passes the batches they are for.
type checker struct {
	s       *Segment
	offsets []offsetEntry
	times   []timeEntry
	last    int64 // last offset of the batch before
	entry   int64 // offset of the index entry before
	max     int64 // timestamp of all batches before, -1 for none
}

// newChecker takes the entries in memory. Those from files had to be in order and in front of
// the end of the log, or they would have been made anew.
func (s *Segment) newChecker() (*checker, error) {
	idx, err := s.indexes()
	if err != nil {
		return nil, err
	}
	c := &checker{
		s: s, offsets: idx.offsets.Load().view(), times: idx.times.Load().view(),
		last: s.base - 1, entry: s.base - 1, max: -1,
	}
	c.leaveOut(s.Damages())
	return c, nil
}

// leaveOut takes the entries away that lead into what is in quarantine since.
func (c *checker) leaveOut(list []Damage) {
	for _, d := range list {
		c.offsets = slices.DeleteFunc(slices.Clone(c.offsets), func(e offsetEntry) bool {
			return int64(e.position) >= d.Position && int64(e.position) < d.end()
		})
		c.times = slices.DeleteFunc(slices.Clone(c.times), func(e timeEntry) bool {
			offset := c.s.base + int64(e.offset)
			return offset >= d.First && offset < d.End
		})
	}
}

func (c *checker) walk() error {
	f, err := c.s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	r := newBatchReader(&c.s.files, c.s.health.damage.Load(), f, 0, c.s.size.Load())
	defer r.release()
	for {
		l, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.batch(l); err != nil {
			return err
		}
	}
}

func (c *checker) batch(l Located) error {
	b := l.Batch
	err := b.Verify()
	if err == nil {
		err = fitsBase(b.LastOffset(), c.s.base)
	}
	if err == nil && (b.LastOffset() <= c.last || b.Magic() == 2 && b.BaseOffset() <= c.last) {
		err = fmt.Errorf("offsets %d-%d do not come after %d", b.BaseOffset(), b.LastOffset(), c.last)
	}
	if err != nil {
		return c.s.files.corrupt(l.Position, c.last+1, err)
	}
	c.last = b.LastOffset()
	c.max = max(c.max, b.MaxTimestamp())
	return errors.Join(c.offsetEntry(l), c.timeEntries(b))
}

// offsetEntry checks the next entry if it leads to this batch or in front of it. Each entry is
// for a batch that begins at or below its offset, and above that of the entry before.
func (c *checker) offsetEntry(l Located) error {
	if len(c.offsets) == 0 || int64(c.offsets[0].position) > l.Position {
		return nil
	}
	e := c.offsets[0]
	c.offsets = c.offsets[1:]
	if int64(e.position) < l.Position {
		return c.badEntry(IndexFile, int64(e.offset), "no batch at position %d", e.position)
	}
	first, err := l.Batch.FirstOffset()
	if err != nil {
		return c.s.files.corrupt(l.Position, l.Batch.BaseOffset(), err)
	}
	if first > c.s.base+int64(e.offset) || first <= c.entry {
		return c.badEntry(IndexFile, int64(e.offset), "batch at position %d begins at offset %d", e.position, first)
	}
	c.entry = c.s.base + int64(e.offset)
	return nil
}

// timeEntries checks the entries for offsets up to the end of this batch. Messages that lost
// their timestamps when they were stored in format v0 have entries that nothing can confirm.
func (c *checker) timeEntries(b record.Batch) error {
	for len(c.times) > 0 && c.s.base+int64(c.times[0].offset) <= c.last {
		e := c.times[0]
		c.times = c.times[1:]
		if b.Magic() > 0 && (e.timestamp != b.MaxTimestamp() || e.timestamp != c.max) {
			return c.badEntry(TimeIndexFile, int64(e.offset),
				"timestamp %d, of the batch %d, of all up to it %d", e.timestamp, b.MaxTimestamp(), c.max)
		}
	}
	return nil
}

func (c *checker) leftOver() error {
	if len(c.offsets) > 0 {
		return c.badEntry(IndexFile, int64(c.offsets[0].offset), "no batch at position %d", c.offsets[0].position)
	}
	if c.entry > c.last {
		return c.badEntry(IndexFile, c.entry-c.s.base, "no batch with that offset")
	}
	if len(c.times) > 0 {
		return c.badEntry(TimeIndexFile, int64(c.times[0].offset), "no batch with that offset")
	}
	return nil
}

func (c *checker) badEntry(kind Kind, offset int64, format string, args ...any) error {
	return &CorruptError{
		Path: c.s.Path(kind), Position: -1, Offset: c.s.base + offset,
		Err: fmt.Errorf("index entry: "+format, args...),
	}
}
