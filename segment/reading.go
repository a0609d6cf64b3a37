package segment

import (
	"errors"
	"iter"
	"math"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Reader reads one segment. Its methods may be called concurrently.
type Reader struct{ segment *segment.Segment }

// A Located is a batch and where it starts in the .log file. The batch is valid until the next step of the iteration.
type Located = segment.Located

// A TimestampOffset is a record that was looked for by time.
type TimestampOffset = segment.TimestampOffset

// An AbortedTxn is a transaction whose records readers of committed ones leave out.
type AbortedTxn = segment.AbortedTxn

// A Damage is a stretch of a .log file in which no batch makes sense.
type Damage = segment.Damage

// Open returns a Reader of the segment with a base offset in the directory of a partition. It sees what the .log file
// has now. Indexes that turn out wrong or missing cost time, and change no answer.
func Open(fsys vfs.FS, dir string, base int64) (*Reader, error) {
	s, err := segment.Open(fsys, dir, base, config(Options{}, true))
	if err != nil {
		return nil, err
	}
	return &Reader{s}, nil
}

// Close gives up the descriptors.
func (r *Reader) Close() error { return r.segment.Close() }

// BaseOffset returns the offset that names the files; no record has a smaller one.
func (r *Reader) BaseOffset() int64 { return r.segment.BaseOffset() }

// NextOffset returns the offset behind the last batch, or the base offset without one.
func (r *Reader) NextOffset() (int64, error) { return r.segment.NextOffset() }

// Size returns how many bytes the .log file has.
func (r *Reader) Size() int64 { return r.segment.Size() }

// Batches yields the batches from the one on that has an offset, or the first one behind it, whose checksums are right.
// An error is the last thing yielded: a *CorruptError, which matches record.ErrCorrupt, or one of reading. What Scrub
// has found is passed by. A log that a broker is writing, or was when it was killed, may end inside of a batch.
func (r *Reader) Batches(start int64) iter.Seq2[Located, error] {
	return func(yield func(Located, error) bool) {
		p, ok, err := r.segment.Translate(start, 0)
		if err != nil {
			yield(Located{}, err)
			return
		}
		if !ok { // all batches are below, or there is something else from there on
			p.Position = r.end()
		}
		for l, err := range r.segment.Batches(p.Position, math.MaxInt64) {
			if err == nil {
				err = r.verify(l)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// end returns where the last whole batch ends.
func (r *Reader) end() (position int64) {
	for l, err := range r.segment.Batches(0, math.MaxInt64) {
		if err != nil {
			break
		}
		position = l.Position + int64(l.Batch.Size())
	}
	return position
}

func (r *Reader) verify(l Located) error {
	err := l.Batch.Verify()
	if c, ok := errors.AsType[*record.CorruptError](err); ok {
		return &CorruptError{Path: r.segment.Path(LogFile), Position: l.Position, Offset: c.Offset, Err: err}
	}
	return err
}

// OffsetByTimestamp returns the first record, in the order of offsets, from an offset on whose timestamp is at least the
// given one in ms.
func (r *Reader) OffsetByTimestamp(timestamp, start int64) (t TimestampOffset, ok bool, err error) {
	return r.segment.OffsetByTimestamp(timestamp, start)
}

// Aborted returns the aborted transactions with records in [from, end) whose markers are in this segment.
func (r *Reader) Aborted(from, end int64) ([]AbortedTxn, error) {
	list, _, err := r.segment.Aborted(from, end)
	return list, err
}

// Check walks over everything: each batch with its checksum, that offsets increase and fit, and that the indexes say
// what the batches say. The error is a *CorruptError for the first thing that is wrong, or one of reading.
func (r *Reader) Check() error { return r.segment.Check() }

// Scrub reads the whole segment and returns what is damaged in it, which Batches passes by from then on. All offsets
// are below end, the base offset of the next segment, or what is known otherwise.
func (r *Reader) Scrub(end int64) ([]Damage, error) {
	r.segment.Guard(end)
	if _, err := r.segment.Scrub(nil); err != nil {
		return nil, err
	}
	return r.segment.Damages(), nil
}
