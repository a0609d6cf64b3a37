package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// evidence returns what is known when the segments end at found; see evidence.certain. Of leader
// epochs that is what the batches which were read have left standing.
func (r *recovery) evidence(found int64, certain bool) evidence {
	lost := slices.ContainsFunc(r.absent, func(f absentFile) bool { return f.indexed && f.base >= found })
	e := evidence{found: found, certain: certain && !lost, clean: r.clean, claims: r.claims}
	if latest, ok := r.log.epochs.latest(); ok {
		e.claims[byEpoch] = latest.StartOffset
	}
	return e
}

// reaches reports whether a log whose segments end at found is proven to have come to the base of the
// next one, of which there is a file without batches. For certain see evidence.
func (r *recovery) reaches(base, found int64, certain bool) bool {
	e := r.evidence(found, certain)
	e.claims[bySegment] = max(e.claims[bySegment], base)
	return provenEnd(e).end >= base
}

// goOn moves the end from behind the last batch to where it is proven to be, and loses what is
// between.
func (r *recovery) goOn(certain bool) (proof string) {
	e := r.evidence(r.end, certain)
	v := provenEnd(e)
	for _, w := range v.refused {
		r.log.logger.Error("a claim that the log cannot have reached is ignored", "partition", r.log.partition,
			"what", witnessNames[w], "offset", e.claims[w], "end", v.end)
	}
	if r.logStart > v.end {
		r.logStart = 0
	}
	if v.end > r.end {
		r.losses.add(max(r.end, r.logStart, 0), v.end, fmt.Errorf("%w: %s", errLost, v.proof))
		r.begins = r.end >= 0
		r.end = v.end
	}
	if n := len(r.segments); r.tail && n > 0 && r.end > r.segments[n-1].BaseOffset() {
		r.begins = true // behind bad bytes nothing is appended: they could become a batch
	}
	return v.proof
}

// restoreProducers takes the producer state from a snapshot at the end, if that is behind a loss of
// what was on disk: the batches in front of it do not tell. What a crash has lost a producer may send
// again, and then it must not count as known. A log that was deleted up to there begins anew.
func (r *recovery) restoreProducers() error {
	if !r.begins {
		return nil
	}
	if r.logStart == r.end {
		r.point, r.producers = r.end, newProducerState(r.end)
		return nil
	}
	r.producers.end = r.end
	if r.claims[byRecoveryPoint] < r.end {
		return nil
	}
	state, err := r.log.mu.snapshots.restore(r.end)
	if state != nil {
		r.producers = state
	}
	return err
}

// dropForeign puts segments without batches aside that are behind the end which the rest agrees on,
// after a clean stop.
func (r *recovery) dropForeign() error {
	n := len(r.segments)
	for ; n > 1 && r.isAhead(r.segments[n-1].BaseOffset()); n-- {
		if good, err := r.segments[n-1].HasBatch(); good || err != nil {
			return err
		}
		before := r.segments[n-2]
		end, err := before.NextOffset()
		if err != nil && !errors.Is(err, segment.ErrCorrupt) {
			return err
		}
		if r.reaches(r.segments[n-1].BaseOffset(), max(end, before.BaseOffset()), err == nil && before.Size() > 0) {
			break
		}
	}
	foreign := r.segments[n:]
	r.segments = r.segments[:n]
	return r.putAside(foreign)
}

// putAside renames files that are no part of the log. Nobody reads or removes them.
func (r *recovery) putAside(foreign []*segment.Segment) error {
	for _, s := range foreign {
		r.log.logger.Error("file is no part of the log, and is put aside", "partition", r.log.partition, "file", s.Path(segment.LogFile))
		if err := s.ChangeSuffix("", asideSuffix); err != nil {
			return err
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return r.log.fs.SyncDir(r.log.dirLocked())
}

// dropCopies puts segments aside that are copies of others under another name: a .log file without
// an index whose first batch is below its base. In place of the last one, on which appends go on, it is
// put aside with indexes, too, but one batch may be there because of one bit of its offset.
func (r *recovery) dropCopies() error {
	var copies []*segment.Segment
	for i, s := range r.segments {
		unindexed := slices.Contains(r.unindexed, s.BaseOffset())
		if s.Size() == 0 || !unindexed && i < len(r.segments)-1 {
			continue
		}
		below, err := s.FirstBelowBase()
		if err != nil {
			return err
		}
		if below < 2 && (below == 0 || !unindexed) {
			continue
		}
		copies = append(copies, s)
		if offsets, times, err := s.IndexSizes(); err != nil {
			return err
		} else if !unindexed && offsets+times > 0 { // it stands where another one stood
			r.absent = append(r.absent, absentFile{base: s.BaseOffset(), path: s.Path(segment.LogFile), indexed: true})
		}
	}
	r.segments = slices.DeleteFunc(r.segments, func(s *segment.Segment) bool { return slices.Contains(copies, s) })
	return r.putAside(copies)
}

// isAhead reports whether all that is known of the end is below an offset.
func (r *recovery) isAhead(offset int64) bool {
	return r.claims[byRecoveryPoint] > 0 && slices.Max(r.claims[:]) < offset
}

// An absentFile is a .log file that was there once: at the last stop, or its indexes still are.
type absentFile struct {
	base    int64
	path    string
	indexed bool // both its indexes are there: it was part of the log, one alone may be a stray
}

// noteAbsent names what is missing. Its offsets are lost as far as no other segment has them.
func (r *recovery) noteAbsent() error {
	for _, f := range r.absent {
		r.log.logger.Error("file is missing", "partition", r.log.partition, "file", f.path)
		r.losses.add(max(f.base, r.logStart), r.after(f.base), fmt.Errorf("%w: %s is missing", errLost, f.path))
		if f.indexed || r.claims[bySnapshot] == f.base { // as a roll leaves it
			r.claims[bySegment] = max(r.claims[bySegment], f.base)
		}
	}
	if len(r.absent) > 0 && (len(r.segments) == 0 || max(r.absent[0].base, r.logStart) < r.segments[0].BaseOffset()) {
		r.front = r.absent[0].base
	}
	r.noteShortened()
	return r.noteEmptied()
}

// noteShortened looks for sealed segments that have fewer bytes than when the log was closed. Cut behind a
// batch they look like what compaction leaves.
func (r *recovery) noteShortened() {
	if r.closed == nil {
		return
	}
	sizes := map[int64]int64{}
	for _, f := range r.closed.files {
		if f.kind == logFile {
			sizes[f.offset] = f.size
		}
	}
	for _, s := range r.segments[:max(0, len(r.segments)-1)] {
		if had := sizes[s.BaseOffset()]; s.Size() < had {
			r.losses.add(s.BaseOffset(), r.after(s.BaseOffset()), fmt.Errorf("%w: %s has %d bytes, and had %d", segment.ErrEndLost, s.Path(segment.LogFile), s.Size(), had))
		}
	}
}

// after returns the base of the first segment behind an offset, or unbounded.
func (r *recovery) after(offset int64) int64 {
	for _, s := range r.segments {
		if s.BaseOffset() > offset {
			return s.BaseOffset()
		}
	}
	return unbounded
}

// noteEmptied looks for sealed segments whose indexes say that they had batches. Compaction leaves
// some that had none, and there one index alone may be another segment's.
func (r *recovery) noteEmptied() error {
	for _, s := range r.segments[:max(0, len(r.segments)-1)] {
		if s.Size() > 0 {
			continue
		}
		offsets, times, err := s.IndexSizes()
		if err != nil {
			return err
		}
		if offsets > 0 && times > 0 || (offsets > 0 || times > 0) && !r.log.config.Load().Compact {
			r.losses.add(s.BaseOffset(), r.after(s.BaseOffset()), fmt.Errorf("%w: %s is empty", errLost, s.Path(segment.LogFile)))
		}
	}
	return nil
}

// quarantine puts what is lost in quarantine, so that every later start does it again, and makes
// the segments that this takes. Losses that retention has overtaken, or that somebody has brought
// back, are none any more.
func (r *recovery) quarantine() error {
	if len(r.losses.list) == 0 && r.losses.file == nil && r.front < 0 && !r.begins {
		return nil
	}
	parts, err := r.lostParts()
	if err != nil {
		return err
	}
	l := r.log
	var list []checkpoint.Loss
	for _, p := range parts {
		list = append(list, checkpoint.Loss{First: p.first, End: p.end})
	}
	l.mu.losses = r.losses.file
	if err := l.storeLossesLocked(list); err != nil {
		return err
	}
	if err := r.makeSegments(); err != nil {
		return err
	}
	for _, p := range parts {
		r.segments[max(0, floorSegment(r.segments, p.first))].AddLoss(p.first, p.end, p.why)
	}
	return nil
}

// lostParts returns what is lost: of the offsets behind the last batch of each segment.
func (r *recovery) lostParts() (parts []loss, err error) {
	r.guard(len(r.segments) - 1)
	add := func(first, end int64) { parts = append(parts, r.losses.in(first, end)...) }
	if r.front >= 0 {
		add(r.front, min(r.after(r.front), r.end))
	}
	for i, s := range r.segments {
		end := r.end
		if i+1 < len(r.segments) {
			end = r.segments[i+1].BaseOffset()
		}
		if !r.losses.touch(s.BaseOffset(), end) {
			continue
		}
		if i+1 == len(r.segments) {
			s.Guard(end)
		}
		first, err := s.NextOffset()
		if err != nil {
			return nil, err
		}
		add(first, end)
	}
	return parts, nil
}

// makeSegments makes those that are named by where the log began and where it goes on: without
// batches, and on disk at once, because they are part of the proof from now on.
func (r *recovery) makeSegments() error {
	l, c := r.log, r.log.config.Load()
	if r.front >= 0 {
		s, err := l.createCompleteLocked(r.front, c)
		if err != nil {
			return err
		}
		r.segments = slices.Insert(r.segments, 0, s)
		if err := errors.Join(s.Seal(), s.Flush()); err != nil {
			return err
		}
	}
	if !r.begins {
		return nil
	}
	for _, s := range l.mu.unsynced { // nobody looks below the new segment again
		if err := errors.Join(s.Seal(), s.Flush()); err != nil {
			return err
		}
	}
	l.mu.unsynced = nil
	s, err := l.createCompleteLocked(r.end, c)
	if err != nil {
		return err
	}
	r.segments = append(r.segments, s)
	return s.Flush()
}
