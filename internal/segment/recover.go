package segment

import (
	"fmt"
	"io"
)

// Recover reads the whole segment after an unclean stop: it checks every batch, calls visit for
// it, and makes the indexes anew. All offsets are below bound, the base offset of the next
// segment if there is one. Damage in front of a good batch goes to quarantine (see Damage). Bad
// bytes at the end are cut, cut says how many, unless tail, which may be nil, keeps them: it is told
// the offset behind the last good batch, and returns the one behind the records that they were. Then
// they go to quarantine as well. The transaction index is empty at the first call of visit, which may
// call AppendAborted; what the file had is replaced at the end, but for entries whose markers would be
// in what is damaged.
//
// When visit fails, its error is returned and nothing is cut. An ErrOffsetOverflow says that a
// good batch has an offset that does not belong here; nothing is cut either. In both cases the
// segment is to be recovered again, or given up.
func (s *Segment) Recover(visit func(Located) error, bound int64, tail func(first int64) (end int64, keep bool, err error)) (cut int64, err error) {
	if s.cfg.ReadOnly {
		return 0, ErrReadOnly
	}
	s.resetIndexes()
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	aborts := map[int64]int64{}
	end, list, err := s.recoverBatches(f, visit, bound, tail, aborts)
	if err != nil {
		return 0, err
	}
	s.health.mu.proven = true
	s.health.doubt.Store(nil)
	s.health.setLocked(&s.files, list)
	cut = s.size.Load() - end
	s.dirty.Store(true)
	s.files.renamed.Store(true)
	if cut > 0 {
		s.size.Store(end)
		if err := f.Truncate(end); err != nil {
			return 0, err
		}
	}
	s.bytes = 0
	if err := s.keepTxns(list, aborts); err != nil {
		return cut, err
	}
	return cut, s.finishIndexes()
}

// resetIndexes makes the caller the writer of a segment with empty indexes.
func (s *Segment) resetIndexes() {
	s.index.Lock()
	defer s.index.Unlock()
	if old := s.idx.Load(); old != nil && !s.index.owned {
		s.cfg.Indexes.cache.remove(&old.slot)
	}
	idx := newIndexes(nil, nil)
	idx.built = true
	s.idx.Store(idx)
	s.index.owned, s.index.dirty = true, true
	s.index.unsynced = true // the process before this one may not have synced what it left
	s.index.stored = storedEntries{}
	s.bytes = 0
	s.stamps.set(unknownMax(s.base))
	s.holdTxnsLocked()
}

// recoverBatches returns where the file is to end, and what is damaged in front of that. Into aborts go the
// producers of ABORT markers, by offset.
func (s *Segment) recoverBatches(f *openFile, visit func(Located) error, bound int64, tail func(int64) (int64, bool, error), aborts map[int64]int64) (end int64, list damageList, err error) {
	p := newProver(&s.files, f, s.size.Load(), bound)
	defer p.release()
	for {
		l, d, err := p.step()
		switch {
		case err == io.EOF:
			return end, list, nil
		case err != nil:
			return 0, nil, err
		case d.Size > 0 && !p.tail:
			list = append(list, d)
			continue
		case d.Size > 0:
			if tail == nil {
				return end, list, nil
			}
			upTo, keep, err := tail(d.First)
			if keep {
				d.End = max(d.First, upTo)
				list, end = append(list, d), d.end()
			}
			return end, list, err
		}
		if err := fitsBase(l.Batch.LastOffset(), s.base); err != nil {
			return 0, nil, fmt.Errorf("%s: byte %d (offset %d): %w", s.Path(LogFile), l.Position, l.Batch.LastOffset(), err)
		}
		if err := visit(l); err != nil {
			return 0, nil, err
		}
		if b := l.Batch; b.Magic() == 2 && b.IsControl() && isAbort(b) {
			aborts[b.LastOffset()] = b.ProducerID()
		}
		s.stamps.note(p.r.frame)
		s.indexBatch(p.r.frame, false)
		end = l.Position + int64(l.Batch.Size())
	}
}

// finishIndexes enters the final timestamp and brings the index files to their length.
func (s *Segment) finishIndexes() error {
	s.index.Lock()
	defer s.index.Unlock()
	largest, _ := s.stamps.largest()
	b := indexBuilder{base: s.base, cfg: &s.cfg, idx: s.idx.Load(), max: largest}
	b.addTime(true)
	return s.storeLocked(true)
}
