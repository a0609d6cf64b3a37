package quorum

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A metadataLog is __cluster_metadata-0 as raft's log store: an entry is a batch. All methods
// may be called concurrently.
type metadataLog struct {
	fs     vfs.FS
	dir    string
	nodeID int32
	now    func() time.Time
	logger *slog.Logger
	fail   *failure

	// segmentBytes is the size from which on the next batch begins a segment.
	segmentBytes int64

	// mu guards the fields below. It is held across writes and syncs: raft writes from one
	// goroutine, and others wait only to read what it wrote.
	mu struct {
		sync.Mutex
		segments   []*segment // ascending by base; the last one is written to
		entries    []entry    // of the indexes [firstIndex, firstIndex+len)
		firstIndex uint64
		firstBase  int64 // offset of the first entry, or the end
		nextOffset int64
		nextBytes  int64 // written since the last snapshot

		// epochs are where the epochs begin of all batches that were read or written, also of
		// those that are no entries any more because a snapshot holds them.
		epochs []snapshotID

		// What load found. kraft is every KRAFT_VERSION and KRAFT_VOTERS, the newest last, and
		// leader the newest LeaderChange.
		kraft       []controlRecord
		votersAt    int64 // offset of the batch with the newest KRAFT_VOTERS
		leader      *metadata.LeaderChangeMessage
		leaderEpoch int32
		fileEnd     int64 // where the files end, without the torn tail
		fileEpoch   int32 // epoch of the last batch in the files, or noEpoch
		torn        *tornTail
		stale       []*segment // of what the snapshot holds, with a gap behind them
		marks       map[int64]mark

		// soleVoter is written with the next LeaderChange.
		soleVoter *metadata.VotersRecord
	}
}

// noEpoch is the epoch of a batch that is not there.
const noEpoch = -1

// A mark is what the batch before an offset is like.
type mark struct {
	epoch     int32
	timestamp int64
}

// A tornTail is what lies behind the last good batch.
type tornTail struct {
	segment *segment
	size    int64 // of the file
	why     *CorruptError
}

// A segment is one .log file.
type segment struct {
	base int64
	file vfs.File
	size int64
}

// An entry is where a batch lies.
type entry struct {
	segment    *segment
	position   int64
	size       int32
	epoch      int32
	nextOffset int64
	control    bool
	data       []byte // of an entry that load found, until forgetData
}

// lastIndexLocked returns 0 when there is no entry, as raft wants it.
func (l *metadataLog) lastIndexLocked() uint64 {
	if len(l.mu.entries) == 0 {
		return 0
	}
	return l.mu.firstIndex + uint64(len(l.mu.entries)) - 1
}

// nextIndexLocked is the index of the next entry.
func (l *metadataLog) nextIndexLocked() uint64 { return l.mu.firstIndex + uint64(len(l.mu.entries)) }

// FirstIndex implements raft.LogStore.
func (l *metadataLog) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.entries) == 0 {
		return 0, nil
	}
	return l.mu.firstIndex, nil
}

// LastIndex implements raft.LogStore.
func (l *metadataLog) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastIndexLocked(), nil
}

// IsMonotonic implements raft.MonotonicLogStore: indexes have no gaps.
func (l *metadataLog) IsMonotonic() bool { return true }

// NextOffset returns the offset of the next record.
func (l *metadataLog) NextOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.nextOffset
}

// bytesSinceSnapshot returns how much the log has grown.
func (l *metadataLog) bytesSinceSnapshot() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.nextBytes
}

// entryLocked returns the entry with an index, or nil.
func (l *metadataLog) entryLocked(index uint64) *entry {
	if index < l.mu.firstIndex || index >= l.nextIndexLocked() {
		return nil
	}
	return &l.mu.entries[index-l.mu.firstIndex]
}

// GetLog implements raft.LogStore.
func (l *metadataLog) GetLog(index uint64, log *raft.Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(index)
	if e == nil {
		return raft.ErrLogNotFound
	}
	data := e.data
	if data == nil {
		data = make([]byte, e.size)
		if _, err := e.segment.file.ReadAt(data, e.position); err != nil {
			return err
		}
	}
	*log = raft.Log{Index: index, Term: uint64(e.epoch), Type: raft.LogCommand, Data: data}
	if e.control {
		log.Type = raft.LogNoop
	}
	return nil
}

// loaded yields the entries that load found, with their indexes.
func (l *metadataLog) loaded() iter.Seq2[uint64, *entry] {
	return func(yield func(uint64, *entry) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range l.mu.entries {
			if !yield(l.mu.firstIndex+uint64(i), &l.mu.entries[i]) {
				return
			}
		}
	}
}

// mark returns what load found before an offset that it was given.
func (l *metadataLog) mark(offset int64) mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, ok := l.mu.marks[offset]; ok {
		return m
	}
	return mark{epoch: noEpoch}
}

// offsetAfter returns the offset behind an entry and its epoch: the name of a snapshot that
// holds everything up to the entry.
func (l *metadataLog) offsetAfter(index uint64) (snapshotID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(index)
	if e == nil {
		return snapshotID{}, fmt.Errorf("index %d: %w", index, raft.ErrLogNotFound)
	}
	return snapshotID{e.nextOffset, e.epoch}, nil
}

// indexBefore returns the index of the entry that ends at an offset.
func (l *metadataLog) indexBefore(offset int64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset == l.mu.firstBase {
		return l.mu.firstIndex - 1, nil
	}
	i, ok := slices.BinarySearchFunc(l.mu.entries, offset, func(e entry, o int64) int {
		switch {
		case e.nextOffset < o:
			return -1
		case e.nextOffset > o:
			return 1
		}
		return 0
	})
	if !ok {
		return 0, fmt.Errorf("no batch ends before offset %d", offset)
	}
	return l.mu.firstIndex + uint64(i), nil
}

// lastCommand returns the index of the last batch of metadata records, 0 when there is none.
func (l *metadataLog) lastCommand() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.mu.entries) - 1; i >= 0; i-- {
		if !l.mu.entries[i].control {
			return l.mu.firstIndex + uint64(i)
		}
	}
	return 0
}

// epochStarts returns the first offset of each epoch in the files.
func (l *metadataLog) epochStarts() []snapshotID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.epochs)
}

// lastEpoch returns the epoch of the last batch, 0 when there is none.
func (l *metadataLog) lastEpoch() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.entries) == 0 {
		return 0
	}
	return l.mu.entries[len(l.mu.entries)-1].epoch
}

// StoreLog implements raft.LogStore.
func (l *metadataLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. It stamps offset and epoch into the Data of commands, and
// writes and syncs one batch after the other: see the package's rule on torn tails.
func (l *metadataLog) StoreLogs(logs []*raft.Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range logs {
		if err := l.fail.get(); err != nil {
			return err
		}
		if err := l.storeLocked(log); err != nil {
			l.fail.set(err)
			return err
		}
	}
	return nil
}

func (l *metadataLog) storeLocked(log *raft.Log) error {
	if want := l.nextIndexLocked(); log.Index != want {
		return fmt.Errorf("raft stores index %d, want %d", log.Index, want)
	}
	batch, err := l.batchOf(log)
	if err != nil {
		return err
	}
	batch.SetBaseOffset(l.mu.nextOffset)
	batch.SetLeaderEpoch(int32(log.Term))
	if err := l.maybeRollLocked(); err != nil {
		return err
	}
	s := l.mu.segments[len(l.mu.segments)-1]
	if _, err := s.file.WriteAt(batch, s.size); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	l.addLocked(s, batch, s.size)
	s.size += int64(batch.Size())
	return nil
}

// forgetData drops the bytes of the entries that load read, when they are applied. The control
// batches keep theirs: whether raft has passed those behind the last command nobody is told, and
// raft panics when it cannot read an entry.
func (l *metadataLog) forgetData() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.mu.entries {
		if e := &l.mu.entries[i]; !e.control {
			e.data = nil
		}
	}
}

// addLocked makes a batch that lies in the file an entry.
func (l *metadataLog) addLocked(s *segment, batch record.Batch, position int64) {
	if n := len(l.mu.epochs); n == 0 || l.mu.epochs[n-1].epoch != batch.LeaderEpoch() {
		l.mu.epochs = append(l.mu.epochs, snapshotID{batch.BaseOffset(), batch.LeaderEpoch()})
	}
	l.mu.entries = append(l.mu.entries, entry{
		segment: s, position: position, size: int32(batch.Size()), epoch: batch.LeaderEpoch(), nextOffset: batch.NextOffset(), control: batch.IsControl(),
	})
	l.mu.nextOffset = batch.NextOffset()
	l.mu.nextBytes += int64(batch.Size())
}

// batchOf returns the batch of an entry. A no-op begins a term and says who leads.
func (l *metadataLog) batchOf(log *raft.Log) (record.Batch, error) {
	switch log.Type {
	case raft.LogCommand:
		batch, err := record.First(log.Data)
		if err != nil {
			return nil, err
		}
		if batch.Size() != len(log.Data) {
			return nil, errors.New("an entry is not one batch")
		}
		return batch, nil
	case raft.LogNoop:
		voters := l.mu.soleVoter
		l.mu.soleVoter = nil
		return leaderChange(l.nodeID, voters, int32(log.Term), l.now().UnixMilli())
	}
	return nil, fmt.Errorf("entry of type %v has no place in the metadata log", log.Type)
}

// maybeRollLocked begins a segment when the last one is full or there is none.
func (l *metadataLog) maybeRollLocked() error {
	if n := len(l.mu.segments); n > 0 && l.mu.segments[n-1].size < l.segmentBytes {
		return nil
	}
	path := filepath.Join(l.dir, segmentName(l.mu.nextOffset))
	file, err := l.createSegment(path)
	if vfs.FaultOf(err) == vfs.ProcessFault && len(l.mu.segments) > 0 {
		l.logger.Warn("the metadata log goes on in its full segment", "err", err)
		return nil // which has its descriptor
	}
	if err != nil {
		return err
	}
	l.mu.segments = append(l.mu.segments, &segment{base: l.mu.nextOffset, file: file})
	return nil
}

func (l *metadataLog) createSegment(path string) (vfs.File, error) {
	file, err := l.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return nil, errors.Join(err, file.Close(), l.fs.Remove(path))
	}
	return file, nil
}

// DeleteRange implements raft.LogStore: it removes entries from the front, after a snapshot, or
// from the end, when another leader's log differs.
func (l *metadataLog) DeleteRange(first, last uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, last = max(first, l.mu.firstIndex), min(last, l.lastIndexLocked())
	switch {
	case len(l.mu.entries) == 0 || first > last:
		return nil
	case first == l.mu.firstIndex:
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
	stem := segmentName(base)
	stem = stem[:len(stem)-len(logSuffix)]
	for _, suffix := range []string{logSuffix, ".index", ".timeindex", ".txnindex", ".snapshot"} {
		if err := l.fs.Remove(filepath.Join(l.dir, stem+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// truncateLocked keeps n entries.
func (l *metadataLog) truncateLocked(n int) error {
	e := l.mu.entries[n]
	for {
		s := l.mu.segments[len(l.mu.segments)-1]
		if s == e.segment {
			break
		}
		l.mu.segments = l.mu.segments[:len(l.mu.segments)-1]
		if err := errors.Join(s.file.Close(), l.removeSegment(s.base)); err != nil {
			return err
		}
	}
	e.segment.size = e.position
	l.mu.entries = l.mu.entries[:n]
	l.mu.nextOffset = l.mu.firstBase
	if n > 0 {
		l.mu.nextOffset = l.mu.entries[n-1].nextOffset
	}
	l.mu.epochs = slices.DeleteFunc(l.mu.epochs, func(start snapshotID) bool { return start.endOffset >= l.mu.nextOffset })
	return errors.Join(e.segment.file.Truncate(e.position), e.segment.file.Sync())
}

// start returns the offset of the first batch in the files.
func (l *metadataLog) start() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.segments) == 0 {
		return l.mu.nextOffset
	}
	return l.mu.segments[0].base
}

// snapshotTaken restarts the count of bytes since the last snapshot.
func (l *metadataLog) snapshotTaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.nextBytes = 0
}

// close closes the files. Everything in them is synced.
func (l *metadataLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range slices.Concat(l.mu.stale, l.mu.segments) {
		errs = append(errs, s.file.Close())
	}
	l.mu.stale, l.mu.segments, l.mu.entries = nil, nil, nil
	return errors.Join(errs...)
}
