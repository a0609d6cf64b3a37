package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// ErrSegmentsChanged says that the log is not as it was when it was viewed, so that segments
// made from the view cannot replace those that were there. It is to be viewed again.
var ErrSegmentsChanged = errors.New("segments have changed meanwhile")

// CreateCleaned makes the .cleaned files of an empty segment, for output that is going to
// replace segments. Files of that name that an earlier attempt has left are removed. The
// caller gives the segment to ReplaceSegments, or removes it.
func (l *Log) CreateCleaned(base int64) (*segment.Segment, error) {
	c := l.config.Load().segment(l.disk.Caches)
	c.Suffix, c.Preallocate = segment.CleanedSuffix, 0
	dir := l.Dir()
	s, err := segment.Create(l.fs, dir, base, c, l.now())
	if !errors.Is(err, fs.ErrExist) {
		return s, err
	}
	old, err := segment.Open(l.fs, dir, base, c)
	if err != nil {
		return nil, err
	}
	if err := old.Remove(); err != nil {
		return nil, err
	}
	return segment.Create(l.fs, dir, base, c, l.now())
}

// ReplaceSegments puts cleaned, which CreateCleaned has made and which are sealed and flushed,
// in the place of old, neighbours in the view. Both are sorted, and the first of both have the
// same base offset. A crash at any moment leaves a directory that the next Open brings to one
// side or the other (see finishSwaps):
//
//	 old        cleaned
//	.log       .cleaned     output is complete: all of it is on disk
//	.log       .swap        highest base first; from here on it is going to replace the old
//	.deleted   .swap        removed after file.delete.delay.ms; readers inside go on
//	.deleted   .log
//
// An error that matches ErrSegmentsChanged or is a *DiskFullError left the log as it was, and
// cleaned is the caller's to remove. Other errors poison the log.
func (l *Log) ReplaceSegments(v *CleanView, cleaned, old []*segment.Segment) error {
	if err := l.prepare(); err != nil {
		return err
	}
	l.files.Lock()
	defer l.files.Unlock()
	var err error
	// As a sync does, so that none looks for files under old names, and no rename of the
	// directory comes between.
	if e := l.syncOnce(func() error {
		err = l.replace(v, cleaned, old)
		return nil
	}); e != nil {
		return e
	}
	return err
}

func (l *Log) replace(v *CleanView, cleaned, old []*segment.Segment) error {
	if err := l.replaceable(v, cleaned, old); err != nil {
		return err
	}
	dir := l.Dir()
	if err := l.stage(dir, cleaned); err != nil {
		return err
	}
	if err := l.publish(cleaned, old); err != nil {
		return err
	}
	for _, s := range old {
		if err := s.ChangeSuffix("", segment.DeletedSuffix); err != nil {
			return l.fail("replace segments", err)
		}
	}
	if err := l.fs.SyncDir(dir); err != nil {
		return l.fail("replace segments", err)
	}
	l.removeLater(old)
	for _, s := range cleaned {
		if err := s.ChangeSuffix(segment.SwapSuffix, ""); err != nil {
			return l.fail("replace segments", err)
		}
	}
	if err := l.fs.SyncDir(dir); err != nil {
		return l.fail("replace segments", err)
	}
	l.logger.Debug("segments replaced", "partition", l.partition, "base", old[0].BaseOffset(), "segments", len(old), "by", len(cleaned))
	return nil
}

// replaceable checks that what the cleaned segments were made from is what the log has. A
// truncation anywhere counts: what is gone may be why records were left out.
func (l *Log) replaceable(v *CleanView, cleaned, old []*segment.Segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return err
	}
	o := l.offsets.Load()
	i := slices.Index(o.segments, old[0])
	if l.mu.truncations != v.truncations || i < 0 || i+len(old) >= len(o.segments) || !slices.Equal(o.segments[i:i+len(old)], old) {
		return fmt.Errorf("%v: %w", l.partition, ErrSegmentsChanged)
	}
	if cleaned[0].BaseOffset() != old[0].BaseOffset() || cleaned[len(cleaned)-1].BaseOffset() >= o.segments[i+len(old)].BaseOffset() {
		panic("BUG: cleaned segments do not fit in the place of the old ones")
	}
	return nil
}

// stage makes complete output known as such. Before the last step nothing has happened, and a
// failure is undone.
func (l *Log) stage(dir string, cleaned []*segment.Segment) (err error) {
	for _, s := range slices.Backward(cleaned) {
		if err = s.ChangeSuffix(segment.CleanedSuffix, segment.SwapSuffix); err == nil {
			err = l.fs.SyncDir(dir)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	var undo error
	for _, s := range cleaned {
		undo = errors.Join(undo, s.ChangeSuffix(segment.SwapSuffix, segment.CleanedSuffix))
	}
	if undo = errors.Join(undo, l.fs.SyncDir(dir)); undo != nil {
		return l.fail("undo a swap", errors.Join(err, undo))
	}
	return l.spare("swap in segments", err)
}

// publish gives readers the cleaned segments, and forgets what was known of places in the old.
func (l *Log) publish(cleaned, old []*segment.Segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.offsets.next()
	i := slices.Index(next.segments, old[0])
	next.segments = slices.Concat(next.segments[:i], cleaned, next.segments[i+len(old):])
	for k, s := range cleaned {
		s.OnDamage(l.noteDamage)
		s.Guard(next.segments[i+k+1].BaseOffset())
	}
	if slices.Contains(old, next.highWatermark.segment) {
		next.highWatermark = position{offset: next.highWatermark.offset}
	}
	l.offsets.recent.clear()
	l.mu.unsynced = slices.DeleteFunc(l.mu.unsynced, func(s *segment.Segment) bool { return slices.Contains(old, s) })
	l.inheritFactsLocked(next.segments, cleaned, old)
	l.offsets.publish(next, l.mu.producers)
	for _, s := range old {
		if slices.ContainsFunc(cleaned, func(c *segment.Segment) bool { return c.BaseOffset() == s.BaseOffset() }) {
			continue
		}
		if err := l.mu.snapshots.remove(s.BaseOffset()); err != nil {
			return l.fail("remove producer snapshot", err)
		}
	}
	return nil
}
