package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// DeleteRange implements raft.LogStore: it removes entries from the front, after a snapshot, or
// from the end, when another leader's log differs; all of them are the front if the snapshot has them,
// or else the end. A file that cannot be changed ends all writing.
func (l *metadataLog) DeleteRange(first, last uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fail.get(); err != nil {
		return err
	}
	err := l.deleteLocked(first, last)
	if err != nil {
		l.fail.set(err)
	}
	return err
}

func (l *metadataLog) deleteLocked(first, last uint64) error {
	l.mu.lost = 0
	first, last = max(first, l.mu.firstIndex), min(last, l.lastIndexLocked())
	switch {
	case len(l.mu.entries) == 0 || first > last:
		return nil
	case first == l.mu.firstIndex && (last < l.lastIndexLocked() || last <= l.mu.snapshot):
		return l.deleteFrontLocked(int(last - first + 1))
	case last == l.lastIndexLocked():
		return l.truncateLocked(int(first - l.mu.firstIndex))
	}
	return fmt.Errorf("cannot delete entries %d to %d from the middle of the log", first, last)
}

// deleteFrontLocked forgets n entries and removes the segments that hold no other.
func (l *metadataLog) deleteFrontLocked(n int) error {
	l.mu.firstBase = l.mu.entries[n-1].nextOffset
	l.mu.entries = slices.Clone(l.mu.entries[n:])
	l.mu.firstIndex += uint64(n)
	for len(l.mu.segments) > 1 && l.mu.segments[1].base <= l.mu.firstBase {
		s := l.mu.segments[0]
		l.mu.segments = l.mu.segments[1:]
		if err := errors.Join(s.file.Close(), l.removeSegment(s.base)); err != nil {
			return err
		}
	}
	return nil
}

// removeSegment removes a segment's files, those of Kafka's indexes too.
func (l *metadataLog) removeSegment(base int64) error {
	for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile, segment.TxnIndexFile, checkpoint.ProducersSuffix} {
		if err := l.fs.Remove(filepath.Join(l.dir, segment.Name(base, kind, ""))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// truncateLocked keeps n entries. What says that there were more goes first.
func (l *metadataLog) truncateLocked(n int) error {
	e := l.mu.entries[n]
	end := l.mu.firstBase
	if n > 0 {
		end = l.mu.entries[n-1].nextOffset
	}
	if err := l.unprove(end); err != nil {
		return err
	}
	for {
		s := l.mu.segments[len(l.mu.segments)-1]
		if s == e.segment {
			break
		}
		l.mu.segments = l.mu.segments[:len(l.mu.segments)-1]
		// Synced one by one: a later segment that a crash brings back would follow on nothing.
		if err := errors.Join(s.file.Close(), l.removeSegment(s.base), l.fs.SyncDir(l.dir)); err != nil {
			return err
		}
	}
	e.segment.size = e.position
	for _, gone := range l.mu.entries[n:] {
		l.newBytes.Add(-int64(gone.size))
	}
	l.mu.entries, l.mu.nextOffset = l.mu.entries[:n], end
	l.mu.kraft.cut(l.nextIndexLocked())
	if l.mu.leader.offset >= end {
		l.mu.leader = noLeader
	}
	l.mu.epochs = slices.DeleteFunc(l.mu.epochs, func(start snapshotID) bool { return start.endOffset >= l.mu.nextOffset })
	return errors.Join(e.segment.file.Truncate(e.position), e.segment.file.Sync())
}

// unprove takes away what the files beside the log prove of its end, where the log is to end before:
// what was never committed may go, and later starts must not miss it.
func (l *metadataLog) unprove(end int64) error {
	list, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if at, ok := checkpoint.ParseProducersName(e.Name()); ok && at > end {
			if err := l.fs.Remove(filepath.Join(l.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(l.dir, checkpoint.LeaderEpochs)
	epochs, err := checkpoint.ReadEpochs(l.fs, path)
	if err != nil { // missing or damaged: it proves nothing
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(epochs), func(e checkpoint.EpochEntry) bool { return e.StartOffset >= end })
	if len(kept) < len(epochs) {
		return checkpoint.WriteEpochs(l.fs, path, kept)
	}
	return l.fs.SyncDir(l.dir)
}

// restart empties the log and lets it go on behind a received snapshot, whose name says that it takes
// the place of the log. The empty segment says that nothing is missing behind it.
func (l *metadataLog) restart(s snapshot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.lost = l.lastIndexLocked()
	var errs []error
	for _, seg := range slices.Backward(l.mu.segments) {
		errs = append(errs, seg.file.Close(), l.removeSegment(seg.base))
	}
	l.mu.segments = nil
	l.newBytes.Store(0)
	l.beginLocked(s)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.addSegmentLocked()
}

// beginLocked makes a snapshot what is before the first entry.
func (l *metadataLog) beginLocked(s snapshot) {
	l.mu.nextOffset = s.id.endOffset
	l.restartLocked()
	l.mu.startEpoch = s.id.epoch
	if s.index > 0 {
		l.mu.firstIndex, l.mu.anchored = s.index+1, true
	}
	l.mu.snapshot = s.index
	l.mu.kraft, l.mu.leader = kraftHistory{s.kraft}, noLeader
}
