package commitlog

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Open loads a log, or creates it if the directory has none, and repairs what a crash left
// (doc/format.md 6). After a clean stop it reads no data but the tail of the last segment
// behind its last index entry. The high watermark starts at the log start.
//
// The log ends where everything together proves that it did (see provenEnd). If its recovery point
// is then below the one in the Options, that one was wrong: store the point before anything is
// appended.
func Open(o Options) (*Log, error) {
	l := newLog(o)
	if ok, err := l.loadClean(&o); ok || err != nil {
		return l, err
	}
	if err := l.load(o); err != nil {
		return nil, err
	}
	if l.metadataPending.Load() {
		l.runLater(func() { _ = l.prepare() }) // else the first append does it
	}
	return l, nil
}

func newLog(o Options) *Log {
	l := &Log{
		fs:          o.FS,
		partition:   o.Partition,
		now:         o.Now,
		logger:      o.Logger,
		deleteLater: o.DeleteLater,
		runLater:    o.Background,
		onFailure:   o.OnFailure,
	}
	if l.disk = o.Disk; l.disk == nil {
		l.disk = &Disk{}
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	l.SetProducerIDExpiration(o.ProducerIDExpiration)
	if l.deleteLater == nil {
		l.deleteLater = func(_ time.Duration, remove func()) { l.background.Go(remove) }
	}
	if l.runLater == nil {
		l.runLater = l.background.Go
	}
	l.flush.done.L = &l.flush.mu
	l.mu.snapshots = snapshots{fs: o.FS, dir: o.Dir}
	config := o.Config // a pointer into the Options would keep all of them
	l.config.Store(&config)
	return l
}

func (l *Log) load(o Options) error {
	left, err := listLeftovers(l.fs, o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l.create(o)
	}
	if err != nil {
		return err
	}
	l.newDir.Store(!o.Clean) // after a kill nobody knows whether its name is durable
	if !left.has(checkpoint.TransactionsFile) {
		l.lost.Store(nothingLost)
	}
	if err := l.loadMetadata(&o); err != nil {
		return err
	}
	if err := left.finishSwaps(l.fs, o.Dir); err != nil {
		return err
	}
	r, err := newRecovery(l, o, &left)
	if err != nil {
		return err
	}
	var orphans []string
	for names := left.now(); ; names = nil {
		if orphans, err = r.openSegments(o.Dir, names); err != nil {
			return err
		}
		r.absent = r.absentFiles(o, &left, orphans)
		r.unindexed = left.unindexed()
		err := r.run()
		if errors.Is(err, errTurned) || errors.Is(err, errUnbegun) {
			continue
		}
		overflow, ok := errors.AsType[*overflowError](err)
		if !ok && err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.split(overflow.segment); err != nil {
			return err
		}
	}
	if err := r.start(); err != nil {
		return err
	}
	if err := r.removeOrphans(orphans); err != nil {
		return err
	}
	if o := l.offsets.Load(); len(l.epochs.list()) == 0 && o.LogStart < o.End {
		l.runLater(func() { l.provenEpochs() }) // else whoever asks for them first does it
	}
	return r.removeDeleted(&left)
}

// create makes an empty log in a directory that is missing. The first flush makes it durable,
// so that creating many logs waits for no disk.
func (l *Log) create(o Options) error {
	if err := vfs.MkdirAll(l.fs, filepath.Dir(o.Dir), 0o755); err != nil {
		return err
	}
	if err := l.fs.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	l.newDir.Store(true)
	l.lost.Store(nothingLost)
	id := o.TopicID
	l.topicID.Store(&id)
	l.metadataPending.Store(!id.IsZero())
	l.epochs = newEpochCache(l.fs, filepath.Join(o.Dir, checkpoint.LeaderEpochs))
	l.epochs.dirty.Store(false)
	v := provenEnd(evidence{found: -1, claims: o.claims()})
	if v.end > 0 {
		l.logger.Error("directory is missing, the log goes on behind what was in it", "partition", l.partition, "dir", o.Dir, "start", v.end, "proof", v.proof)
	}
	r := recovery{log: l, point: v.end, end: v.end, logStart: v.end, producers: newProducerState(v.end)}
	return r.start()
}

// claims are what the checkpoints of the log directory say of the end of a log.
func (o *Options) claims() (c [witnesses]int64) {
	c[byRecoveryPoint], c[byHighWatermark], c[byLogStart] = o.RecoveryPoint, o.HighWatermark, o.LogStartOffset
	return c
}

// newRecovery says what to trust, and reads the leader epochs.
func newRecovery(l *Log, o Options, left *leftovers) (r *recovery, err error) {
	r = &recovery{log: l, clean: o.Clean, point: min(o.RecoveryPoint, left.suspect()), logStart: o.LogStartOffset, claims: o.claims(), turned: math.MaxInt64, meter: o.Recovery}
	if strings.HasSuffix(o.Dir, checkpoint.DeleteDirSuffix) {
		r.clean = true // nobody will read it
	}
	path := filepath.Join(o.Dir, checkpoint.LeaderEpochs)
	l.epochs, err = openEpochCache(l.fs, path)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		l.logger.Error("leader epochs are damaged", "partition", l.partition, "read", l.epochs != nil, "err", err)
		if l.epochs == nil {
			l.epochs = newEpochCache(l.fs, path) // and the batches have them
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if r.clean {
		r.closed = o.CleanState
	}
	if left.has(checkpoint.Losses) {
		err = r.losses.load(l.fs, o.Dir)
		if errors.Is(err, checkpoint.ErrCorrupt) {
			l.logger.Error("gregor-losses is damaged", "partition", l.partition, "known", len(r.losses.list), "err", err)
			err = nil
		}
		r.claims[byLoss] = r.losses.file.latest().End
	}
	return r, err
}

// removeDeleted deletes what had been waiting for it. What these files said of a segment
// that was checked for them must be on disk before they go.
func (r *recovery) removeDeleted(left *leftovers) error {
	l := r.log
	if !r.clean && left.suspect() != math.MaxInt64 {
		if err := l.Flush(); err != nil {
			return err
		}
	}
	return removeFiles(l.fs, l.dirLocked(), left.deleted)
}

// start puts what was loaded in force.
func (r *recovery) start() error {
	l := r.log
	c := l.config.Load()
	if len(r.segments) == 0 {
		s, err := l.createCompleteLocked(r.end, c)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
	} else {
		r.guardAll()
		l.startSegmentLocked(r.segments[len(r.segments)-1].BaseOffset(), c)
	}
	logStart := max(r.logStart, r.segments[0].BaseOffset())
	l.epochs.truncateFromEnd(r.end)
	l.epochs.truncateFromStart(logStart)

	l.flush.lastFlush.Store(l.now().UnixMilli())
	r.producers.doubts, r.producers.lost = nil, nil // what is appended from now on is not theirs
	l.mu.producers = r.producers
	l.offsets.publish(l.offsets.begin(logStart, r.end, r.point, r.segments), l.mu.producers)
	return l.dropFound(r.segments)
}

// openSegments opens what the directory has, ascending, and lists index files without a .log
// file. It also lists the producer snapshots. Nil names are read from the directory.
func (r *recovery) openSegments(dir string, names []string) (orphans []string, err error) {
	l := r.log
	if names == nil {
		if names, err = listNames(l.fs, dir); err != nil {
			return nil, err
		}
	}
	var bases, aborts []int64 // of .log and .txnindex files
	l.mu.snapshots.offsets, l.mu.snapshots.doubted, l.mu.unsynced = nil, nil, nil
	for _, name := range names {
		base, kind, suffix, ok := segment.ParseName(name)
		switch {
		case ok && suffix == "" && kind == segment.LogFile:
			bases = append(bases, base)
		case ok && suffix == "" && kind == segment.TxnIndexFile:
			aborts = append(aborts, base)
		case !ok:
			if offset, ok := checkpoint.ParseProducersName(name); ok {
				l.mu.snapshots.offsets = append(l.mu.snapshots.offsets, offset)
			}
		}
	}
	slices.Sort(bases)
	slices.Sort(l.mu.snapshots.offsets)
	for _, name := range names {
		base, kind, suffix, ok := segment.ParseName(name)
		if _, found := slices.BinarySearch(bases, base); ok && suffix == "" && kind != segment.LogFile && !found {
			orphans = append(orphans, name)
		}
	}
	c := l.config.Load().segment(l.disk.Caches)
	r.segments = make([]*segment.Segment, len(bases))
	for i, base := range bases {
		if r.segments[i], err = segment.Open(l.fs, dir, base, c); err != nil {
			return nil, err
		}
		if !slices.Contains(aborts, base) {
			r.segments[i].NoteNoTxnIndex()
		}
	}
	return orphans, nil
}

// absentFiles returns the .log files that are missing: their indexes are there, or the log had
// them when it was closed, and nothing says that they were on their way out. A crash in the middle
// of a compaction leaves such indexes, too, but none of the last segment, which is not compacted.
func (r *recovery) absentFiles(o Options, left *leftovers, orphans []string) (list []absentFile) {
	var bases []int64
	compacted := int64(-1) // the last one that may have been
	if n := len(r.segments); n > 0 && !r.clean && r.log.config.Load().Compact {
		compacted = r.segments[n-1].BaseOffset()
	}
	for _, name := range orphans {
		if base, _, _, _ := segment.ParseName(name); base > compacted {
			bases = append(bases, base)
		}
	}
	if r.closed != nil {
		for _, f := range r.closed.files {
			if f.kind == logFile && !slices.ContainsFunc(r.segments, func(s *segment.Segment) bool { return s.BaseOffset() == f.offset }) {
				bases = append(bases, f.offset)
			}
		}
	}
	slices.Sort(bases)
	for _, base := range slices.Compact(bases) {
		if !left.explain(base) {
			list = append(list, absentFile{
				base: base, path: filepath.Join(o.Dir, segment.Name(base, segment.LogFile, "")),
				indexed: left.has(segment.Name(base, segment.IndexFile, "")) && left.has(segment.Name(base, segment.TimeIndexFile, "")),
			})
		}
	}
	return list
}

// removeOrphans removes index files without a .log file. What explains them must outlive them.
func (r *recovery) removeOrphans(names []string) error {
	l := r.log
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		base, _, _, _ := segment.ParseName(name)
		if slices.ContainsFunc(l.offsets.Load().segments, func(s *segment.Segment) bool { return s.BaseOffset() == base }) {
			continue // it has one now
		}
		if err := removeFiles(l.fs, l.dirLocked(), []string{name}); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.dirLocked())
}

// leftovers are the files of a directory whose names say that something was under way when
// the log stopped (doc/format.md 6.3).
type leftovers struct {
	names                   []string // all names, sorted
	deleted, cleaned, swaps []string
}

func listLeftovers(fsys vfs.FS, dir string) (left leftovers, err error) {
	if left.names, err = listNames(fsys, dir); err != nil {
		return left, err
	}
	for _, name := range left.names {
		switch {
		case strings.HasSuffix(name, segment.DeletedSuffix) && !strings.HasSuffix(name, keptSuffix):
			left.deleted = append(left.deleted, name)
		case strings.HasSuffix(name, segment.CleanedSuffix):
			left.cleaned = append(left.cleaned, name)
		case strings.HasSuffix(name, segment.SwapSuffix):
			left.swaps = append(left.swaps, name)
		}
	}
	return left, nil
}

func listNames(fsys vfs.FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// now returns the names that are in the directory after finishSwaps, nil if it has changed
// something.
func (left *leftovers) now() []string {
	if len(left.cleaned) > 0 || len(left.swaps) > 0 {
		return nil
	}
	return left.names
}

// suspect returns the base of the first segment that was being deleted and still has its
// .log file, but perhaps no indexes any more; the largest int64 if there is none.
func (left *leftovers) suspect() int64 {
	suspect := int64(math.MaxInt64)
	for _, name := range left.deleted {
		if base, _, _, ok := segment.ParseName(name); ok {
			if _, found := slices.BinarySearch(left.names, segment.Name(base, segment.LogFile, "")); found {
				suspect = min(suspect, base)
			}
		}
	}
	return suspect
}

// has reports whether the directory has a file.
func (left *leftovers) has(name string) bool {
	_, found := slices.BinarySearch(left.names, name)
	return found
}

// unindexed returns the bases of .log files that had no .index file, which comes before them.
func (left *leftovers) unindexed() (bases []int64) {
	indexed := int64(-1)
	for _, name := range left.names {
		base, kind, suffix, ok := segment.ParseName(name)
		switch {
		case !ok || suffix != "":
		case kind == segment.IndexFile:
			indexed = base
		case kind == segment.LogFile && base != indexed && !left.explain(base):
			bases = append(bases, base)
		}
	}
	return bases
}

// explain reports whether a segment that has no .log file was on its way out or in.
func (left *leftovers) explain(base int64) bool {
	for _, names := range [][]string{left.deleted, left.cleaned, left.swaps} {
		for _, name := range names {
			if b, _, _, ok := segment.ParseName(name); ok && b == base {
				return true
			}
		}
	}
	return false
}

// finishSwaps brings a directory that a crash left in the middle of replacing segments to
// one side or the other:
//
//	*.cleaned             output not complete: delete
//	*.swap at or above    the output's files were being renamed from .cleaned to .swap,
//	 the lowest .cleaned  highest first: undo, delete
//	*.swap otherwise      complete: delete the originals in its range, rename
func (left *leftovers) finishSwaps(fsys vfs.FS, dir string) error {
	if len(left.cleaned) == 0 && len(left.swaps) == 0 {
		return nil
	}
	minCleaned := int64(math.MaxInt64)
	for _, name := range left.cleaned {
		if offset, ok := checkpoint.LeadingOffset(name); ok {
			minCleaned = min(minCleaned, offset)
		}
	}
	var undone, complete []string
	for _, name := range left.swaps {
		if offset, ok := checkpoint.LeadingOffset(name); ok && offset >= minCleaned {
			undone = append(undone, name)
		} else {
			complete = append(complete, name)
		}
	}
	// Swaps go before the .cleaned files that say they must.
	if err := removeFiles(fsys, dir, undone); err != nil {
		return err
	}
	if err := removeFiles(fsys, dir, left.cleaned); err != nil {
		return err
	}
	if err := replaceOriginals(fsys, dir, complete, left.names); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// removeFiles removes files that may be gone already (KAFKA-6324).
func removeFiles(fsys vfs.FS, dir string, names []string) error {
	for _, name := range names {
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// replaceOriginals deletes the files of segments in the range that the swapped ones cover,
// and gives these their plain names. (KAFKA-12520: producer snapshots stay.)
func replaceOriginals(fsys vfs.FS, dir string, swaps, names []string) error {
	first, end := int64(math.MaxInt64), int64(-1)
	for _, name := range swaps {
		base, kind, _, ok := segment.ParseName(name)
		if !ok || kind != segment.LogFile {
			continue
		}
		next, err := endOfSwap(fsys, dir, base)
		if err != nil {
			return err
		}
		first, end = min(first, base), max(end, next)
	}
	for _, name := range names {
		base, _, suffix, ok := segment.ParseName(name)
		if ok && suffix == "" && base >= first && base < end {
			if err := removeFiles(fsys, dir, []string{name}); err != nil {
				return err
			}
		}
	}
	if err := fsys.SyncDir(dir); err != nil { // indexes that outlive their .log file say that it is lost
		return err
	}
	for _, name := range swaps {
		plain := strings.TrimSuffix(name, segment.SwapSuffix)
		if err := fsys.Rename(filepath.Join(dir, name), filepath.Join(dir, plain)); err != nil {
			return err
		}
	}
	return nil
}

// endOfSwap returns the offset behind the last batch of a segment that is being swapped in.
func endOfSwap(fsys vfs.FS, dir string, base int64) (int64, error) {
	caches := segment.NewCaches() // the segment is closed at once
	c := segment.Config{Suffix: segment.SwapSuffix, ReadOnly: true, Files: caches.Files, Indexes: caches.Indexes}
	s, err := segment.Open(fsys, dir, base, c)
	if err != nil {
		return 0, err
	}
	next, err := s.NextOffset()
	return next, errors.Join(err, s.Close())
}
