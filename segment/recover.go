package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/gregor-kafka/gregor/record"
)

// Recover reads the whole segment after an unclean stop: it checks every batch, calls visit for
// it, makes the indexes anew and cuts the file behind the last good batch. cut is how many
// bytes that took away. The .txnindex file is empty at the first call of visit, which may call
// AppendAborted.
//
// When visit fails, its error is returned and nothing is cut. An ErrOffsetOverflow says that a
// good batch has an offset that does not belong here; nothing is cut either. In both cases the
// segment is to be recovered again, or given up.
func (s *Segment) Recover(visit func(record.Batch) error) (cut int64, err error) {
	if s.cfg.ReadOnly {
		return 0, ErrReadOnly
	}
	if err := s.resetIndexes(); err != nil {
		return 0, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	end, err := s.recoverBatches(f, visit)
	if err != nil {
		return 0, err
	}
	cut = s.size.Load() - end
	s.dirty.Store(true)
	s.newName.Store(true)
	if cut > 0 {
		s.size.Store(end)
		if err := f.Truncate(end); err != nil {
			return 0, err
		}
	}
	s.bytes = 0
	return cut, s.finishIndexes()
}

// resetIndexes makes the caller the writer of a segment with empty indexes.
func (s *Segment) resetIndexes() error {
	s.index.Lock()
	defer s.index.Unlock()
	if old := s.idx.Load(); old != nil && !s.index.owned {
		s.cfg.Indexes.clock.remove(&old.slot)
	}
	idx := newIndexes(nil, nil)
	idx.built = true
	s.idx.Store(idx)
	s.index.owned, s.index.dirty = true, true
	s.index.stored = storedEntries{}
	s.bytes = 0
	s.setMaxStamp(unknownMax(s.base))
	return s.resetTxnsLocked()
}

// recoverBatches returns the end of the last good batch.
func (s *Segment) recoverBatches(f *openFile, visit func(record.Batch) error) (end int64, err error) {
	r := newBatchReader(s, f, 0, s.size.Load())
	defer r.release()
	last := s.base - 1
	for {
		l, err := r.next()
		if err == io.EOF || errors.Is(err, ErrCorrupt) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if l.Batch.Verify() != nil || l.Batch.LastOffset() <= last && l.Batch.LastOffset() >= s.base {
			return end, nil
		}
		last = l.Batch.LastOffset()
		if err := fitsBase(last, s.base); err != nil {
			return 0, fmt.Errorf("%s: byte %d (offset %d): %w", s.Path(LogFile), l.Position, last, err)
		}
		if err := visit(l.Batch); err != nil {
			return 0, err
		}
		s.indexSet(l.Batch, l.Position)
		end = r.position
	}
}

// finishIndexes enters the final timestamp and brings the index files to their length.
func (s *Segment) finishIndexes() error {
	s.index.Lock()
	defer s.index.Unlock()
	b := indexBuilder{base: s.base, cfg: &s.cfg, idx: s.idx.Load(), max: s.maxStamp()}
	b.addTime(true)
	return s.storeLocked(true)
}
