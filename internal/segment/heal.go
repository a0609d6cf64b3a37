package segment

// Guard turns quarantine on, for a segment of a log: bytes that are here already are proven
// before a read returns them, damage that is met is put in quarantine (see Damage), and bad
// bytes at the end have the offsets up to bound, which all offsets here are below. Without a
// Guard damage is an error for whoever meets it. Call it again when bound is known better, or
// the segment is not the active one any more.
func (s *Segment) Guard(bound int64) {
	s.health.guardTo(s.size.Load(), bound)
	s.forgetPartial()
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
	return s.health.prove(&s.files, f, pace)
}

// provenFrame makes sure that the bytes for a read from an offset on were looked at: from the index
// entry in front of it, to size bytes behind its batch. It returns the batch.
func (s *Segment) provenFrame(f *openFile, start int64, size int) (frame, error) {
	fr, err := s.locate(f, start, 0)
	d, g := s.health.doubt.Load(), s.health.guard.Load()
	if d == nil || err != nil && err != ErrNotFound || err == nil && fr.position >= g.end || start >= g.bound {
		return fr, err
	}
	if err == ErrNotFound { // there should be one
		if _, err := s.health.prove(&s.files, f, nil); err != nil {
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
	if s.health.proveSpan(&s.files, f, sp, int64(e.offset)+s.base, to) {
		return s.locate(f, start, 0) // the same, unless there was damage in front of it
	}
	if _, err := s.health.prove(&s.files, f, nil); err != nil {
		return frame{}, err
	}
	return s.locate(f, start, 0)
}
