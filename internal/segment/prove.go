package segment

import (
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"math/bits"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/record"
)

// A prover walks over the batches of a file and believes none. A batch is good when its frame
// and its checksum are right and its offsets go on where the one before ended:
//
//	good      bad                     good
//	+--------+-----------------------+--------+
//	| 10..19 |  ?                    | 40..49 |   damage: offsets [20,40)
//	+--------+-----------------------+--------+
//	          ^ length: perhaps right
//
// Behind bad bytes it looks for the next good batch: where the length field leads, where it
// leads with one bit turned round, and then at every byte. The checksum does not cover the
// base offset. A batch that leaves a gap, as after compaction, is good only if the next one
// does not begin at an offset that it claims for itself, and if the gap is not one bit that no
// compaction makes.
type prover struct {
	r     *batchReader
	next  int64 // the least offset that the next batch can have
	bound int64 // all offsets are below it
	gap   bool  // the last good batch left a gap
	tail  bool  // the last damage has nothing good behind it

	// budget bounds how many bytes of candidates are read for their checksums. Without it
	// damage full of things that look like long batches would cost the square of its size.
	budget int64
}

// newProver begins at the start of the file; limit is where the walk ends.
func newProver(files *fileSet, f *openFile, limit, bound int64) *prover {
	r := newBatchReader(files, nil, f, 0, limit)
	return &prover{r: r, next: files.base, bound: bound, budget: 4*limit + 64<<20}
}

func (p *prover) release() { p.r.release() }

// step returns the next good batch, or the damage in front of it, which has a Size. The error is
// io.EOF at the end, or one of reading. Damage without a good batch behind it sets tail, and its
// End is not known.
func (p *prover) step() (Located, Damage, error) {
	l, err := p.r.next()
	if err == nil {
		if err = p.judge(l); err != nil {
			p.r.position = l.Position
		} else if p.r.n == 0 { // the chunk is lost
			p.r.position = l.Position
			l, err = p.r.next()
		}
	}
	if err == nil {
		p.gap = l.Batch.BaseOffset() > p.next
		p.next = l.Batch.LastOffset() + 1
		return l, Damage{}, nil
	}
	if err == io.EOF || !isDamage(err) {
		return Located{}, Damage{}, err
	}
	d, err := p.skip(err)
	return Located{}, d, err
}

func isDamage(err error) bool { return isBadFrame(err) || errors.Is(err, record.ErrCorrupt) }

// judge finds what is wrong with a batch whose frame is right.
func (p *prover) judge(l Located) error {
	if err := l.Batch.Verify(); err != nil {
		return err
	}
	from, last := l.Batch.BaseOffset(), l.Batch.LastOffset() // of a wrapper both are the last one
	if from < p.next || last < from || last >= p.bound {
		return badFrame("offsets %d-%d are not in [%d,%d)", from, last, p.next, p.bound)
	}
	if (from-p.next)>>31 != 0 && bits.OnesCount64(uint64(from^p.next)) == 1 {
		return badFrame("offset %d is %d with one bit turned round", from, p.next)
	}
	if from > p.next && p.claimedByNext(l, last) {
		return badFrame("offsets %d-%d reach into those of the next batch", from, last)
	}
	return nil
}

// claimedByNext reports whether the good batch behind l begins at or below last. The chunk of
// the reader may be lost.
func (p *prover) claimedByNext(l Located, last int64) bool {
	end := l.Position + int64(l.Batch.Size())
	f, err := p.r.frameAt(end)
	odd := f.base < p.next || !inRange(f.base, p.r.files.base)
	if isBadFrame(err) || err == nil && odd {
		position := p.r.position
		p.r.position = end
		f, err = p.search()
		p.r.position = position
	}
	return err == nil && f.base >= p.next && f.base <= last
}

// skip makes a Damage of what is at the reader's position and goes behind it.
func (p *prover) skip(cause error) (Damage, error) {
	d := Damage{Position: p.r.position, First: p.next, End: p.next, Err: cause}
	if inner := (*CorruptError)(nil); errors.As(cause, &inner) {
		d.Err = inner.Err // the place is in the Damage
	}
	f, err := p.search()
	p.tail = errors.Is(err, ErrNotFound)
	if p.tail {
		d.Size = p.r.limit - d.Position
		p.r.position = p.r.limit
		return d, nil
	}
	if err != nil {
		return d, err
	}
	d.Size, d.End = f.position-d.Position, f.base
	p.r.position, p.next = f.position, f.base
	p.r.last = f.base - 1
	return d, nil
}

// search returns the first good batch behind the reader's position, or ErrNotFound.
func (p *prover) search() (frame, error) {
	if f, sure, err := p.byLength(); sure || err == nil {
		return f, err
	}
	return p.byContent()
}

// byLength goes where the length field leads, then where it would have led with one bit turned
// round. It is sure when the batch at the position ends with the file.
func (p *prover) byLength() (f frame, sure bool, err error) {
	var head [record.HeaderSize]byte
	position := p.r.position
	n := min(int64(len(head)), p.r.limit-position)
	if err := p.r.readFull(head[:n], position); err != nil {
		return frame{}, false, err
	}
	if n < record.HeaderSize {
		return frame{}, true, ErrNotFound
	}
	length := binary.BigEndian.Uint32(head[8:])
	base := int64(binary.BigEndian.Uint64(head[:]))
	if position+record.LogOverhead+int64(length) == p.r.limit && base == p.next && head[16] == 2 {
		return frame{}, true, ErrNotFound
	}
	if f, err := p.candidate(position + record.LogOverhead + int64(length)); err == nil {
		return f, true, nil
	}
	for bit := range 31 {
		f, err := p.candidate(position + record.LogOverhead + int64(length^1<<bit))
		if err == nil && f.base == p.next+lostRecords(head[:]) {
			return f, true, nil
		}
	}
	return frame{}, false, ErrNotFound
}

// lostRecords is how many offsets a batch takes, by its header.
func lostRecords(head []byte) int64 {
	if head[16] < 2 {
		return 1
	}
	return int64(record.Batch(head).LastOffsetDelta()) + 1
}

// byContent looks at every byte.
func (p *prover) byContent() (frame, error) {
	window := make([]byte, chunkSize)
	for start := p.r.position + 1; start < p.r.limit-minFrame; {
		n := min(int64(len(window)), p.r.limit-start)
		if err := p.r.readFull(window[:n], start); err != nil {
			return frame{}, err
		}
		i := 0
		for ; int64(i)+minFrame <= n; i++ {
			if !p.plausible(window[i:]) {
				continue
			}
			f, err := p.candidate(start + int64(i))
			if err != ErrNotFound {
				return f, err
			}
			if p.budget < 0 {
				return frame{}, ErrNotFound
			}
		}
		start += int64(i)
	}
	return frame{}, ErrNotFound
}

// plausible is a quick look at the first bytes of what may be a batch.
func (p *prover) plausible(b []byte) bool {
	if b[16] > 2 {
		return false
	}
	offset := int64(binary.BigEndian.Uint64(b))
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	return offset >= p.next && offset < p.bound && offset-p.r.files.base <= math.MaxInt32 && length >= minLength
}

// candidate returns the batch at a position if it is good, with its exact base, else ErrNotFound.
func (p *prover) candidate(position int64) (frame, error) {
	if position <= p.r.position || position >= p.r.limit {
		return frame{}, ErrNotFound
	}
	f, err := p.r.frameAt(position)
	if isBadFrame(err) {
		return frame{}, ErrNotFound
	}
	if err != nil {
		return frame{}, err
	}
	if f.base < p.next || f.last >= p.bound || f.last-p.r.files.base > math.MaxInt32 {
		return frame{}, ErrNotFound
	}
	p.budget -= int64(f.size)
	if p.budget < 0 {
		return frame{}, ErrNotFound
	}
	if err := p.r.checkSum(f); err != nil {
		if errors.Is(err, ErrCorrupt) {
			err = ErrNotFound
		}
		return frame{}, err
	}
	if p.contradicted(f) {
		return frame{}, ErrNotFound
	}
	if f.wrapper && f.size < hugeBatch {
		sc := scanner{file: p.r.file, limit: p.r.limit}
		if f.base, err = firstOffset(&sc, f); isBadFrame(err) {
			return frame{}, ErrNotFound
		}
		f.base = max(f.base, p.next)
	}
	return f, err
}

// contradicted reports whether the base offset of a batch behind damage cannot be right: the next
// batch begins in its offsets, or the bad bytes in front of it would have had no offsets. The
// latter counts unless the next batch goes on where this one ends.
func (p *prover) contradicted(f frame) bool {
	odd := f.base == p.next && f.position-p.r.position >= record.HeaderSize
	next, err := p.r.frameAt(f.end())
	if err != nil || next.base < p.next {
		return odd
	}
	return next.base <= f.last || next.base > f.last+1 && odd
}

// frameAt reads one header, apart from the chunk of the reader.
func (r *batchReader) frameAt(position int64) (frame, error) {
	left := max(r.limit-position, 0)
	var head [record.HeaderSize]byte
	n := min(left, record.HeaderSize)
	if _, err := r.file.ReadAt(head[:n], position); err != nil {
		if err == io.EOF {
			err = errTorn
		}
		return frame{}, err
	}
	return parseFrame(head[:n], position, left)
}

// checkSum compares the checksum of a batch without holding it in memory. The chunk of the
// reader is lost.
func (r *batchReader) checkSum(f frame) error {
	head := make([]byte, record.HeaderSize)
	n := min(len(head), f.size)
	if err := r.readFull(head[:n], f.position); err != nil {
		return err
	}
	var sum hash.Hash32
	var skip int64
	if f.magic < 2 {
		sum, skip = crc32.NewIEEE(), 16
	} else {
		sum, skip = crc32c.New(), 21
	}
	body := io.NewSectionReader(r.file, f.position+skip, int64(f.size)-skip)
	r.n = 0 // the chunk is used as a buffer
	if _, err := io.CopyBuffer(onlyWriter{sum}, body, r.chunk[:]); err != nil {
		return err
	}
	if want := binary.BigEndian.Uint32(head[skip-4:]); sum.Sum32() != want {
		return r.corrupt(badFrame("crc %08x, want %08x", sum.Sum32(), want))
	}
	return nil
}

// HasBatch reports whether there is any good batch, whatever is in front of it.
func (s *Segment) HasBatch() (bool, error) {
	f, err := s.log.acquire()
	if err != nil {
		return false, err
	}
	defer f.release()
	p := newProver(&s.files, f, s.size.Load(), math.MaxInt64)
	defer p.release()
	_, _, err = p.step()
	if err == io.EOF || p.tail {
		return false, nil
	}
	return err == nil, err
}

// ProveEnd reads everything and returns the offset behind the last good batch whose offsets are
// below bound. It is certain unless there are bad bytes at the end, or a gap in front of that
// batch: the base offset has no checksum.
func (s *Segment) ProveEnd(bound int64) (end int64, certain bool, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return 0, false, err
	}
	defer f.release()
	p := newProver(&s.files, f, s.size.Load(), bound)
	defer p.release()
	from, last := s.base, int64(0) // the least offset and the position of the last batch
	for {
		before := p.next
		l, _, err := p.step()
		if err == io.EOF {
			return p.next, !p.tail && !p.gapAt(last, from), nil
		}
		if err != nil {
			return 0, false, err
		}
		from, last = before, l.Position
	}
}

// gapAt reports whether the last good batch, which is at a position, left a gap: it could have
// begun at from. A wrapper tells where it begins only when it is taken apart.
func (p *prover) gapAt(position, from int64) bool {
	if !p.gap {
		return false
	}
	f, err := p.r.frameAt(position)
	if err != nil || !f.wrapper {
		return true
	}
	sc := scanner{file: p.r.file, limit: p.r.limit}
	base, err := firstOffset(&sc, f)
	return err != nil || base > from
}
