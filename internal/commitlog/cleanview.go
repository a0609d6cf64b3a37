package commitlog

import (
	"slices"

	"github.com/gregor-kafka/gregor/segment"
)

// A CleanView is what a log looks like to the cleaner at one moment. It is immutable, and the
// files of its segments can be read until Release, also if they leave the log meanwhile.
type CleanView struct {
	LogStart      int64
	LastStable    int64
	HighWatermark int64
	End           int64

	// Segments are all there are, oldest first. The last one is active.
	Segments []CleanSegment

	log         *Log
	truncations int
	producers   map[int64]producerEnd
}

// A CleanSegment is a segment of a CleanView.
type CleanSegment struct {
	*segment.Segment
	Next  int64 // base offset of the segment behind it; of the active one the log end
	Bytes int64 // size when the view was taken
}

// A producerEnd is where a producer stands: the last offset of its last data batch, or -1 if
// none is known.
type producerEnd struct {
	epoch      int16
	lastOffset int64
}

// CleanView returns the log as it is. The caller releases it.
func (l *Log) CleanView() *CleanView {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	v := &CleanView{
		LogStart: o.LogStart, LastStable: o.LastStable, HighWatermark: o.HighWatermark, End: o.End,
		Segments:    o.CleanSegments(),
		log:         l,
		truncations: l.mu.truncations,
		producers:   make(map[int64]producerEnd, len(l.mu.producers.producers)),
	}
	for id, p := range l.mu.producers.producers {
		end := producerEnd{epoch: p.epoch, lastOffset: -1}
		if p.count > 0 {
			end.lastOffset = p.batches[p.newest].lastOffset
		}
		v.producers[id] = end
	}
	return v
}

// CleanSegments describes the segments of a state as the cleaner sees them, oldest first. It
// takes no lock, and the files may be gone already.
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

// Release lets go of the files.
func (v *CleanView) Release() {}

// ActiveBase returns the base offset of the active segment.
func (v *CleanView) ActiveBase() int64 { return v.Segments[len(v.Segments)-1].BaseOffset() }

// SegmentsTo returns the segments that begin below an offset.
func (v *CleanView) SegmentsTo(offset int64) []CleanSegment {
	n := slices.IndexFunc(v.Segments, func(s CleanSegment) bool { return s.BaseOffset() >= offset })
	if n < 0 {
		n = len(v.Segments)
	}
	return v.Segments[:n]
}
