package commitlog

import (
	"errors"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// An overflowError says that recovery met good batches whose offsets do not fit their
// segment: an old bug (KAFKA-6264), or an offset that a torn write has spoiled.
type overflowError struct {
	segment *segment.Segment
	err     error
}

func (e *overflowError) Error() string { return e.err.Error() }
func (e *overflowError) Unwrap() error { return e.err }

// split replaces a segment by as many as its offsets ask for. What is behind the first bad
// batch is not copied: recovery would cut it. A crash in between is undone or finished by
// finishSwaps.
func (r *recovery) split(s *segment.Segment) error {
	l := r.log
	parts, copied, err := copyParts(l, s)
	if err != nil {
		return err
	}
	l.logger.Warn("offsets do not fit: segment is split", "partition", l.partition,
		"segment", s.BaseOffset(), "parts", len(parts), "lost bytes", s.Size()-copied)
	for _, p := range slices.Backward(parts) {
		if err := p.ChangeSuffix(segment.CleanedSuffix, segment.SwapSuffix); err != nil {
			return err
		}
		if err := l.fs.SyncDir(l.dirLocked()); err != nil {
			return err
		}
	}
	if err := l.retire(l.dirLocked(), []*segment.Segment{s}); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.ChangeSuffix(segment.SwapSuffix, ""); err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.dirLocked())
}

// A splitter copies batches to as many .cleaned segments as their offsets ask for.
type splitter struct {
	log    *Log
	base   int64 // of the segment to split
	config segment.Config
	parts  []*segment.Segment
	last   int64 // last offset copied
	copied int64 // bytes
}

// copyParts copies the good batches of s to .cleaned segments, which are on disk then.
func copyParts(l *Log, s *segment.Segment) (parts []*segment.Segment, copied int64, err error) {
	modified, err := s.ModTime()
	if err != nil {
		return nil, 0, err
	}
	sp := splitter{log: l, base: s.BaseOffset(), config: l.config.Load().segment(l.disk.Caches), last: s.BaseOffset() - 1}
	sp.config.Suffix = segment.CleanedSuffix
	for located, err := range s.Batches(0, s.Size()) {
		if errors.Is(err, record.ErrCorrupt) || err == nil && !sp.isGood(located.Batch) {
			break
		}
		if err == nil {
			err = sp.add(located.Batch)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	if len(sp.parts) == 0 {
		if err := sp.begin(sp.base); err != nil {
			return nil, 0, err
		}
	}
	for _, p := range sp.parts {
		if err := errors.Join(p.Seal(), p.Flush(), p.SetModTime(modified)); err != nil {
			return nil, 0, err
		}
	}
	return sp.parts, sp.copied, nil
}

func (sp *splitter) isGood(b record.Batch) bool { return b.Verify() == nil && b.LastOffset() > sp.last }

func (sp *splitter) begin(base int64) error {
	p, err := segment.Create(sp.log.fs, sp.log.dirLocked(), base, sp.config, sp.log.now())
	sp.parts = append(sp.parts, p)
	return err
}

// add copies b. The first part keeps the name of the segment if b fits it; others are
// named by their first batch.
func (sp *splitter) add(b record.Batch) error {
	base := sp.base
	if n := len(sp.parts); n > 0 {
		base = sp.parts[n-1].BaseOffset()
	}
	if fits := b.LastOffset()-base <= math.MaxInt32; len(sp.parts) == 0 || !fits {
		if !fits {
			base = b.BaseOffset()
		}
		if err := sp.begin(base); err != nil {
			return err
		}
	}
	sp.last = b.LastOffset()
	sp.copied += int64(b.Size())
	return sp.parts[len(sp.parts)-1].Append(b)
}
