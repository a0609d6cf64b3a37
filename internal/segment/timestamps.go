package segment

import (
	"errors"
	"io"
	"math"
)

// A TimestampOffset is the answer to a look-up by time.
type TimestampOffset struct {
	Timestamp   int64 // ms
	Offset      int64
	LeaderEpoch int32 // of the batch, -1 if unknown
}

// loadMax takes the largest timestamp from the last entry of the time index, once.
func (s *Segment) loadMax() (maxTimestamp, error) {
	m, known := s.stamps.largest()
	if known {
		return m, nil
	}
	idx, err := s.indexes()
	bare := false
	if err == nil && !idx.built {
		var right bool
		if bare, right = s.timesEndRight(idx); !right {
			s.distrust(idx)
			idx, err = s.indexes()
		}
	}
	if err != nil {
		return m, err
	}
	m = s.maxOf(idx)
	m.bare = bare
	s.stamps.learn(m)
	m, _ = s.stamps.largest()
	return m, nil
}

// timesEndRight reports whether the last entry of the time index is for a batch that has its
// timestamp. Retention goes by it: a wrong one could keep data forever, or not at all. It is bare if the batch
// is a message that has none.
func (s *Segment) timesEndRight(idx *indexes) (bare, right bool) {
	f, err := s.log.acquire()
	if err != nil {
		return false, false
	}
	defer f.release()
	e, tail := idx.lastTime(), int64(max(0, idx.lastOffset().position))
	if e == beforeTimes { // all messages of format v0 are without
		return false, s.noneLater(f, tail, e)
	}
	fr, err := s.locate(f, s.base+int64(e.offset), 0)
	right = err == nil && s.holds(e, fr) && s.noneLater(f, fr.end(), e) && (tail <= fr.end() || s.noneLater(f, tail, e))
	return right && fr.magic == 0, right
}

// noneLater reports whether no batch in tailSize bytes from a position on has a larger timestamp than an
// entry of the time index. Behind the last entry there is none, but in an old copy of the file, or one that
// was cut; and most often nothing is behind it. Where timestamps come in any order much may be: it is not
// all read, since this is asked of every segment on a disk that may be cold.
func (s *Segment) noneLater(f *openFile, position int64, e timeEntry) bool {
	sc := s.scanner(f)
	defer sc.release()
	for end := min(s.size.Load(), position+tailSize); position < end; {
		fr, err := sc.at(position)
		if err != nil {
			break
		}
		if fr.maxTimestamp > e.timestamp && fr.magic > 0 {
			return false
		}
		position = fr.end()
	}
	return true
}

// tailSize is how much of a segment is looked at behind the last entries of its indexes. Behind that of
// the offset index it is more than there is, unless that is empty.
const tailSize = 1 << 20

func (s *Segment) maxOf(idx *indexes) maxTimestamp {
	e := idx.lastTime()
	if e == beforeTimes {
		return unknownMax(s.base)
	}
	return maxTimestamp{timestamp: e.timestamp, offset: s.base + int64(e.offset)}
}

// MaxTimestamp returns the largest timestamp of all batches in ms, and the last offset of the
// batch that has it. Without timestamps it is -1 and the base offset.
func (s *Segment) MaxTimestamp() (timestamp, offset int64, err error) {
	m, err := s.loadMax()
	if err != nil {
		return 0, 0, err
	}
	return m.timestamp, m.offset, nil
}

// MaxTimestampShown returns the largest timestamp of all batches that show theirs, in ms, or -1. It differs from
// MaxTimestamp where the time index has a larger one, or another one, for a message of format v0: that is all one in the
// file of another segment.
func (s *Segment) MaxTimestampShown() (int64, error) {
	m, err := s.maxShown()
	return m.timestamp, err
}

// maxShown reads the headers of all batches, once, if the time index ends in front of a message without timestamp.
func (s *Segment) maxShown() (maxTimestamp, error) {
	m, err := s.loadMax()
	if err != nil || !m.bare {
		return m, err
	}
	seen := s.stamps.shownSoFar()
	if seen.position == 0 {
		seen.max, seen.last = unknownMax(s.base), s.base-1
	} else if seen.position >= s.size.Load() {
		return seen.max, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return m, err
	}
	defer f.release()
	if _, err := s.health.prove(&s.files, f, nil); err != nil {
		return m, err
	}
	_, seen.position, err = s.eachGood(f, seen.position, seen.last, func(fr frame) {
		if seen.last = fr.last; fr.maxTimestamp > seen.max.timestamp {
			seen.max = maxTimestamp{timestamp: fr.maxTimestamp, offset: fr.last}
		}
	})
	if err != nil {
		return m, err
	}
	s.stamps.learnShown(seen)
	return seen.max, nil
}

// LargestTimestamp returns what retention goes by, in ms: the largest timestamp, or the
// modification time of the file when no batch has one.
func (s *Segment) LargestTimestamp() (int64, error) {
	timestamp, _, err := s.MaxTimestamp()
	if err != nil || timestamp >= 0 {
		return timestamp, err
	}
	modified, err := s.ModTime()
	if err != nil {
		return 0, err
	}
	return modified.UnixMilli(), nil
}

// FirstTimestamp returns the largest timestamp of the first batch in ms, by which segments
// roll; math.MaxInt64 if there is no batch or it has none.
func (s *Segment) FirstTimestamp() (int64, error) {
	first, known := s.stamps.ofFirst()
	if known {
		return first, nil
	}
	fr, err := s.frameAt(0)
	if err == io.EOF || isBadFrame(err) || errors.Is(err, ErrCorrupt) {
		return math.MaxInt64, nil // damage is for readers to tell
	}
	if err != nil {
		return 0, err
	}
	first = fr.maxTimestamp
	if first < 0 {
		first = math.MaxInt64
	}
	s.stamps.learnFirst(first)
	return first, nil
}

// frameAt returns the header at a position where a batch starts.
func (s *Segment) frameAt(position int64) (frame, error) {
	f, err := s.log.acquire()
	if err != nil {
		return frame{}, err
	}
	defer f.release()
	sc := s.scanner(f)
	defer sc.release()
	fr, err := sc.at(position)
	if _, bad := err.(frameError); bad {
		err = s.files.corrupt(position, -1, err)
	}
	return fr, err
}

// OffsetByTimestamp returns the first record, in the order of offsets, from start on whose
// timestamp is at least the given one in ms.
func (s *Segment) OffsetByTimestamp(timestamp, start int64) (t TimestampOffset, ok bool, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return t, false, err
	}
	defer f.release()
	for {
		seen := s.health.damage.Load()
		t, ok, err = s.offsetByTimestamp(f, timestamp, start)
		if ok && s.health.doubt.Load() != nil { // the base offset is outside of the checksum
			_, err = s.provenFrame(f, t.Offset, 0)
		}
		if !s.health.heal(&s.files, f, err, seen) && s.health.damage.Load() == seen {
			return t, ok, err
		}
	}
}

func (s *Segment) offsetByTimestamp(f *openFile, timestamp, start int64) (t TimestampOffset, ok bool, err error) {
	position, err := s.startByTime(f, timestamp, start)
	if err == ErrNotFound {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	r := newBatchReader(&s.files, s.health.damage.Load(), f, position, s.size.Load())
	defer r.release()
	return r.firstRecord(timestamp, start)
}

// startByTime returns the position from which on to look at batches: behind it is all that is
// at or above both the timestamp and the offset.
func (s *Segment) startByTime(f *openFile, timestamp, start int64) (int64, error) {
	idx, err := s.indexes()
	if err != nil {
		return 0, err
	}
	from := int64(0)
	if e, hit := searchTimes(idx.times.Load().view(), timestamp); hit {
		fr, err := s.locate(f, s.base+int64(e.offset), 0)
		switch {
		case err == nil && (idx.built || fr.magic > 0 && s.holds(e, fr)):
			from = fr.position
		case err == nil && s.holds(e, fr): // it shows no timestamp that would prove the entry
		case err == nil || err == ErrNotFound:
			s.distrust(idx) // and scan
		default:
			return 0, err
		}
	}
	fr, err := s.locate(f, start, from)
	return fr.position, err
}

// holds reports whether a time index entry can have been made for a batch. Messages that came
// with timestamps and were stored in format v0 have their entries.
func (s *Segment) holds(e timeEntry, f frame) bool {
	return (f.maxTimestamp == e.timestamp || f.magic == 0) && f.last >= s.base+int64(e.offset)
}

// MaxTimestampRecord returns the first record that has the largest timestamp. ok is false when
// no record has a timestamp.
func (s *Segment) MaxTimestampRecord() (t TimestampOffset, ok bool, err error) {
	m, err := s.maxShown()
	if err != nil || m.timestamp < 0 {
		return t, false, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return t, false, err
	}
	defer f.release()
	fr, err := s.locate(f, m.offset, 0)
	if s.health.doubt.Load() != nil {
		fr, err = s.provenFrame(f, m.offset, 0)
	}
	if err == ErrNotFound || err == nil && fr.magic == 0 {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	r := newBatchReader(&s.files, s.health.damage.Load(), f, fr.position, s.size.Load())
	defer r.release()
	return r.firstRecord(m.timestamp, s.base)
}
