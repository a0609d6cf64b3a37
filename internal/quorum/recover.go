package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/record"
)

// batchSizeMax bounds a batch of the metadata log, read or written.
const batchSizeMax = 64 << 20

// load opens the segments and numbers their batches. A torn tail is cut and reported. Batches
// that end at or before skip, the end of a snapshot, are checked but not kept; the bytes of
// the others stay in memory for raft, which wants them twice and panics when it cannot read.
func (l *metadataLog) load(skip int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	bases, err := l.segmentBases()
	if err != nil {
		return err
	}
	if len(bases) > 0 {
		l.mu.nextOffset = bases[0]
	}
	l.restartLocked()
	for i, base := range bases {
		if err := l.loadSegment(base, skip, i == len(bases)-1); err != nil {
			return err
		}
	}
	return l.skipLocked(skip)
}

// restartLocked begins the numbering of entries at the end of the log.
func (l *metadataLog) restartLocked() {
	l.mu.entries, l.mu.epochs = nil, nil
	l.mu.firstIndex = uint64(l.mu.nextOffset) + 1
	l.mu.firstBase = l.mu.nextOffset
}

func (l *metadataLog) segmentBases() ([]int64, error) {
	list, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range list {
		if base, ok := parseSegment(e.Name()); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

func (l *metadataLog) loadSegment(base, skip int64, last bool) error {
	path := filepath.Join(l.dir, segmentName(base))
	file, err := l.fs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s := &segment{base: base, file: file}
	l.mu.segments = append(l.mu.segments, s)
	if base != l.mu.nextOffset {
		return &CorruptError{path, 0, l.mu.nextOffset, errors.New("the segment before it ends elsewhere")}
	}
	size, err := file.Size()
	if err != nil {
		return err
	}
	bad, err := l.scan(s, size, skip)
	if err != nil {
		return err
	}
	if bad == nil {
		return nil
	}
	corrupt := &CorruptError{path, s.size, l.mu.nextOffset, bad}
	if !last {
		return corrupt
	}
	return l.cutTail(s, size, corrupt)
}

// scan adds the batches of a segment until its end or the first bad one. s.size is where it
// stopped, bad why. err means that the file cannot be read.
func (l *metadataLog) scan(s *segment, size, skip int64) (bad, err error) {
	buf := make([]byte, 256<<10)
	for have := 0; ; { // buf[:have] are the bytes from s.size on
		n, err := s.file.ReadAt(buf[have:], s.size+int64(have))
		if err != nil && err != io.EOF {
			return nil, err
		}
		have += n
		used, need, bad := l.scanBuffer(s, buf[:have], skip)
		copy(buf, buf[used:have])
		have -= used
		switch {
		case bad != nil:
			return bad, nil
		case s.size == size:
			return nil, nil
		case s.size+int64(have) >= size:
			return fmt.Errorf("batch is cut off: %d bytes of %d", size-s.size, need), nil
		case need > len(buf):
			buf = append(make([]byte, 0, need), buf[:have]...)[:need]
		}
	}
}

// scanBuffer adds the batches in b. used is how many bytes they take, need how many the next
// one takes.
func (l *metadataLog) scanBuffer(s *segment, b []byte, skip int64) (used, need int, bad error) {
	for {
		rest := b[used:]
		if len(rest) < record.LogOverhead {
			return used, record.LogOverhead, nil
		}
		length := binary.BigEndian.Uint32(rest[8:])
		if length < record.HeaderSize-record.LogOverhead || length > batchSizeMax {
			return used, 0, fmt.Errorf("batch length %d", length)
		}
		need := record.LogOverhead + int(length)
		if need > len(rest) {
			return used, need, nil
		}
		batch := record.Batch(rest[:need])
		if err := l.check(batch); err != nil {
			return used, 0, err
		}
		if err := l.noteControl(batch); err != nil {
			return used, 0, err
		}
		l.addLocked(s, batch, s.size)
		if batch.NextOffset() > skip {
			l.mu.entries[len(l.mu.entries)-1].data = bytes.Clone(batch)
		}
		s.size += int64(need)
		used += need
	}
}

// check says whether a batch is a good continuation of the log.
func (l *metadataLog) check(batch record.Batch) error {
	if err := batch.Verify(); err != nil {
		return err
	}
	switch {
	case batch.Magic() != 2:
		return fmt.Errorf("batch of format %d", batch.Magic())
	case batch.BaseOffset() != l.mu.nextOffset:
		return fmt.Errorf("batch has offset %d", batch.BaseOffset())
	case batch.LastOffsetDelta() < 0 || batch.Count() < 1:
		return fmt.Errorf("batch has %d records up to offset delta %d", batch.Count(), batch.LastOffsetDelta())
	case len(l.mu.entries) > 0 && batch.LeaderEpoch() < l.mu.entries[len(l.mu.entries)-1].epoch, batch.LeaderEpoch() < 0:
		return fmt.Errorf("batch has leader epoch %d", batch.LeaderEpoch())
	}
	return nil
}

// noteControl keeps what a control batch says about the quorum, for the next snapshot.
func (l *metadataLog) noteControl(batch record.Batch) error {
	if !batch.IsControl() {
		return nil
	}
	records, err := decodeControl(batch)
	for _, r := range records {
		if r.kind == controlKRaftVersion || r.kind == controlKRaftVoters {
			l.mu.kraft = append(l.mu.kraft, r)
		}
	}
	return err
}

// kraftRecords returns what load found in control batches.
func (l *metadataLog) kraftRecords() []controlRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.kraft
}

// cutTail removes what a crash left of the last write. A good batch in it was written after a
// bad one was synced: then the bytes have changed since, and nothing is cut.
func (l *metadataLog) cutTail(s *segment, size int64, why *CorruptError) error {
	tail := make([]byte, min(size-s.size, batchSizeMax))
	if _, err := s.file.ReadAt(tail, s.size); err != nil && err != io.EOF {
		return err
	}
	if at, ok := findBatch(tail, l.mu.nextOffset); ok {
		return &CorruptError{why.Path, why.Position, why.Offset, fmt.Errorf("%w; a good batch follows at byte %d", why.Err, s.size+int64(at))}
	}
	l.logger.Warn("cut the torn end of the metadata log", "file", why.Path, "position", s.size, "bytes", size-s.size, "reason", why.Err)
	return errors.Join(s.file.Truncate(s.size), s.file.Sync())
}

// findBatch looks for a whole batch with an offset above base, at any byte after the first.
func findBatch(b []byte, base int64) (at int, ok bool) {
	for at = 1; at+record.HeaderSize <= len(b); at++ {
		rest := b[at:]
		if rest[0] != 0 || rest[16] != 2 { // the top of the offset, the magic
			continue
		}
		length := int64(binary.BigEndian.Uint32(rest[8:])) + record.LogOverhead
		if length < record.HeaderSize || length > int64(len(rest)) {
			continue
		}
		batch := record.Batch(rest[:length])
		if batch.BaseOffset() > base && batch.Verify() == nil {
			return at, true
		}
	}
	return 0, false
}

// skipLocked forgets the entries before the end of a snapshot. A log that ends before it, as
// one whose beginning was lost, is replaced by an empty one.
func (l *metadataLog) skipLocked(end int64) error {
	if l.mu.nextOffset < end {
		if len(l.mu.segments) > 0 {
			l.logger.Error("the metadata log ends before the snapshot: it starts anew there", "log end", l.mu.nextOffset, "snapshot", end)
		}
		for _, s := range l.mu.segments {
			if err := errors.Join(s.file.Close(), l.removeSegment(s.base)); err != nil {
				return err
			}
		}
		l.mu.segments, l.mu.nextOffset = nil, end
		l.restartLocked()
		return nil
	}
	n := 0
	for n < len(l.mu.entries) && l.mu.entries[n].nextOffset <= end {
		l.mu.nextBytes -= int64(l.mu.entries[n].size)
		n++
	}
	if n == 0 {
		return nil
	}
	l.mu.firstBase = l.mu.entries[n-1].nextOffset
	l.mu.entries = slices.Clone(l.mu.entries[n:])
	l.mu.firstIndex += uint64(n)
	return nil
}
