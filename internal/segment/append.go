package segment

import (
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/gregor-kafka/gregor/vfs"
)

// Append writes whole batches, with their final offsets, behind the last one in a single write.
// After an error Size is what it was, and so is the file, unless the error matches ErrTorn. The
// bytes are durable after Flush. The set is the caller's again when Append returns; nothing is
// allocated per call.
func (s *Segment) Append(set []byte) error {
	if err := s.becomeWriter(); err != nil {
		return err
	}
	size := s.size.Load()
	if err := s.checkSet(set, size); err != nil {
		return err
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	n, err := f.WriteAt(set, size)
	s.dirty.Store(true) // after the write: a Flush beside it may have taken the mark away
	if err == nil && n < len(set) {
		err = &fs.PathError{Op: "write", Path: s.Path(LogFile), Err: io.ErrShortWrite}
	}
	if err != nil {
		return undoWrite(f, size, err)
	}
	s.size.Store(size + int64(n))
	s.indexSet(set, size)
	return nil
}

// undoWrite takes away what a failed write may have left behind size. Where the disk has failed
// there is nothing to be undone with.
func undoWrite(f *openFile, size int64, cause error) error {
	if vfs.FaultOf(cause) == vfs.DiskFault {
		return fmt.Errorf("%w: %w", ErrTorn, cause)
	}
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("%w: %w (undo: %w)", ErrTorn, cause, err)
	}
	return cause
}

// checkSet refuses what no index could hold and what is not a sequence of whole batches.
func (s *Segment) checkSet(set []byte, size int64) error {
	if size+int64(len(set)) > math.MaxInt32 {
		return ErrFull
	}
	last := int64(-1)
	for position := 0; position < len(set); {
		f, err := parseFrame(set[position:], int64(position), int64(len(set)-position))
		if err != nil {
			return fmt.Errorf("batch at byte %d of a set of %d: %w", position, len(set), err)
		}
		if f.last <= last {
			return fmt.Errorf("batch at byte %d of a set: last offset %d is not above %d", position, f.last, last)
		}
		if err := fitsBase(f.last, s.base); err != nil {
			return fmt.Errorf("batch with offsets %d-%d, segment %d: %w", f.base, f.last, s.base, err)
		}
		last = f.last
		position += f.size
	}
	return nil
}

// indexSet enters batches that were written at a position. Most sets are one batch without an
// entry and take no lock of the indexes.
func (s *Segment) indexSet(set []byte, position int64) {
	for len(set) > 0 {
		f, err := parseFrame(set, position, int64(len(set)))
		if err != nil {
			panic("BUG: appended set is not made of batches: " + err.Error())
		}
		s.stamps.note(f)
		s.indexBatch(f, true)
		set = set[f.size:]
		position = f.end()
	}
}

// indexBatch applies the index rule to the batch just written. With store the entries go to the
// files as they gather.
func (s *Segment) indexBatch(f frame, store bool) {
	if s.bytes <= int64(s.cfg.IndexIntervalBytes) {
		s.bytes += int64(f.size)
		return
	}
	s.index.Lock()
	defer s.index.Unlock()
	idx := s.idx.Load()
	largest, _ := s.stamps.largest()
	b := indexBuilder{base: s.base, cfg: &s.cfg, idx: idx, max: largest, bytes: s.bytes}
	if b.add(f) && store {
		s.maybeStorePieceLocked(idx)
	}
	s.bytes = b.bytes
}
