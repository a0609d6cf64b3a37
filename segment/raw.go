package segment

import (
	"errors"
	"io/fs"
)

// ReadBytes fills p with the bytes at a position of the .log file, which are below Size. They
// are as they are in the file: who reads them checks them, and calls Scrub if something is
// wrong.
func (s *Segment) ReadBytes(p []byte, position int64) error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	n, err := f.ReadAt(p, position)
	if n == len(p) {
		return nil
	}
	return err
}

// IndexSizes returns the sizes in bytes of the offset and the time index, without padding if
// they are in memory. A missing index has 0 bytes.
func (s *Segment) IndexSizes() (offsets, times int64, err error) {
	if idx := s.idx.Load(); idx != nil {
		return int64(len(idx.offsets.Load().view())) * offsetEntrySize, int64(len(idx.times.Load().view())) * timeEntrySize, nil
	}
	if offsets, err = s.fileSize(IndexFile); err == nil {
		times, err = s.fileSize(TimeIndexFile)
	}
	return offsets, times, err
}

// IndexedBeyond reports whether the .index file, as it is on disk, has an entry for a batch behind the
// end of the .log file: that one was longer.
func (s *Segment) IndexedBeyond() (bool, error) {
	entries, _, _, err := offsetLayout.load(s, func(offsetEntry) bool { return true })
	n := len(entries)
	return n > 0 && int64(entries[n-1].position) >= s.size.Load(), err
}

func (s *Segment) fileSize(kind Kind) (int64, error) {
	info, err := s.statFile(kind)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
