package segment

import (
	"errors"
)

// ReadBytes fills p with the bytes at a position of the .log file, which are below Size. They
// are as they are in the file: the reader checks them, and calls Scrub if something is
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
	if offsets, err = s.files.size(IndexFile); err == nil {
		times, err = s.files.size(TimeIndexFile)
	}
	return offsets, times, err
}

// Indexed returns the last position and the last offset that the index files on disk lead to, -1 for
// none. Where the .log file ends before that it was longer once.
func (s *Segment) Indexed() (position, offset int64, err error) {
	position, offset = -1, -1
	offsets, _, _, err := offsetLayout.load(s, func(offsetEntry) bool { return true })
	if n := len(offsets); n > 0 {
		position, offset = int64(offsets[n-1].position), s.base+int64(offsets[n-1].offset)
	}
	times, _, _, timesErr := timeLayout.load(s, func(timeEntry) bool { return true })
	if n := len(times); n > 0 {
		offset = max(offset, s.base+int64(times[n-1].offset))
	}
	return position, offset, errors.Join(err, timesErr)
}
