package segment

import (
	"errors"
)

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
	err = trimFile(f, s.size.Load())
	s.dirty.Store(true)
	return err
}

// Flush makes durable what was appended before the call: the bytes of .log, the names of the
// files, and for a sealed segment the indexes. While there is a writer the indexes are left
// alone, since after a crash Recover makes them anew. After an error the segment is to be
// closed: what the file has is not known then. One that comes while another runs waits for it.
func (s *Segment) Flush() error {
	s.flushing.Lock() // who finds no mark must not be ahead of the sync that took it
	defer s.flushing.Unlock()
	if s.dirty.Swap(false) {
		if err := s.syncLog(); err != nil {
			s.dirty.Store(true)
			return err
		}
	}
	if err := s.flushIndexes(); err != nil {
		return err
	}
	return s.files.syncNames()
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
		err = s.files.sync(TxnIndexFile)
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
		err = s.writeBack()
	}
	s.release()
	return err
}

// Abandon gives up the descriptor as Close does, and leaves the files as they are.
func (s *Segment) Abandon() { s.release() }

// writeBack brings the files to what is in memory, and to the disk.
func (s *Segment) writeBack() error {
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
	s.index.noFiles = false // a goroutine that is about to make the files comes too late
	if idx := s.idx.Swap(nil); idx != nil {
		s.cfg.Indexes.cache.remove(&idx.slot)
	}
}
