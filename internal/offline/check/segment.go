package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A recordVisitor sees the records of good batches.
type recordVisitor func(b record.Batch, r *record.Record) error

// A segmentCheck is the walk over one segment.
type segmentCheck struct {
	*partition
	scan   *files.Scanner
	path   string // of the .log file
	base   int64
	size   int64
	active bool

	indexes     indexWalk
	behindGap   bool // offsets are missing in front of it
	batches     int  // good ones so far
	sawMessages bool // a batch of format v0
	sawTimes    bool // a batch that can have a timestamp
	holes       []hole
	growths     int  // how often the file was found to be longer
	misplaced   bool // see checkPlace
}

// A hole is a stretch of the file that has no good batch.
type hole struct{ from, to int64 }

func (s *segmentCheck) inHole(position int64) bool {
	for _, h := range s.holes {
		if h.from <= position && position < h.to {
			return true
		}
	}
	return false
}

// walkSegment checks a .log file and its indexes.
func (p *partition) walkSegment(ctx context.Context, base int64, active bool) (err error) {
	path := p.path(base, segment.LogFile)
	scan, err := files.OpenScanner(p.fs, path, base)
	if errors.Is(err, fs.ErrNotExist) {
		p.vanished(path)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scan.Close()) }()
	if !p.shallow {
		scan.CheckRecords()
	}
	s := &segmentCheck{partition: p, scan: scan, path: path, base: base, size: scan.Size(), active: active}
	if had := p.sizes[base]; s.size < had {
		p.damage(path, s.size, -1, "the file has %d bytes, and had %d when gregor was stopped", s.size, had)
	}
	p.loadIndexes(s)
	p.offsets.segment(s)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		sp, err := scan.Next()
		switch {
		case err == io.EOF:
			s.finishIndexes()
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			p.damage(path, scan.Position(), -1, "cut while it was read")
			return nil
		case err != nil:
			return err
		case sp.Err == nil:
			s.good(sp)
		case s.growing(sp):
			continue
		default:
			s.bad(sp)
		}
		p.read(sp.End - sp.Position)
	}
}

// vanished reports a file that is gone since the directory was listed. If that was a broker, it is
// not in the list the next time.
func (p *partition) vanished(path string) { p.damage(path, -1, -1, "went away while it was read") }

// growthMax is how often the end of a file that somebody appends to is read again.
const growthMax = 16

// growing reports whether bad bytes at the end are no more than the beginning of what is being
// written now. The walk then goes on with what is there by now.
func (s *segmentCheck) growing(sp files.Span) bool {
	if sp.End < s.size || !s.grown() {
		return false
	}
	if s.growths++; s.growths > growthMax {
		return true // it ends here
	}
	if err := s.scan.Reread(sp.Position); err != nil {
		return false
	}
	s.size = s.scan.Size()
	return true
}

// grown reports whether somebody has appended to the file since its size was taken, so that
// other files may know of more than was read.
func (s *segmentCheck) grown() bool {
	return s.active && s.scan.Grown()
}

// bad reports bytes that are no good batch.
func (s *segmentCheck) bad(sp files.Span) {
	offset := s.offsets.expected
	switch {
	case sp.Batch != nil:
		s.damage(s.path, sp.Position, offset, "batch of %d bytes: %s", sp.Batch.Size(), plain(sp.Err))
	case sp.End < s.size:
		s.damage(s.path, sp.Position, offset, "%s; the next good batch is at byte %d", plain(sp.Err), sp.End)
	default:
		severity := Damage
		if s.active && s.aboveProofs(offset) {
			severity = Note
		}
		s.add(Finding{s.path, sp.Position, offset, severity,
			fmt.Sprintf("%s; nothing good follows in the last %d bytes", plain(sp.Err), sp.End-sp.Position)})
		s.torn = s.torn || s.active
	}
	s.holes = append(s.holes, hole{sp.Position, sp.End})
	s.offsets.lost = true
	s.txns.lost = true
	s.producers.lost = true
}

// aboveProofs reports whether an unclean stop may have been in the middle of writing what follows
// an offset: nobody says that it was there.
func (p *partition) aboveProofs(offset int64) bool {
	if !p.around || p.clean || offset < p.recoveryPoint || offset < p.highWatermark {
		return false
	}
	return !slices.ContainsFunc(p.producers.snapshots, func(f producerSnapshotFile) bool { return f.offset > offset })
}

// plain leaves out of an error what the finding has anyway.
func plain(err error) string {
	var e *record.CorruptError
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// good checks a batch whose checksum is right.
func (s *segmentCheck) good(sp files.Span) {
	b := sp.Batch
	in, err := s.inspect(b, sp.Records)
	if err != nil {
		s.damage(s.path, sp.Position, b.BaseOffset(), "batch of %d bytes: %v", b.Size(), err)
	}
	s.batches++
	if b.Magic() == 0 {
		s.sawMessages = true
	} else {
		s.sawTimes = true
	}
	if b.Magic() == 2 && in.holed() {
		s.partition.compacted, s.partition.holed = true, true
	}
	if !s.offsets.batch(s, sp.Position, in) {
		s.holes = append(s.holes, hole{sp.Position, sp.End})
		return
	}
	s.losses.batch(in)
	s.checkOffsetEntries(sp.Position, b, in)
	s.checkTimeEntries(b, in)
	s.epochs.batch(s, sp.Position, b)
	s.txns.batch(s, b, in)
	s.producers.batch(s, b, in)
	s.noteSnapshotTime(b)
	s.checkPlace(sp.Position, b)
}

// What inspect learns of a batch.
type insight struct {
	first, last int64
	count       int64 // of records
	control     record.ControlType

	coordinatorEpoch int32 // of an ABORT or COMMIT marker
}

// holed reports whether compaction has removed records of the batch.
func (in *insight) holed() bool { return in.count >= 0 && in.count <= in.last-in.first }

const noControl record.ControlType = -1

// inspect looks at the records of a batch: that they can be read, are as many as the header
// says and have ascending offsets of the batch. What the scanner has found wrong with them is
// known. It decodes them only where it must.
func (s *segmentCheck) inspect(b record.Batch, known error) (in insight, err error) {
	in = insight{first: b.BaseOffset(), last: b.LastOffset(), count: int64(b.Count()), control: noControl}
	if known != nil || b.Magic() == 2 && !b.IsControl() && s.records == nil {
		return in, known
	}
	before, n := int64(math.MinInt64), int64(0)
	for r, err := range b.Records() {
		if err != nil {
			return in, err
		}
		switch {
		case r.Offset <= before:
			return in, fmt.Errorf("record of offset %d does not come after %d", r.Offset, before)
		case r.Offset > in.last || b.Magic() == 2 && r.Offset < in.first:
			return in, fmt.Errorf("record of offset %d in a batch of offsets %d-%d", r.Offset, in.first, in.last)
		case n == 0 && b.Magic() < 2:
			in.first = r.Offset
		}
		before = r.Offset
		n++
		if err := s.visit(b, &r, &in); err != nil {
			return in, fmt.Errorf("record of offset %d: %w", r.Offset, err)
		}
	}
	if b.Magic() < 2 && n > 0 && before != in.last {
		return in, fmt.Errorf("wrapper of offset %d ends with the record of offset %d", in.last, before)
	}
	in.count = n
	return in, nil
}

func (s *segmentCheck) visit(b record.Batch, r *record.Record, in *insight) error {
	if b.IsControl() {
		t, err := record.ParseControl(r.Key)
		if err != nil {
			return err
		}
		in.control = t
		if t == record.ControlAbort || t == record.ControlCommit {
			in.coordinatorEpoch, err = record.ParseEndTxn(r.Value)
		}
		return err
	}
	if s.records != nil {
		return s.records(b, r)
	}
	return nil
}
