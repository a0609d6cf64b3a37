package quorum

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A metadataLog is __cluster_metadata-0 as raft's log store: an entry is a batch. All methods
// may be called concurrently.
type metadataLog struct {
	fs     vfs.FS
	dir    string
	nodeID int32
	static raft.Configuration // the voters that the configuration file names
	ballot *ballot
	now    func() time.Time
	logger *slog.Logger
	fail   *failure

	newBytes atomic.Int64 // written since the last snapshot

	// segmentBytes is the size from which on the next batch begins a segment.
	segmentBytes int64

	// mu guards the fields below. It is held across the removal of what nobody needs, not across
	// writes and syncs: raft stores, truncates and restarts from one goroutine.
	mu struct {
		sync.Mutex
		segments   []*logSegment // ascending by base; the last one is written to
		entries    []entry       // of the indexes [firstIndex, firstIndex+len)
		firstIndex uint64
		firstBase  int64 // offset of the first entry, or the end
		startEpoch int32 // epoch of the batch before it, when the log began at a snapshot
		nextOffset int64

		// epochs are where the epochs begin of all batches that were read or written, also of
		// those that are no entries any more because a snapshot holds them.
		epochs []snapshotID

		snapshot uint64 // index of the newest snapshot

		// anchored: an entry or the snapshot said which index it has.
		anchored bool

		// kraft is what control batches say of the quorum, leader the newest LeaderChange.
		kraft   kraftHistory
		leader  leadership
		joining []metadata.VotersRecordVoter // about to become voters

		// What load found.
		fileEnd   int64 // where the files end, without the torn tail
		fileEpoch int32 // epoch of the last batch in the files, or noEpoch
		torn      *tornTail
		stale     []*logSegment // of what the snapshot holds, with a gap behind them
		replaced  bool          // a received snapshot takes the place of all segments
		marks     map[int64]mark

		// soleVoter is written with the next LeaderChange. Until then what the log says of
		// other voters is history.
		soleVoter *metadata.VotersRecord

		// lost is up to where raft believes that there are entries which a received snapshot
		// has replaced, 0 when there is no such.
		lost uint64
	}
}

// noLeader is that of a log without a LeaderChange.
var noLeader = leadership{id: nobody, offset: -1}

// A leadership is what the newest LeaderChange says.
type leadership struct {
	id     int32 // nobody when there is none
	epoch  int32
	offset int64
	voters []int32
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
	segment *logSegment
	size    int64 // of the file
	why     *CorruptError
}

// A logSegment is one .log file.
type logSegment struct {
	base int64
	file vfs.File
	size int64
}

// An entry is where a batch lies.
type entry struct {
	segment    *logSegment
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
	return l.newBytes.Load()
}

// entryLocked returns the entry with an index, or nil.
func (l *metadataLog) entryLocked(index uint64) *entry {
	if index < l.mu.firstIndex || index >= l.nextIndexLocked() {
		return nil
	}
	return &l.mu.entries[index-l.mu.firstIndex]
}

// GetLog implements raft.LogStore.
func (l *metadataLog) GetLog(index uint64, log *raft.Log) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(index)
	if e == nil {
		return l.getLostLocked(index, log)
	}
	data := e.data
	if data == nil {
		data = make([]byte, e.size)
		if _, err := e.segment.file.ReadAt(data, e.position); err != nil {
			return err
		}
	}
	*log, err = entryOf(index, data)
	if log.Type == raft.LogConfiguration && l.mu.soleVoter != nil {
		log.Type, log.Data, log.Extensions = raft.LogNoop, data, nil
	}
	return err
}

// getLostLocked stands in for entries that a received snapshot has replaced. raft (1.8) still holds
// the end of the log for what it was, compares the leader's entries with what is there, and gives up
// when it cannot read that. An entry of term 0 differs from all, so that raft deletes it and goes on.
func (l *metadataLog) getLostLocked(index uint64, log *raft.Log) error {
	last := l.mu.firstIndex - 1 // in the snapshot
	if l.mu.lost == 0 || index < last || index > l.mu.lost {
		return raft.ErrLogNotFound
	}
	*log = raft.Log{Index: index, Type: raft.LogNoop}
	if index == last {
		log.Term = uint64(l.mu.startEpoch)
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

// placeOf returns what a snapshot that holds everything up to an entry is called and says, and the
// time of the entry. A zero index is that of nothing.
func (l *metadataLog) placeOf(index uint64) (s snapshot, timestamp int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(index)
	if e == nil {
		return s, 0, fmt.Errorf("index %d: %w", index, raft.ErrLogNotFound)
	}
	header := make(record.Batch, record.HeaderSize)
	if _, err := e.segment.file.ReadAt(header, e.position); err != nil {
		return s, 0, err
	}
	return snapshot{id: snapshotID{e.nextOffset, e.epoch}, index: index, kraft: l.mu.kraft.at(index)}, header.MaxTimestamp(), nil
}

// has reports whether the entry with an index is there and of a term.
func (l *metadataLog) has(index, term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(index)
	return e != nil && uint64(e.epoch) == term
}

// indexBeforeLocked returns the index of the entry that ends at an offset.
func (l *metadataLog) indexBeforeLocked(offset int64) (uint64, error) {
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
	return max(l.lastEpochLocked(), 0)
}

// lastEpochLocked returns the epoch of the last entry, or noEpoch.
func (l *metadataLog) lastEpochLocked() int32 {
	if len(l.mu.entries) == 0 {
		return noEpoch
	}
	return l.mu.entries[len(l.mu.entries)-1].epoch
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

// snapshotTaken notes that there is a snapshot up to an entry, and restarts the count of bytes since.
func (l *metadataLog) snapshotTaken(index uint64) {
	l.newBytes.Store(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.snapshot = index
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

// noteCheckpoint keeps what a bootstrap checkpoint says about the quorum, unless the log says
// something, and returns what held before the log.
func (l *metadataLog) noteCheckpoint(c checkpointData) kraftState {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.kraft.at(0)
	if s.version == nil && s.voters == nil {
		s = kraftState{version: c.kraftVersion, voters: c.voters, votersOffset: -1}
		l.mu.kraft.startAt(s)
	}
	return s
}

// voters returns the voters that the log or the newest snapshot names, nil when they do not.
func (l *metadataLog) voters() *metadata.VotersRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.kraft.newest().voters
}

// level returns the kraft.version: from 1 on voters are in the log.
func (l *metadataLog) level() int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.kraft.newest().level()
}

// configuration returns who votes.
func (l *metadataLog) configuration() raft.Configuration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.kraft.newest().configuration(l.static)
}

// appoint makes somebody the only voter: the next LeaderChange says so too.
func (l *metadataLog) appoint(sole *metadata.VotersRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.mu.kraft {
		l.mu.kraft[i].voters = sole
	}
	l.mu.soleVoter = sole
}
