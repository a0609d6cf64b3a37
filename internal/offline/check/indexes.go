package check

import (
	"errors"
	"io/fs"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// An indexWalk takes entries away as the walk passes the batches that they are for.
type indexWalk struct {
	offsets []files.OffsetEntry
	times   []files.TimeEntry
	txns    []segment.AbortedTxn

	// An offset entry has the last offset of a batch that begins where it points; or, made by
	// Kafka up to 4.1, of a later one that came in the same request; or, made by Kafka 1, the
	// first offset; or, made by the cleaner of Kafka 2, that of the last record that it kept.
	pending *files.OffsetEntry

	indexed   int64 // where the last entry leads to
	sparse    bool  // that there are too few was reported
	timestamp int64 // of the last entry by time, -1 without one

	maxTimestamp int64
	missing      map[segment.Kind]bool
	txnsReported bool // that the .txnindex file is missing
}

// loadIndexes reads the index files and checks what can be told without the log.
func (p *partition) loadIndexes(s *segmentCheck) {
	s.partition = p
	s.indexes = indexWalk{maxTimestamp: -1, timestamp: -1, missing: map[segment.Kind]bool{}}
	if b := s.readIndex(segment.IndexFile, files.OffsetEntrySize); b != nil {
		list, padding := files.DecodeOffsets(b, s.base)
		s.pad(padding)
		s.indexes.offsets = list[:s.soundOffsets(list)]
	}
	if b := s.readIndex(segment.TimeIndexFile, files.TimeEntrySize); b != nil {
		list, padding := files.DecodeTimes(b, s.base)
		s.pad(padding)
		if n := len(list); n > 0 {
			s.indexes.timestamp = list[n-1].Timestamp
		}
		s.indexes.times = list[:s.soundTimes(list)]
	}
	if b := s.readIndex(segment.TxnIndexFile, files.TxnEntrySize); b != nil {
		list, err := files.DecodeTxns(b)
		if err != nil {
			s.damage(s.partition.path(s.base, segment.TxnIndexFile), 0, -1, "%v", err)
		}
		s.indexes.txns = list
	}
}

// readIndex returns the bytes of an index file, nil if it is missing.
func (s *segmentCheck) readIndex(kind segment.Kind, entrySize int) []byte {
	path := s.partition.path(s.base, kind)
	b, err := files.Read(s.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		s.indexes.missing[kind] = true
		return nil
	}
	if err != nil {
		s.damage(path, -1, -1, "%v", err)
		return nil
	}
	if rest := len(b) % entrySize; rest != 0 {
		s.damage(path, int64(len(b)-rest), -1, "%d bytes at the end are no entry", rest)
	}
	return b
}

func (p *partition) pad(size int) {
	if size > 0 {
		p.padded++
	}
}

// soundOffsets returns how many entries ascend and point into the log; it reports the first
// that does not.
func (s *segmentCheck) soundOffsets(list []files.OffsetEntry) int {
	before := files.OffsetEntry{Offset: s.base - 1, Position: -1}
	for i, e := range list {
		if e.Position >= s.size && s.grown() {
			return i
		}
		if e.Offset <= before.Offset || e.Position <= before.Position || e.Position >= s.size {
			s.damage(s.partition.path(s.base, segment.IndexFile), int64(i*files.OffsetEntrySize), e.Offset,
				"entry leads to byte %d of %d, the one before to offset %d at byte %d", e.Position, s.size, before.Offset, before.Position)
			return i
		}
		before = e
	}
	return len(list)
}

func (s *segmentCheck) soundTimes(list []files.TimeEntry) int {
	before := files.TimeEntry{Timestamp: -1, Offset: s.base}
	for i, e := range list {
		if e.Timestamp <= before.Timestamp || e.Offset < before.Offset {
			s.damage(s.partition.path(s.base, segment.TimeIndexFile), int64(i*files.TimeEntrySize), e.Offset,
				"entry of timestamp %d, the one before of timestamp %d at offset %d", e.Timestamp, before.Timestamp, before.Offset)
			return i
		}
		before = e
	}
	return len(list)
}

// checkOffsetEntries checks the entries that lead to a batch or in front of it.
func (s *segmentCheck) checkOffsetEntries(position int64, b record.Batch, in insight) {
	w := &s.indexes
	for len(w.offsets) > 0 && w.offsets[0].Position <= position {
		s.reportPending(in.first)
		e := w.offsets[0]
		w.offsets = w.offsets[1:]
		w.indexed = e.Position
		if e.Position == position && (s.batchMax <= 0 || b.Size() <= s.batchMax) {
			w.pending = &e
		} else if e.Position == position {
			s.badEntry(segment.IndexFile, e.Offset, "the batch has %d bytes", b.Size())
		} else if !s.inHole(e.Position) {
			s.badEntry(segment.IndexFile, e.Offset, "no batch begins at byte %d", e.Position)
		}
	}
	if position-w.indexed > unindexedMax && !w.sparse && s.indexed() {
		w.sparse = true
		s.note(s.partition.path(s.base, segment.IndexFile), -1, in.first,
			"no entry for the bytes from %d to %d: more than a usual index.interval.bytes explains", w.indexed, position)
	}
	if e := w.pending; e != nil {
		within := in.first <= e.Offset && e.Offset <= in.last
		if e.Offset == in.last || e.Offset == in.first || within && (b.Magic() < 2 || in.holed()) {
			w.pending = nil
		}
	}
}

// unindexedMax is the most that a usual index.interval.bytes leaves without an entry: Kafka up to
// 4.1 makes one for each append at most, and a follower appends what one fetch brought.
const unindexedMax = 11 << 20

// indexed reports whether the indexes of the segment are complete, because nobody writes to it.
func (s *segmentCheck) indexed() bool { return !s.active || s.clean }

// reportPending reports the pending entry: no batch in front of an offset was the one it is for.
func (s *segmentCheck) reportPending(before int64) {
	e := s.indexes.pending
	s.indexes.pending = nil
	if e == nil {
		return
	}
	for _, h := range s.holes {
		if h.from > e.Position { // the batch may have been in there
			return
		}
	}
	s.badEntry(segment.IndexFile, e.Offset, "the batches from byte %d on do not end with offset %d, up to %d", e.Position, e.Offset, before-1)
}

// checkTimeEntries checks the entries for offsets up to the end of a batch: an entry has the
// largest timestamp so far, which is that of its batch. Messages that lost their timestamps
// when they were stored in format v0 have entries that nothing can confirm.
func (s *segmentCheck) checkTimeEntries(b record.Batch, in insight) {
	w := &s.indexes
	w.maxTimestamp = max(w.maxTimestamp, b.MaxTimestamp())
	for len(w.times) > 0 && w.times[0].Offset <= in.last {
		e := w.times[0]
		w.times = w.times[1:]
		if b.Magic() == 0 || len(s.holes) > 0 && e.Timestamp != b.MaxTimestamp() {
			continue
		}
		if b.Magic() == 2 && e.Offset < in.first && len(s.holes) == 0 {
			s.badEntry(segment.TimeIndexFile, e.Offset, "no batch has that offset, the next one begins at %d", in.first)
		} else if e.Timestamp != b.MaxTimestamp() || e.Timestamp != w.maxTimestamp {
			s.badEntry(segment.TimeIndexFile, e.Offset, "timestamp %d, but the batch has %d, and all up to it %d",
				e.Timestamp, b.MaxTimestamp(), w.maxTimestamp)
		}
	}
}

func (s *segmentCheck) badEntry(kind segment.Kind, offset int64, format string, args ...any) {
	s.damage(s.partition.path(s.base, kind), -1, offset, "entry for offset "+itoa(offset)+": "+format, args...)
}

// finishIndexes reports the entries that no batch was found for, and missing files.
func (s *segmentCheck) finishIndexes() {
	w := &s.indexes
	if s.grown() {
		return // entries that are left may be of batches behind
	}
	s.reportPending(s.offsets.expected)
	for _, e := range w.offsets {
		if !s.inHole(e.Position) {
			s.badEntry(segment.IndexFile, e.Offset, "no batch begins at byte %d", e.Position)
			break
		}
	}
	if len(w.times) > 0 && len(s.holes) == 0 {
		s.badEntry(segment.TimeIndexFile, w.times[0].Offset, "the segment ends at offset %d", s.offsets.expected-1)
	}
	s.txns.finish(s)
	if s.indexed() && (!s.active || s.name.Topic != topic.ClusterMetadata) && !w.missing[segment.TimeIndexFile] && w.timestamp < w.maxTimestamp && len(s.holes) == 0 {
		s.note(s.partition.path(s.base, segment.TimeIndexFile), -1, -1,
			"the largest timestamp of the segment, %d, is not in it: Kafka takes %d for that", w.maxTimestamp, w.timestamp)
	}
	if s.name.Topic == topic.ClusterMetadata { // gregor makes none for its metadata log
		return
	}
	if s.size == 0 {
		if w.missing[segment.IndexFile] && w.missing[segment.TimeIndexFile] && (!s.active || s.behindGap) {
			s.note(s.path, -1, s.base, "empty, and without index files: no broker makes a segment there")
		}
		return
	}
	severity := Damage
	if s.justRolled() {
		severity = Note
	}
	if w.missing[segment.IndexFile] {
		s.add(Finding{s.partition.path(s.base, segment.IndexFile), -1, -1, severity, "missing; the next start makes it anew"})
	}
	if s.sawMessages && s.active && !s.clean {
		severity = Note // Kafka 0.8 made none, and who appends to its segment makes one at the next flush
	}
	if w.missing[segment.TimeIndexFile] && s.sawTimes {
		s.add(Finding{s.partition.path(s.base, segment.TimeIndexFile), -1, -1, severity, "missing; look-ups by time read the segment instead"})
	}
}

// justRolled reports whether an unclean stop may have come between a roll, or the first append
// behind it, and the making of index files, which would have no entry yet.
func (s *segmentCheck) justRolled() bool {
	const interval = 4096 // index.interval.bytes, unless somebody changed it
	return s.active && s.around && !s.clean && (s.batches <= 1 || s.size <= interval)
}
