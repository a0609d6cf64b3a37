package commitlog

import (
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/segment"
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

// offsets owns where a log begins and ends, and publishes it. It promises that
//
//	LogStart <= LastStable <= HighWatermark <= End
//	recovery point <= data end <= End, or LogStart
//
// and that whoever loads an Offsets may read every byte it names: it is stored last in a change. Who
// changes anything here holds Log.mu; readers load without.
type offsets struct {
	atomic.Pointer[Offsets]

	// recoveryPoint is the end of what is certainly on disk.
	recoveryPoint atomic.Int64

	data   int64 // behind the last batch; below the log end after some truncations
	block  offsetsBlock
	recent recentAppends
}

// dataEnd returns the offset behind the last batch, the log start if that is behind it.
func (w *offsets) dataEnd() int64 { return max(w.data, w.Load().LogStart) }

// begin is for a log that is opened.
func (w *offsets) begin(logStart, end, recoveryPoint int64, segments []*segment.Segment) *Offsets {
	w.recoveryPoint.Store(recoveryPoint)
	w.data = end
	active := segments[len(segments)-1]
	o := w.block.next()
	*o = Offsets{LogStart: logStart, segments: segments}
	o.end = position{end, active, active.Size()}
	o.highWatermark = position{offset: logStart}
	return o
}

// next returns a copy of the state to change and hand to publish.
func (w *offsets) next() *Offsets {
	o := w.block.next()
	*o = *w.Load()
	return o
}

// publish makes o consistent and shows it to readers. What may have changed is anything but the last stable
// offset, which follows from the rest and from the open transactions of the producers.
func (w *offsets) publish(o *Offsets, producers *ProducerState) {
	o.End = o.end.offset
	if hw := min(max(o.highWatermark.offset, o.LogStart), o.End); hw != o.highWatermark.offset {
		o.highWatermark = w.locate(o, hw)
	} else if hw == o.End {
		o.highWatermark = o.end // of a new segment, perhaps
	}
	o.HighWatermark = o.highWatermark.offset
	producers.release(max(o.HighWatermark, o.LogStart))
	o.lastStable = o.highWatermark
	if first, ok := producers.firstUnstable(); ok && first.offset < o.HighWatermark {
		o.lastStable = first
		if first.offset < o.LogStart {
			o.lastStable = position{offset: o.LogStart}
		}
	}
	o.LastStable = o.lastStable.offset
	w.Store(o)
}

// locate gives an offset its place in a file, if that is known without reading.
func (w *offsets) locate(o *Offsets, offset int64) position {
	if offset == o.end.offset {
		return o.end
	}
	if p, ok := w.recent.find(offset); ok {
		return p
	}
	return position{offset: offset}
}

func (w *offsets) moveHighWatermark(offset int64, producers *ProducerState) {
	next := w.next()
	next.highWatermark = w.locate(next, offset)
	w.publish(next, producers)
}

// synced raises the recovery point.
func (w *offsets) synced(end int64) { w.recoveryPoint.Store(max(w.recoveryPoint.Load(), end)) }

// truncated lowers the recovery point, and forgets places in files.
func (w *offsets) truncated(offset int64) {
	w.recoveryPoint.Store(min(w.recoveryPoint.Load(), offset))
	w.recent.clear()
}

// An offsetsBlock makes Offsets in blocks, so that an append rarely allocates. A log in use keeps
// one block of blockMax; an idle one kept small what it never needed.
type offsetsBlock struct {
	block []Offsets
	size  int
}

const blockMax = 16

func (s *offsetsBlock) next() *Offsets {
	if len(s.block) == 0 {
		s.size = min(max(1, 2*s.size), blockMax)
		s.block = make([]Offsets, s.size)
	}
	o := &s.block[0]
	s.block = s.block[1:]
	return o
}

// recentAppends remembers where the last few appends began and ended. High watermarks follow
// those places, so that publishing one needs no look-up in a file.
type recentAppends struct {
	positions [8]position
	next      int
}

func (t *recentAppends) add(p position) {
	t.positions[t.next] = p
	t.next = (t.next + 1) % len(t.positions)
}

func (t *recentAppends) find(offset int64) (position, bool) {
	for _, p := range t.positions {
		if p.segment != nil && p.offset == offset {
			return p, true
		}
	}
	return position{}, false
}

func (t *recentAppends) clear() { *t = recentAppends{} }

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
