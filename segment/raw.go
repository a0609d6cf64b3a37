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
