package segment

import (
	"io"
	"iter"
	"sync"

	"github.com/gregor-kafka/gregor/internal/record"
)

const (
	// chunkSize is what one read of a sequential walk gets.
	chunkSize = 128 << 10

	// hugeBatch is the size from which on the checksum of a batch is computed piece by piece
	// before memory is taken for it, because a length that large is most often damage.
	hugeBatch = 8 << 20
)

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// A Located is a batch and where it starts in the file. The batch is valid until the next step
// of the iteration.
type Located struct {
	Batch    record.Batch
	Position int64
}

// Batches yields the batches that start in [from, to), which are positions of batches or the
// end. Its last pair has an error if the bytes before to are not all whole batches: a
// *CorruptError, whose position is the end of the last good one, or an error of reading. Only
// frames are checked; see record.Batch.Verify. What is in quarantine is left out. Batches uses one buffer, which grows for large
// batches.
func (s *Segment) Batches(from, to int64) iter.Seq2[Located, error] {
	return func(yield func(Located, error) bool) {
		f, err := s.log.acquire()
		if err != nil {
			yield(Located{}, err)
			return
		}
		defer f.release()
		r := newBatchReader(&s.files, s.health.damage.Load(), f, from, min(to, s.size.Load()))
		defer r.release()
		for {
			b, err := r.next()
			if err == io.EOF {
				return
			}
			if err != nil && s.health.heal(&s.files, f, err, r.damage) {
				r.damage = s.health.damage.Load()
				continue
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// A batchReader reads batches one after the other.
type batchReader struct {
	files    *fileSet
	file     *openFile
	position int64 // of the next batch
	frame    frame // of the batch that next has returned
	limit    int64
	last     int64 // last offset of the batch before, or base - 1
	damage   *damageList
	pace     func(bytes int) error // nil, or called before each read

	chunk *[chunkSize]byte
	large []byte // for batches that are larger
	start int64  // position of the first byte in chunk
	n     int    // bytes in chunk
}

// newBatchReader passes by the damage, which may be nil.
func newBatchReader(files *fileSet, damage *damageList, f *openFile, from, to int64) *batchReader {
	chunk := chunks.Get().(*[chunkSize]byte)
	return &batchReader{files: files, file: f, position: from, limit: to, last: files.base - 1, damage: damage, chunk: chunk}
}

func (r *batchReader) release() { chunks.Put(r.chunk) }

// next returns the next batch, or io.EOF at the limit. The reader stays in front of a batch
// that is bad, and passes by what is in quarantine.
func (r *batchReader) next() (Located, error) {
	if r.damage != nil {
		for d, ok := r.damage.at(r.position); ok; d, ok = r.damage.at(r.position) {
			r.position, r.last = d.end(), d.End-1
		}
	}
	left := r.limit - r.position
	if left <= 0 {
		return Located{}, io.EOF
	}
	head, err := r.bytes(min(left, record.HeaderSize))
	if err != nil {
		return Located{}, err
	}
	f, err := parseFrame(head, r.position, left)
	if err != nil {
		return Located{}, r.corrupt(err)
	}
	if f.size >= hugeBatch {
		if err := r.checkSum(f); err != nil {
			return Located{}, err
		}
	}
	b, err := r.bytes(int64(f.size))
	if err != nil {
		return Located{}, err
	}
	l := Located{Batch: record.Batch(b[:f.size:f.size]), Position: r.position}
	r.frame = f
	r.position = f.end()
	r.last = f.last
	return l, nil
}

func (r *batchReader) corrupt(err error) error {
	return r.files.corrupt(r.position, r.last+1, err)
}

// bytes returns at least n bytes at the reader's position; n of them are in front of limit.
func (r *batchReader) bytes(n int64) ([]byte, error) {
	have := r.read()
	if n <= int64(len(have)) {
		return have, nil
	}
	if n > chunkSize {
		return r.readLarge(int(n), have)
	}
	kept := copy(r.chunk[:], have)
	want := min(r.limit-r.position, chunkSize)
	r.start, r.n = r.position, 0
	if err := r.readFull(r.chunk[kept:want], r.position+int64(kept)); err != nil {
		return nil, err
	}
	r.n = int(want)
	return r.chunk[:want], nil
}

// read returns what the chunk has from the reader's position on.
func (r *batchReader) read() []byte {
	skip := r.position - r.start
	if skip < 0 || skip >= int64(r.n) {
		return nil
	}
	return r.chunk[skip:r.n]
}

func (r *batchReader) readLarge(n int, have []byte) ([]byte, error) {
	if cap(r.large) < n {
		r.large = make([]byte, n)
	}
	r.large = r.large[:n]
	kept := copy(r.large, have)
	return r.large, r.readFull(r.large[kept:], r.position+int64(kept))
}

// readFull reads bytes that are in front of limit. That they are missing means that the file
// was cut meanwhile.
func (r *batchReader) readFull(b []byte, position int64) error {
	if r.pace != nil {
		if err := r.pace(len(b)); err != nil {
			return err
		}
	}
	n, err := r.file.ReadAt(b, position)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return r.corrupt(errTorn)
	}
	return err
}

// onlyWriter hides other methods from io.CopyBuffer, so that it uses its buffer.
type onlyWriter struct{ io.Writer }

// firstRecord returns the first record from the reader's position on with at least the given
// timestamp and offset. Batches that cannot have one are not decompressed.
func (r *batchReader) firstRecord(timestamp, start int64) (t TimestampOffset, ok bool, err error) {
	for {
		l, err := r.next()
		if err == io.EOF {
			return t, false, nil
		}
		if err != nil {
			return t, false, err
		}
		if l.Batch.MaxTimestamp() < timestamp || l.Batch.LastOffset() < start {
			continue
		}
		t, ok, err = firstInBatch(l.Batch, timestamp, start)
		if err != nil {
			return t, false, r.files.corrupt(l.Position, l.Batch.BaseOffset(), err)
		}
		if ok {
			return t, true, nil
		}
	}
}

func firstInBatch(b record.Batch, timestamp, start int64) (TimestampOffset, bool, error) {
	for rec, err := range b.Records() {
		if err != nil {
			return TimestampOffset{}, false, err
		}
		if rec.Timestamp >= timestamp && rec.Offset >= start {
			return TimestampOffset{rec.Timestamp, rec.Offset, b.LeaderEpoch()}, true, nil
		}
	}
	return TimestampOffset{}, false, nil
}
