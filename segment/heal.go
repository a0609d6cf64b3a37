package segment

import (
	"errors"
	"io"
	"slices"
)

// A guard bounds what is to be proven: the bytes below end, whose offsets are below bound.
type guard struct{ end, bound int64 }

// A doubt says which bytes below a guard's end nobody has looked at since the file was opened.
// It is immutable.
type doubt struct{ proven []span }

// A span is a stretch of good batches. next is the offset behind its last one.
type span struct{ from, to, next int64 }

// Guard turns quarantine on, for a segment of a log: bytes that are here already are proven
// before a read returns them, damage that is met is put in quarantine (see Damage), and bad
// bytes at the end have the offsets up to bound, which all offsets here are below. Without a
// Guard damage is an error for whoever meets it. Call it again when bound is known better, or
// the segment is not the active one any more.
func (s *Segment) Guard(bound int64) {
	s.healing.Lock()
	defer s.healing.Unlock()
	s.guard.Store(&guard{end: s.size.Load(), bound: bound})
	if !s.healing.proven {
		s.doubt.Store(&doubt{})
		s.healing.proven = true // only once
	}
}

// Scrub reads the whole segment and puts what is damaged in quarantine. pace, which may be nil,
// is called with the number of bytes before they are read and may wait, or end the scrub with
// an error. news says whether something was found that was not known.
func (s *Segment) Scrub(pace func(bytes int) error) (news bool, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return false, err
	}
	defer f.release()
	return s.prove(f, pace)
}

// prove walks over everything that is guarded and renews the list of damageList.
func (s *Segment) prove(f *openFile, pace func(int) error) (news bool, err error) {
	s.healing.Lock()
	defer s.healing.Unlock()
	g := s.guard.Load()
	if g == nil {
		return false, nil
	}
	p := s.newProver(f, g.end, g.bound)
	defer p.release()
	p.r.pace = pace
	var list damageList
	for {
		_, d, err := p.step()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
		if d.Size > 0 {
			if p.tail {
				d.End = max(d.First, g.bound)
			}
			list = append(list, d)
		}
	}
	for _, d := range s.Damages() {
		if d.Size == 0 || d.Position >= g.end {
			list = append(list, d)
		}
	}
	s.doubt.Store(nil)
	return s.setDamagesLocked(list), nil
}

// heal is called by who met bytes that are no batch, and knew the damage seen; true asks to
// look again.
func (s *Segment) heal(f *openFile, err error, seen *damageList) bool {
	if s.guard.Load() == nil || !isDamage(err) {
		return false
	}
	if s.damage.Load() != seen {
		return true
	}
	if corrupt, ok := errors.AsType[*CorruptError](err); ok && corrupt.End > 0 {
		return false // in quarantine already
	}
	news, err := s.prove(f, nil)
	return err == nil && news
}

// cutGuard takes notice of a truncation.
func (s *Segment) cutGuard(position, offset int64) {
	s.healing.Lock()
	defer s.healing.Unlock()
	s.cutDamagesLocked(position, offset)
	if g := s.guard.Load(); g != nil {
		s.guard.Store(&guard{end: min(g.end, position), bound: min(g.bound, offset)})
	}
	if d := s.doubt.Load(); d != nil {
		s.doubt.Store(&doubt{slices.DeleteFunc(slices.Clone(d.proven), func(sp span) bool { return sp.to > position })})
	}
}

// provenFrame makes sure that the bytes for a read from an offset on were looked at: from the index
// entry in front of it, to size bytes behind its batch. It returns the batch.
func (s *Segment) provenFrame(f *openFile, start int64, size int) (frame, error) {
	fr, err := s.locate(f, start, 0)
	d, g := s.doubt.Load(), s.guard.Load()
	if d == nil || err != nil && err != ErrNotFound || err == nil && fr.position >= g.end || start >= g.bound {
		return fr, err
	}
	if err == ErrNotFound { // there should be one
		if _, err := s.prove(f, nil); err != nil {
			return frame{}, err
		}
		return s.locate(f, start, 0)
	}
	to := min(g.end, fr.position+int64(max(size, fr.size)))
	i, found := d.find(fr.position)
	if found && d.proven[i].to >= to {
		return fr, nil
	}
	idx, err := s.indexes()
	if err != nil {
		return frame{}, err
	}
	e, ok := searchOffsets(idx.offsets.Load().view(), start-s.base)
	sp := span{next: s.base}
	if ok {
		sp = span{from: int64(e.position), to: int64(e.position), next: -1}
	}
	if s.proveSpan(f, sp, int64(e.offset)+s.base, to) {
		return s.locate(f, start, 0) // the same, unless there was damage in front of it
	}
	if _, err := s.prove(f, nil); err != nil {
		return frame{}, err
	}
	return s.locate(f, start, 0)
}

// find returns the span that has a position.
func (d *doubt) find(position int64) (int, bool) {
	for i, sp := range d.proven {
		if sp.from <= position && position < sp.to {
			return i, true
		}
	}
	return 0, false
}

// proveSpan looks at the batches from sp on, up to a position, and keeps what it learns. An
// index entry vouches for the first one: it must end at the entry's offset. From then on no
// offset may be missing. False says that something is odd, and that all must be looked at.
func (s *Segment) proveSpan(f *openFile, sp span, entry, to int64) bool {
	s.healing.Lock()
	defer s.healing.Unlock()
	d, g := s.doubt.Load(), s.guard.Load()
	if d == nil {
		return true
	}
	r := newBatchReader(s, f, sp.from, g.end)
	defer r.release()
	rest := slices.Clone(d.proven)
	for r.position < to {
		if i, ok := (&doubt{rest}).find(r.position); ok {
			sp.from = min(sp.from, rest[i].from)
			sp.to, sp.next = rest[i].to, rest[i].next
			r.position = sp.to
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		l, err := r.next()
		if err != nil || l.Batch.Verify() != nil {
			return false
		}
		last := l.Batch.LastOffset()
		switch {
		case sp.next < 0 && last != entry:
			return false
		case sp.next >= 0 && first(l.Batch) != sp.next || last < first(l.Batch):
			return false
		}
		sp.to, sp.next = r.position, last+1
	}
	if sp.from == 0 && sp.to >= g.end {
		s.doubt.Store(nil)
	} else {
		s.doubt.Store(&doubt{append(rest, sp)})
	}
	return true
}
