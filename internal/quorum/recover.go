package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// batchSizeMax bounds a batch of the metadata log, read or written.
const batchSizeMax = 64 << 20

// load opens the segments and numbers their batches, and changes nothing: a torn tail is noted, for
// mendFiles to cut. Batches that end at or before skip, the end of a snapshot, are checked but not
// kept; the bytes of the others stay in memory for raft, which wants them again and panics when it
// cannot read. marks are the offsets at which load is to say what the batch before was like.
func (l *metadataLog) load(skip int64, marks ...int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.leader = noLeader
	l.mu.marks = make(map[int64]mark)
	for _, offset := range marks {
		l.mu.marks[offset] = mark{epoch: noEpoch}
	}
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
	l.mu.fileEnd, l.mu.fileEpoch = l.mu.nextOffset, noEpoch
	if n := len(l.mu.entries); n > 0 {
		l.mu.fileEpoch = l.mu.entries[n-1].epoch
	}
	l.skipLocked(skip)
	return nil
}

// replace notes that a received snapshot is to take the place of the log, for mendFiles to remove it.
func (l *metadataLog) replace(s snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.replaced = true
	l.beginLocked(s)
	l.mu.fileEnd, l.mu.fileEpoch = s.id.endOffset, s.id.epoch
}

// mendFiles makes the files what load took them for: it cuts a torn tail, removes what a snapshot has
// replaced, and a log that ends before the snapshot, which goes on as an empty one.
func (l *metadataLog) mendFiles() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.mu.torn; t != nil {
		l.mu.torn = nil
		l.logger.Warn("torn end of the metadata log is cut", "file", t.why.Path, "position", t.segment.size, "bytes", t.size-t.segment.size, "err", t.why.Err)
		if err := errors.Join(t.segment.file.Truncate(t.segment.size), t.segment.file.Sync()); err != nil {
			return err
		}
	}
	if l.mu.fileEnd < l.mu.nextOffset {
		l.logger.Error("the metadata log ends before the snapshot: it starts anew there", "log end", l.mu.fileEnd, "snapshot", l.mu.nextOffset)
		l.mu.stale, l.mu.segments = append(l.mu.stale, l.mu.segments...), nil
	}
	for len(l.mu.stale) > 0 {
		s := l.mu.stale[0]
		l.mu.stale = l.mu.stale[1:]
		if err := errors.Join(s.file.Close(), l.removeSegment(s.base)); err != nil {
			return err
		}
	}
	return l.finishReplacementLocked()
}

// finishReplacementLocked does what restart would have done.
func (l *metadataLog) finishReplacementLocked() error {
	if !l.mu.replaced {
		return nil
	}
	l.mu.replaced = false
	bases, err := l.segmentBases()
	if err != nil {
		return err
	}
	for _, base := range bases {
		if err := l.removeSegment(base); err != nil {
			return err
		}
	}
	return l.addSegmentLocked()
}

// restartLocked begins the numbering of entries at the end of the log. Until an anchor is found, the
// first batch has the index that it has if all records before it were batches of their own: no index
// exceeds that.
func (l *metadataLog) restartLocked() {
	l.mu.entries, l.mu.epochs, l.mu.anchored = nil, nil, false
	l.mu.firstIndex = uint64(l.mu.nextOffset) + 1
	l.mu.firstBase = l.mu.nextOffset
	for i := range l.mu.kraft {
		l.mu.kraft[i].index, l.mu.kraft[i].votersIndex = 0, 0
	}
}

func (l *metadataLog) segmentBases() ([]int64, error) {
	list, err := l.fs.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	s := &logSegment{base: base, file: file}
	if base > l.mu.nextOffset && base <= skip { // a crash undid some of the removals after a snapshot
		l.mu.stale, l.mu.segments = append(l.mu.stale, l.mu.segments...), nil
		l.mu.nextOffset = base
		l.newBytes.Store(0)
		l.restartLocked()
	}
	l.mu.segments = append(l.mu.segments, s)
	if base != l.mu.nextOffset {
		return &CorruptError{path, 0, l.mu.nextOffset, errors.New("the segment before it ends elsewhere")}
	}
	size, err := file.Size()
	if err != nil {
		return err
	}
	bad, err := walk(file, size, func(batch record.Batch) error { return l.takeLocked(s, batch, skip) })
	if err != nil {
		return err
	}
	if bad == nil {
		return nil
	}
	corrupt := &CorruptError{path, s.size, l.mu.nextOffset, bad}
	if !last || errors.Is(bad, errNumbering) {
		return corrupt
	}
	return l.noteTail(s, size, corrupt)
}

// takeLocked makes the next batch of a segment an entry, or says why it is bad.
func (l *metadataLog) takeLocked(s *logSegment, batch record.Batch, skip int64) error {
	if err := checkBatch(batch, origin{l.mu.nextOffset, l.lastEpochLocked()}); err != nil {
		return err
	}
	if err := l.noteControlLocked(batch); err != nil {
		return err
	}
	l.addLocked(s, batch, s.size)
	if batch.NextOffset() > skip {
		l.mu.entries[len(l.mu.entries)-1].data = bytes.Clone(batch)
	}
	if _, wanted := l.mu.marks[batch.NextOffset()]; wanted {
		l.mu.marks[batch.NextOffset()] = mark{batch.LeaderEpoch(), batch.MaxTimestamp()}
	}
	s.size += int64(batch.Size())
	return nil
}

// walk calls take with the batches of a file until its end or the first that is bad, which take
// says by an error. A batch is valid until take returns. err means that the file cannot be read.
func walk(file vfs.File, size int64, take func(record.Batch) error) (bad, err error) {
	buf := make([]byte, 256<<10)
	var position int64
	for have := 0; ; { // buf[:have] are the bytes from position on
		n, err := file.ReadAt(buf[have:], position+int64(have))
		if err != nil && err != io.EOF {
			return nil, err
		}
		have += n
		used, need, bad := walkBuffer(buf[:have], take)
		copy(buf, buf[used:have])
		have -= used
		position += int64(used)
		switch {
		case bad != nil:
			return bad, nil
		case position == size:
			return nil, nil
		case position+int64(have) >= size:
			return fmt.Errorf("batch is cut off: %d bytes of %d", size-position, need), nil
		case need > len(buf):
			buf = append(make([]byte, 0, need), buf[:have]...)[:need]
		}
	}
}

// walkBuffer calls take with the batches in b. used is how many bytes they take, need how many the
// next one takes.
func walkBuffer(b []byte, take func(record.Batch) error) (used, need int, bad error) {
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
		if err := take(record.Batch(rest[:need])); err != nil {
			return used, 0, err
		}
		used += need
	}
}

// noteControlLocked keeps what a control batch says about the quorum.
func (l *metadataLog) noteControlLocked(batch record.Batch) error {
	if !batch.IsControl() {
		return nil
	}
	records, err := decodeControl(batch)
	if err != nil {
		return err
	}
	for _, r := range records {
		switch v := r.value.(type) {
		case *metadata.LeaderChangeMessage:
			if err := l.anchorLocked(v.RaftIndex, batch.BaseOffset()); err != nil {
				return err
			}
			l.mu.leader = leadership{v.LeaderID, batch.LeaderEpoch(), batch.BaseOffset(), nil}
			for _, voter := range v.Voters {
				l.mu.leader.voters = append(l.mu.leader.voters, voter.VoterID)
			}
		case *metadata.VotersRecord:
			l.mu.soleVoter = nil
		}
	}
	l.mu.kraft.note(l.nextIndexLocked(), batch.BaseOffset(), records)
	return nil
}

// errNumbering matches errors that say that two anchors contradict each other.
var errNumbering = errors.New("raft's numbering of the metadata log contradicts itself")

// anchorLocked takes the index that the next entry says it has, 0 if it does not say.
func (l *metadataLog) anchorLocked(index, offset int64) error {
	switch next := l.nextIndexLocked(); {
	case index == 0 || uint64(index) == next:
		l.mu.anchored = l.mu.anchored || index != 0
		return nil
	case index < 0 || index > offset+1 || l.mu.anchored || uint64(index) <= next-l.mu.firstIndex:
		return fmt.Errorf("%w: entry %d, at offset %d, says it is entry %d", errNumbering, next, offset, index)
	}
	l.renumberLocked(l.mu.firstIndex + uint64(index) - l.nextIndexLocked())
	l.mu.anchored = true
	return nil
}

// renumberLocked gives the first entry another index.
func (l *metadataLog) renumberLocked(first uint64) {
	l.mu.kraft.shift(first - l.mu.firstIndex)
	l.mu.firstIndex = first
}

// anchor gives the entry that ends at a snapshot's end its index, if that is known, and makes the
// snapshot what is known of the quorum there. It returns the snapshot with its place.
func (l *metadataLog) anchor(s snapshot) (snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	index, err := l.indexBeforeLocked(s.id.endOffset)
	if err != nil {
		return s, err
	}
	switch {
	case s.index == 0 || s.index == index:
		s.index = index
	case l.mu.anchored || s.index < index-(l.mu.firstIndex-1):
		return s, fmt.Errorf("%w: the entry that ends at offset %d is entry %d, the snapshot says %d", errNumbering, s.id.endOffset, index, s.index)
	default:
		l.renumberLocked(l.mu.firstIndex + s.index - index)
	}
	l.mu.snapshot = s.index
	before := l.mu.kraft.at(s.index)
	s.kraft.index = s.index
	if s.kraft.version == nil {
		s.kraft.version = before.version
	}
	if s.kraft.voters == nil || before.votersOffset >= 0 && before.voters != nil {
		s.kraft.voters, s.kraft.votersIndex, s.kraft.votersOffset = before.voters, before.votersIndex, before.votersOffset
	}
	l.mu.kraft.startAt(s.kraft)
	return s, nil
}

// noteTail notes what a crash left of the last write, for mendFiles to cut. A good batch in it was
// written after a bad one was synced: then the bytes have changed since, and nothing is cut.
func (l *metadataLog) noteTail(s *logSegment, size int64, why *CorruptError) error {
	tail := make([]byte, min(size-s.size, batchSizeMax))
	if _, err := s.file.ReadAt(tail, s.size); err != nil && err != io.EOF {
		return err
	}
	if at, ok := findBatch(tail, l.mu.nextOffset); ok {
		return &CorruptError{why.Path, why.Position, why.Offset, fmt.Errorf("%w; a good batch follows at byte %d", why.Err, s.size+int64(at))}
	}
	l.mu.torn = &tornTail{s, size, why}
	return nil
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

// skipLocked forgets the entries before the end of a snapshot. A log that ends before it goes on
// there as an empty one.
func (l *metadataLog) skipLocked(end int64) {
	if l.mu.nextOffset < end {
		l.mu.nextOffset = end
		l.restartLocked()
		return
	}
	n := 0
	for n < len(l.mu.entries) && l.mu.entries[n].nextOffset <= end {
		l.newBytes.Add(-int64(l.mu.entries[n].size))
		n++
	}
	if n == 0 {
		return
	}
	l.mu.firstBase = l.mu.entries[n-1].nextOffset
	l.mu.entries = slices.Clone(l.mu.entries[n:])
	l.mu.firstIndex += uint64(n)
}
