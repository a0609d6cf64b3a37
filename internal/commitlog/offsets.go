package commitlog

import (
	"github.com/gregor-kafka/gregor/segment"
)

// An Offsets is what a log looks like at one moment. Readers take one and stay within it:
// bytes are in the file before the snapshot that names them is published, so a reader that
// asked the file for its size instead could see half a batch (KAFKA-2477). It is immutable
// and may be kept.
//
// Invariant: LogStart <= LastStable <= HighWatermark <= End.
type Offsets struct {
	LogStart      int64 // first offset that may be read
	LastStable    int64 // end for read_committed: first offset of an undecided transaction
	HighWatermark int64 // end for consumers: all in-sync replicas have what is below
	End           int64 // offset of the next record

	// segments is sorted by base and never empty; the last one is active and the only one
	// that grows. The slice is never modified.
	segments []*segment.Segment

	end, highWatermark, lastStable position
}

// A position is an offset with its place in a file. Without a segment the place is not
// known and readers look it up.
type position struct {
	offset  int64
	segment *segment.Segment
	pos     int64 // of the first byte of the batch with the offset
}

var noPosition = position{offset: -1}

// An Isolation says how far a read may see.
type Isolation int8

// The ends that a read may have.
const (
	ReadUncommitted Isolation = iota // the high watermark
	ReadCommitted                    // the last stable offset
	ReadLogEnd                       // the log end: followers and the broker itself
)

// Limit returns the offset that a reader with this isolation must not reach.
func (o *Offsets) Limit(i Isolation) int64 {
	switch i {
	case ReadCommitted:
		return o.LastStable
	case ReadLogEnd:
		return o.End
	}
	return o.HighWatermark
}

func (o *Offsets) limit(i Isolation) position {
	switch i {
	case ReadCommitted:
		return o.lastStable
	case ReadLogEnd:
		return o.end
	}
	return o.highWatermark
}

func (o *Offsets) active() *segment.Segment { return o.segments[len(o.segments)-1] }

// floor returns the index of the segment with the largest base that is not above offset,
// or -1.
func (o *Offsets) floor(offset int64) int { return floorSegment(o.segments, offset) }

func floorSegment(segments []*segment.Segment, offset int64) int {
	below, n := -1, len(segments)
	for below+1 < n { // slices.BinarySearchFunc takes twice as long, and every read is here
		if i := int(uint(below+n) >> 1); segments[i].BaseOffset() <= offset {
			below = i
		} else {
			n = i
		}
	}
	return below
}

// A slab makes Offsets in blocks, so that an append rarely allocates. A log in use keeps
// one block of blockMax; an idle one kept small what it never needed.
type slab struct {
	block []Offsets
	size  int
}

const blockMax = 16

func (s *slab) next() *Offsets {
	if len(s.block) == 0 {
		s.size = min(max(1, 2*s.size), blockMax)
		s.block = make([]Offsets, s.size)
	}
	o := &s.block[0]
	s.block = s.block[1:]
	return o
}

// A trail remembers where the last few appends began and ended. High watermarks follow
// those places, so that publishing one needs no look-up in a file.
type trail struct {
	positions [8]position
	next      int
}

func (t *trail) add(p position) {
	t.positions[t.next] = p
	t.next = (t.next + 1) % len(t.positions)
}

func (t *trail) find(offset int64) (position, bool) {
	for _, p := range t.positions {
		if p.segment != nil && p.offset == offset {
			return p, true
		}
	}
	return position{}, false
}

func (t *trail) clear() { *t = trail{} }

// CleanSegments describes the segments as the cleaner sees them, oldest first. It takes no
// lock, and the files may have left the log meanwhile.
func (o *Offsets) CleanSegments() []CleanSegment {
	list := make([]CleanSegment, len(o.segments))
	for i, s := range o.segments {
		list[i] = CleanSegment{Segment: s, Next: o.End, Bytes: s.Size()}
		if i > 0 {
			list[i-1].Next = s.BaseOffset()
		}
	}
	return list
}
