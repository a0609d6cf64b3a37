package segment

import (
	"errors"
	"io"

	"github.com/gregor-kafka/gregor/vfs"
)

// TruncateTo removes the batch that has an offset, or the first one behind it, and all that
// follow. cut is how many bytes that took away; it is 0 when there is no such batch. A batch
// with smaller offsets than the given one goes as a whole.
func (s *Segment) TruncateTo(offset int64) (cut int64, err error) {
	if err := s.becomeWriter(); err != nil {
		return 0, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	fr, err := s.provenFrame(f, offset, 0)
	if err == ErrNotFound {
		s.health.cut(&s.files, s.size.Load(), offset)
		return 0, s.truncateTxns(offset)
	}
	if err != nil {
		return 0, err
	}
	if err := s.truncateIndexes(fr, offset); err != nil {
		return 0, err
	}
	cut = s.size.Load() - fr.position
	s.size.Store(fr.position)
	s.health.cut(&s.files, fr.position, offset)
	err = f.Truncate(fr.position)
	s.dirty.Store(true)
	if err != nil {
		return 0, err
	}
	s.bytes = 0
	if fr.position == 0 {
		err = s.restart(f)
	}
	return cut, errors.Join(err, s.reloadMax(f))
}

// truncateIndexes drops the entries of a batch and of all behind it, in memory and in the
// files: left in a file they would look right again once the log has grown.
func (s *Segment) truncateIndexes(fr frame, offset int64) error {
	s.index.Lock()
	defer s.index.Unlock()
	idx := s.idx.Load()
	// Of a batch that begins below the given offset an entry may have a smaller offset, where
	// Kafka up to 4.0 wrote the offset of a record.
	limit := min(offset, fr.base) - s.base
	var offsets []offsetEntry
	for _, e := range idx.offsets.Load().view() {
		if int64(e.offset) < limit && int64(e.position) < fr.position {
			offsets = append(offsets, e)
		}
	}
	var times []timeEntry
	for _, e := range idx.times.Load().view() {
		if int64(e.offset) < limit {
			times = append(times, e)
		}
	}
	shorter := newIndexes(offsets, times)
	shorter.built = idx.built
	s.index.stored.offsets = min(s.index.stored.offsets, len(offsets))
	s.index.stored.times = min(s.index.stored.times, len(times))
	s.idx.Store(shorter)
	if err := s.storeLocked(true); err != nil {
		return err
	}
	return s.truncateTxnsLocked(offset)
}

// truncateTxns drops the aborted transactions that end at an offset or behind it: a crash may have left
// them without their batches.
func (s *Segment) truncateTxns(offset int64) error {
	s.index.Lock()
	defer s.index.Unlock()
	return s.truncateTxnsLocked(offset)
}

// restart makes a segment that has become empty look new.
func (s *Segment) restart(f vfs.File) error {
	modified, err := f.ModTime()
	if err != nil {
		return err
	}
	s.created.Store(modified.UnixNano())
	return nil
}

// reloadMax finds the largest timestamp again: that of the last time index entry, or of a batch
// behind it.
func (s *Segment) reloadMax(f *openFile) error {
	best := s.maxOf(s.idx.Load())
	from := int64(0)
	fr, err := s.locate(f, best.offset, 0)
	if err == nil {
		from = fr.position
		best.bare = best.timestamp >= 0 && fr.magic == 0
	} else if err != ErrNotFound {
		return err
	}
	sc := s.scanner(f)
	defer sc.release()
	for position := from; ; {
		fr, err := sc.at(position)
		if err == io.EOF || isBadFrame(err) {
			break
		}
		if err != nil {
			return err
		}
		if fr.maxTimestamp > best.timestamp {
			best = maxTimestamp{timestamp: fr.maxTimestamp, offset: fr.last}
		}
		position = fr.end()
	}
	s.stamps.set(best)
	return nil
}
