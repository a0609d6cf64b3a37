package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
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

// TruncateTo removes the batch that has an offset, or the first one behind it, and all that
// follow. cut is how many bytes that took away; it is 0 when there is no such batch. A batch
// with smaller offsets than the given one goes as a whole.
func (s *Segment) TruncateTo(offset int64) (cut int64, err error) {
	if err := s.own(); err != nil {
		return 0, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	fr, err := s.locate(f, offset, 0)
	if err == ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := s.truncateIndexes(fr, offset); err != nil {
		return 0, err
	}
	cut = s.size.Load() - fr.position
	s.size.Store(fr.position)
	s.dirty.Store(true)
	if err := f.Truncate(fr.position); err != nil {
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
	} else if err != ErrNotFound {
		return err
	}
	sc := scanner{file: f, limit: s.size.Load()}
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
	s.setMaxStamp(best)
	return nil
}

// Seal ends the time of a segment as the active one: the last entry goes into the time index,
// the index files are completed and cut to their length, and so is a preallocated .log file.
// The indexes in memory may be dropped from now on. A later Append is possible. It is for the
// writer; Flush makes the result durable.
func (s *Segment) Seal() error {
	if !s.index.owned {
		return nil
	}
	if err := s.trimLog(); err != nil {
		return err
	}
	if err := s.finishIndexes(); err != nil {
		return err
	}
	s.index.Lock()
	defer s.index.Unlock()
	s.index.owned = false
	s.cacheLocked(s.idx.Load())
	return nil
}

func (s *Segment) trimLog() error {
	if s.cfg.Preallocate == 0 {
		return nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	s.dirty.Store(true)
	return trimFile(f, s.size.Load())
}

// Flush makes durable what was appended before the call: the bytes of .log, the names of the
// files, and for a sealed segment the indexes. While there is a writer the indexes are left
// alone, since after a crash Recover makes them anew. After an error the segment is to be
// closed: what the file has is not known then.
func (s *Segment) Flush() error {
	if s.dirty.Swap(false) {
		if err := s.syncLog(); err != nil {
			s.dirty.Store(true)
			return err
		}
	}
	if err := s.flushIndexes(); err != nil {
		return err
	}
	if s.newName.Swap(false) {
		if err := s.fs.SyncDir(s.directory()); err != nil {
			s.newName.Store(true)
			return err
		}
	}
	return nil
}

func (s *Segment) syncLog() error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	return f.Sync()
}

// flushIndexes syncs the index files that need it. A failure leaves the marks as they were.
func (s *Segment) flushIndexes() error {
	s.index.Lock()
	indexes := s.index.unsynced && !s.index.owned
	txns := s.index.txnUnsynced && !s.index.owned
	s.index.unsynced = s.index.unsynced && !indexes
	s.index.txnUnsynced = s.index.txnUnsynced && !txns
	s.index.Unlock()
	var err error
	if indexes {
		err = s.syncIndexFiles()
	}
	if txns && err == nil {
		err = s.syncFile(TxnIndexFile)
	}
	if err != nil {
		s.index.Lock()
		s.index.unsynced = s.index.unsynced || indexes
		s.index.txnUnsynced = s.index.txnUnsynced || txns
		s.index.Unlock()
	}
	return err
}

// Close seals and flushes the segment if anything has changed and gives up its descriptor. An
// error means that the files are not as Open expects them, so that the stop was not clean.
// Slices stay valid.
func (s *Segment) Close() error {
	var err error
	if !s.cfg.ReadOnly {
		err = s.settle()
	}
	s.release()
	return err
}

// settle brings the files to what is in memory, and to the disk.
func (s *Segment) settle() error {
	if err := s.Seal(); err != nil {
		return err
	}
	s.index.Lock()
	var err error
	if s.index.dirty {
		err = s.storeLocked(true)
	}
	s.index.Unlock()
	return errors.Join(err, s.Flush())
}

// release gives up the descriptor and the place in the index cache.
func (s *Segment) release() {
	s.log.close()
	s.index.Lock()
	defer s.index.Unlock()
	if idx := s.idx.Swap(nil); idx != nil {
		s.cfg.Indexes.clock.remove(&idx.slot)
	}
}
