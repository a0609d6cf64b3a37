package check

import "github.com/gregor-kafka/gregor/internal/checkpoint"

// gapsMax bounds how many holes are remembered of a log that turns out not to be compacted.
const gapsMax = 100

// An offsetWalk follows the offsets of a log over its segments. No checksum covers the offset
// of a batch, so its neighbours have to.
type offsetWalk struct {
	expected int64 // next offset, if nothing is missing
	started  bool
	odd      bool // a batch is not where it belongs, so that nobody knows where the log ends
	lost     bool // a bad batch lies between the last good one and the next
	prev     placed
	gaps     []gap
}

// A placed batch is where its offsets were found.
type placed struct {
	path        string
	position    int64
	first, last int64
	expected    int64 // what first should have been
}

// A gap is a hole between two offsets, in front of a batch or of a segment.
type gap struct {
	path     string
	position int64
	from, to int64
	segment  bool
}

func (w *offsetWalk) lastBatch() (path string, position int64) { return w.prev.path, w.prev.position }

// segment begins a segment.
func (w *offsetWalk) segment(s *segmentCheck) {
	switch {
	case !w.started:
		w.started = true
		w.expected = s.base
	case s.base < w.expected:
		w.odd = w.odd || s.size > 0
		s.damage(s.path, 0, s.base, "segment begins below %d, where the one before ends", w.expected)
		if s.size > 0 {
			w.expected = s.base
		}
	case s.base > w.expected:
		s.behindGap = true
		if !w.lost {
			w.gap(gap{s.path, 0, w.expected, s.base, true})
		}
		w.expected = s.base
		w.lost = false
	}
}

func (w *offsetWalk) gap(g gap) {
	if len(w.gaps) < gapsMax {
		w.gaps = append(w.gaps, g)
	}
}

// batch takes the next good batch. It returns false if its offsets do not belong in the
// segment.
func (w *offsetWalk) batch(s *segmentCheck, position int64, in insight) (belongs bool) {
	belongs = true
	now := placed{s.path, position, in.first, in.last, w.expected}
	length := in.last - in.first + 1
	switch {
	case length <= 0 || in.first < s.base || in.last-s.base > 1<<31-1:
		w.odd = true
		s.damage(s.path, position, in.first, "offsets %d-%d do not belong in the segment of %d", in.first, in.last, s.base)
		w.expected += max(0, length)
		now.last = w.expected - 1
		belongs = false
	case in.first < w.expected:
		w.overlap(s, now, length)
	default:
		if in.first > w.expected && !w.lost {
			w.gap(gap{s.path, position, w.expected, in.first, false})
		}
		w.expected = in.last + 1
	}
	w.prev = now
	w.lost = false
	return belongs
}

// overlap finds out which of two batches is in the wrong place: the one before, if it left a
// hole in front of it and this one fits exactly without that; this one, if there is no hole.
func (w *offsetWalk) overlap(s *segmentCheck, now placed, length int64) {
	const wrong = "offsets %d-%d overlap those of the batch at byte %d, %d-%d"
	shift := w.prev.first - w.prev.expected
	w.odd = true
	if shift > 0 && w.prev.path == s.path {
		s.damage(w.prev.path, w.prev.position, w.prev.first, wrong, w.prev.first, w.prev.last, now.position, now.first, now.last)
		if now.first == w.prev.last+1-shift {
			w.expected = now.last + 1
			return
		}
	}
	s.damage(s.path, now.position, now.first, wrong, now.first, now.last, w.prev.position, w.prev.first, w.prev.last)
	if shift > 0 {
		w.expected = now.last + 1
	} else {
		w.expected += length
	}
}

// reportGaps reports the holes of a log that is not compacted.
func (p *partition) reportGaps() {
	if p.compacted {
		return
	}
	for _, g := range p.offsets.gaps {
		p.reportGap(g)
	}
}

// reportGap reports what of a hole is not known to be lost.
func (p *partition) reportGap(hole gap) {
	for _, g := range p.losses.unexplained(hole) {
		if g.segment && p.inLogDir() && !p.aside {
			p.damage(g.path, g.position, g.from, "offsets %d-%d are missing in front of this segment", g.from, g.to-1)
			continue
		}
		p.note(g.path, g.position, g.from, "offsets %d-%d are missing in front of this batch; compaction or a truncation may have removed them",
			g.from, g.to-1)
	}
}

// inLogDir reports whether a log directory is around the partition, whose checkpoints say
// what was compacted.
func (p *partition) inLogDir() bool {
	_, err := p.fs.Stat(p.dir + "/../" + checkpoint.CleanerOffsets)
	return err == nil
}
