package segment

import (
	"fmt"
	"io"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A BatchPosition says where a batch is in the .log file.
type BatchPosition struct {
	BaseOffset int64 // of a compressed v0 or v1 wrapper: its last offset
	Position   int64
	Size       int
}

// A Slice is a view of [Position, Position+Size) of a .log file. It keeps the file open, also
// beyond its removal, until Release is called, once. It is a value; copies share one Release.
// The zero Slice is empty. Where descriptors are scarce (see FileCache) a slice holds none: once the
// segment is removed or closed, reading fails.
type Slice struct {
	file   *openFile   // nil: file is to be opened for each read
	scarce *cachedFile // nil: the slice has its descriptor
	size   int
	first  BatchPosition // begins where the slice does
}

// Size returns the number of bytes.
func (sl Slice) Size() int { return sl.size }

// Position returns where the slice starts in the file.
func (sl Slice) Position() int64 { return sl.first.Position }

// First returns the place of the first batch, which may be longer than the slice.
func (sl Slice) First() BatchPosition { return sl.first }

// FirstBatchIncomplete reports whether the slice ends inside of its first batch.
func (sl Slice) FirstBatchIncomplete() bool { return sl.size < sl.first.Size }

// ReadAt reads bytes from off, counted from the start of the slice. It returns io.EOF at the
// end of the slice.
func (sl Slice) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("segment: read at %d of a slice", off)
	}
	left := int64(sl.size) - off
	if left <= 0 {
		return 0, io.EOF
	}
	file := sl.file
	if file == nil {
		var err error
		if file, err = sl.scarce.acquire(); err != nil {
			return 0, err
		}
		defer file.release()
	}
	if int64(len(p)) <= left {
		return file.ReadAt(p, sl.first.Position+off)
	}
	n, err := file.ReadAt(p[:left], sl.first.Position+off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// Fd returns the descriptor of the whole file, for sendfile from Position on. It is the
// slice's until Release. ok is false where files or slices have none.
func (sl Slice) Fd() (fd uintptr, ok bool) {
	if sl.file == nil {
		return 0, false
	}
	return sl.file.Fd()
}

// Cut returns the first size bytes of the slice, which there are, in its place.
func (sl Slice) Cut(size int) Slice {
	sl.size = size
	return sl
}

// Release lets go of the file.
func (sl Slice) Release() {
	if sl.file != nil {
		sl.file.release()
	}
}

// A FirstBatch says what becomes of the first batch of a read if it is larger than all that was asked for.
type FirstBatch bool

// Kafka's minOneMessage is WholeFirst.
const (
	CutFirst   FirstBatch = false
	WholeFirst FirstBatch = true
)

// Read returns the batches from the one that has start on, or the first one behind it: at most
// maxBytes bytes, or the whole first batch with WholeFirst, and nothing from
// maxPosition on. The error is ErrNotFound when all batches are below start. The slice may be
// empty; it is to be released even then. Read does not allocate.
func (s *Segment) Read(start int64, maxBytes int, maxPosition int64, first FirstBatch) (Slice, error) {
	if maxBytes < 0 {
		return Slice{}, fmt.Errorf("segment: read of %d bytes", maxBytes)
	}
	f, err := s.log.acquire()
	if err != nil {
		return Slice{}, err
	}
	var fr frame
	if s.health.doubt.Load() == nil {
		fr, err = s.locate(f, start, 0)
	} else {
		fr, err = s.provenFrame(f, start, maxBytes)
	}
	if err == ErrNotFound {
		err = s.behindEnd(start)
	}
	if err == nil && fr.damaged {
		err = s.health.errorAt(&s.files, fr.position)
	}
	if err != nil {
		f.release()
		return Slice{}, err
	}
	maxPosition = s.health.before(fr.position, maxPosition)
	size := maxBytes
	if first == WholeFirst {
		size = max(size, fr.size)
	}
	size = int(max(0, min(int64(size), maxPosition-fr.position)))
	sl := Slice{file: f, size: size, first: fr.place()}
	if s.log.cache.crowded() {
		f.release()
		sl.file, sl.scarce = nil, &s.log
	}
	return sl, nil
}

func (f frame) place() BatchPosition {
	return BatchPosition{BaseOffset: f.base, Position: f.position, Size: f.size}
}

// Translate returns the first batch whose last offset is at least offset, among those from a
// position on at which a batch starts. ok is false when there is none.
func (s *Segment) Translate(offset, fromPosition int64) (p BatchPosition, ok bool, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return BatchPosition{}, false, err
	}
	defer f.release()
	fr, err := s.locate(f, offset, fromPosition)
	if err == ErrNotFound {
		return BatchPosition{}, false, nil
	}
	return fr.place(), err == nil, err
}

// locate is Translate with an open file. Damage that it meets goes to quarantine.
func (s *Segment) locate(f *openFile, offset, from int64) (frame, error) {
	seen := s.health.damage.Load()
	fr, err := s.search(f, offset, from)
	if err == nil || err == ErrNotFound {
		return fr, err
	}
	if s.health.heal(&s.files, f, err, seen) {
		fr, err = s.search(f, offset, from)
	}
	if err == errTorn {
		err = ErrNotFound
	}
	return fr, err
}

// search starts at the index entry, and again without one when that did not lead to the right
// place. errTorn is a batch that goes beyond the end.
func (s *Segment) search(f *openFile, offset, from int64) (frame, error) {
	idx, err := s.indexes()
	if err != nil {
		return frame{}, err
	}
	sc := s.scanner(f)
	defer sc.release()
	e, hit := searchOffsets(idx.offsets.Load().view(), offset-s.base)
	if !hit || int64(e.position) <= from {
		return s.scan(&sc, from, offset)
	}
	fr, err := s.entryFrame(&sc, e)
	if err == nil {
		fr, err = s.walk(&sc, fr, offset)
	}
	if !isBadFrame(err) {
		return fr, err
	}
	if idx.built { // so it is the log that is bad, or torn
		return s.scan(&sc, int64(e.position), offset)
	}
	s.distrust(idx)
	return s.scan(&sc, from, offset)
}

// entryFrame returns the batch that an index entry leads to. It is a frameError when there is
// another one, of which the entry cannot be: the batch begins at or below the entry's offset.
func (s *Segment) entryFrame(sc *scanner, e offsetEntry) (frame, error) {
	fr, err := sc.at(int64(e.position))
	if err != nil {
		return frame{}, err
	}
	first := fr.base
	if limit := s.base + int64(e.offset); fr.wrapper && fr.last > limit {
		if first, err = firstOffset(sc, fr); err != nil {
			return frame{}, err
		}
	}
	if first < s.base || first > s.base+int64(e.offset) {
		return frame{}, frameError("index entry is for another batch")
	}
	return fr, nil
}

// firstOffset looks into a wrapper. Only indexes of Kafka 1.1 and older make that necessary.
func firstOffset(sc *scanner, fr frame) (int64, error) {
	if fr.size >= hugeBatch {
		return 0, frameError("wrapper is too large")
	}
	b := make([]byte, fr.size)
	if _, err := sc.file.ReadAt(b, fr.position); err != nil {
		return 0, err
	}
	first, err := record.Batch(b).FirstOffset()
	if err != nil {
		return 0, frameError(err.Error())
	}
	return first, nil
}

// isBadFrame reports whether there is no batch where one was looked for.
func isBadFrame(err error) bool {
	_, bad := err.(frameError)
	return bad || err == errTorn
}

// walk goes from a batch to the first whose last offset is at least offset. Offsets that do not
// increase are an error here: the index has led into the middle of something.
func (s *Segment) walk(sc *scanner, f frame, offset int64) (frame, error) {
	for f.last < offset {
		next, err := sc.at(f.end())
		if err == io.EOF {
			return frame{}, ErrNotFound
		}
		if err != nil {
			return frame{}, err
		}
		if next.last <= f.last && !next.damaged {
			return frame{}, frameError("offsets do not increase")
		}
		f = next
	}
	return f, nil
}

// scan is walk from a position, for when there is nothing else to go by.
func (s *Segment) scan(sc *scanner, position, offset int64) (frame, error) {
	last := s.base - 1
	for {
		f, err := sc.at(position)
		if err == nil {
			err = s.follows(f, last)
		}
		switch {
		case err == io.EOF:
			return frame{}, ErrNotFound
		case err == errTorn:
			return frame{}, err
		case isBadFrame(err):
			return frame{}, s.files.corrupt(position, -1, err)
		case err != nil:
			return frame{}, err
		case f.last >= offset:
			return f, nil
		}
		position, last = f.end(), f.last
	}
}

// follows finds fault with a batch that cannot be the one behind an offset.
func (s *Segment) follows(f frame, last int64) error {
	if f.damaged {
		return nil
	}
	if f.last <= last {
		return frameError("offsets do not increase")
	}
	if g := s.health.guard.Load(); g != nil && f.position < g.end && f.last >= g.bound {
		return frameError("offsets beyond the end")
	}
	return nil
}

// NextOffset returns the offset behind the last batch, or the base offset without one.
func (s *Segment) NextOffset() (int64, error) {
	next, _, err := s.End()
	return next, err
}

// End returns the offset and the position behind the last batch. Behind that are bytes that are none
// where the position is below Size, which only a segment without a Guard has.
func (s *Segment) End() (next, position int64, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return 0, 0, err
	}
	defer f.release()
	seen := s.health.damage.Load()
	next, position, err = s.endIn(f)
	if err != nil && s.health.heal(&s.files, f, err, seen) {
		next, position, err = s.endIn(f)
	}
	return next, position, err
}

func (s *Segment) endIn(f *openFile) (next, position int64, err error) {
	idx, err := s.indexes()
	if err != nil {
		return 0, 0, err
	}
	sc := s.scanner(f)
	defer sc.release()
	if e := idx.lastOffset(); e != beforeOffsets {
		fr, err := s.entryFrame(&sc, e)
		if err == nil {
			return s.walkToEnd(&sc, fr)
		}
		if !isBadFrame(err) {
			return 0, 0, err
		}
		s.distrust(idx)
	}
	sc.damage = s.health.damage.Load()
	fr, err := s.scan(&sc, 0, s.base)
	if err == ErrNotFound || err == errTorn && s.health.guard.Load() == nil {
		return s.base, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return s.walkToEnd(&sc, fr)
}

// walkToEnd returns what is behind the last whole batch.
func (s *Segment) walkToEnd(sc *scanner, fr frame) (next, position int64, err error) {
	for {
		f, err := sc.at(fr.end())
		if err == nil {
			err = s.follows(f, fr.last)
		}
		switch {
		case err == io.EOF || err == errTorn && s.health.guard.Load() == nil:
			return fr.last + 1, fr.end(), nil
		case isBadFrame(err):
			return 0, 0, s.files.corrupt(fr.end(), fr.last+1, err)
		case err != nil:
			return 0, 0, err
		}
		fr = f
	}
}

// UpperBound returns an offset that no batch in [startPosition, startPosition+size) reaches,
// by the index entry behind them. ok is false when there is none; then the base offset of the
// next segment is one.
func (s *Segment) UpperBound(startPosition int64, size int) (offset int64, ok bool) {
	idx, err := s.indexes()
	if err != nil {
		return 0, false
	}
	e, ok := searchPositions(idx.offsets.Load().view(), startPosition+int64(size))
	if !ok || idx.built {
		return s.base + int64(e.offset), ok
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, false
	}
	defer f.release()
	sc := s.scanner(f)
	defer sc.release()
	if _, err := s.entryFrame(&sc, e); err != nil {
		s.distrust(idx)
		return 0, false
	}
	return s.base + int64(e.offset), true
}
