package segment

import (
	"io"
	"math"
	"sync/atomic"
)

// pieceSize is how many bytes of index entries are gathered before they are written to the
// files of the active segment.
const pieceSize = 4 << 10

// indexes are the two sparse indexes of a segment in memory. Readers use them without a lock;
// they are changed by appendTo, under Segment.index.
type indexes struct {
	offsets atomic.Pointer[table[offsetEntry]]
	times   atomic.Pointer[table[timeEntry]]

	// built says that the entries were made from the .log file, by this process. Others were
	// read, and are checked against the batch they lead to whenever they are used.
	built bool

	// partial says that they end where a batch is damaged: no Guard had been called yet.
	partial bool

	// slot is in the index cache while the indexes can be read again from the files.
	slot slot
}

func newIndexes(offsets []offsetEntry, times []timeEntry) *indexes {
	idx := &indexes{}
	idx.offsets.Store(newTable(offsets))
	idx.times.Store(newTable(times))
	idx.slot.index = -1
	return idx
}

// lastOffset returns the last entry of the offset index, or what the first one has to follow.
func (idx *indexes) lastOffset() offsetEntry {
	if v := idx.offsets.Load().view(); len(v) > 0 {
		return v[len(v)-1]
	}
	return beforeOffsets
}

// lastTime returns the last entry of the time index, or what the first one has to follow.
func (idx *indexes) lastTime() timeEntry {
	if v := idx.times.Load().view(); len(v) > 0 {
		return v[len(v)-1]
	}
	return beforeTimes
}

// An IndexCache bounds the memory for the indexes of segments that nobody appends to. They are
// read when they are needed. All methods are safe for concurrent use.
type IndexCache struct{ cache clockCache }

// NewIndexCache returns a cache that holds at most maxBytes of index entries.
func NewIndexCache(maxBytes int64) *IndexCache { return &IndexCache{clockCache{budget: maxBytes}} }

// DropIdle drops the indexes that nobody has used since the last call.
func (c *IndexCache) DropIdle() { c.cache.evictIdle() }

// Size returns how many indexes are cached, and their size in bytes.
func (c *IndexCache) Size() (count int, bytes int64) { return c.cache.len() }

// indexes returns the indexes, and reads them if they are not in memory.
func (s *Segment) indexes() (*indexes, error) {
	if idx := s.idx.Load(); idx != nil {
		idx.slot.use()
		return idx, nil
	}
	s.index.Lock()
	defer s.index.Unlock()
	return s.loadLocked()
}

func (s *Segment) loadLocked() (*indexes, error) {
	if idx := s.idx.Load(); idx != nil {
		return idx, nil
	}
	size := s.size.Load()
	offsets, found, sound, err := offsetLayout.load(s, func(e offsetEntry) bool { return int64(e.position) < size })
	if err != nil {
		return nil, err
	}
	times, timesFound, timesSound, err := timeLayout.load(s, func(timeEntry) bool { return true })
	if err != nil {
		return nil, err
	}
	if !found && size > 0 || !timesFound && size > 0 || !sound || !timesSound || len(times) == 0 && s.hasTimestamp() {
		return s.rebuildLocked()
	}
	idx := newIndexes(offsets, times)
	s.index.stored.offsets, s.index.stored.times = len(offsets), len(times)
	s.idx.Store(idx)
	s.cacheLocked(idx)
	return idx, nil
}

// hasTimestamp reports whether the first batch has one, so that there is an entry for it or for a
// later one.
func (s *Segment) hasTimestamp() bool {
	fr, err := s.frameAt(0)
	return err == nil && fr.maxTimestamp >= 0
}

// cacheLocked lets the index cache drop indexes that are stored, unless somebody appends. They
// are not in the cache yet.
func (s *Segment) cacheLocked(idx *indexes) {
	if s.index.owned || s.index.dirty {
		return
	}
	bytes := int64(cap(idx.offsets.Load().entries))*8 + int64(cap(idx.times.Load().entries))*16
	idx.slot.cost = max(bytes, 64)
	idx.slot.drop = func() evict {
		s.idx.CompareAndSwap(idx, nil)
		return nil
	}
	s.cfg.Indexes.cache.add(&idx.slot)
}

// distrust replaces indexes that led to the wrong place by new ones, made from the log.
func (s *Segment) distrust(idx *indexes) {
	s.index.Lock()
	defer s.index.Unlock()
	if idx.built || s.idx.Load() != idx {
		return
	}
	s.cfg.Indexes.cache.remove(&idx.slot)
	// A log that cannot be read is reported by the scan that follows.
	_, _ = s.rebuildLocked()
}

// rebuildLocked makes the indexes from the headers in the log, up to the first place that is
// not the next batch; of a guarded segment, from all that is good. They are written when the segment is sealed or closed,
// unless the files know of batches that are lost.
func (s *Segment) rebuildLocked() (*indexes, error) {
	f, err := s.log.acquire()
	if err != nil {
		return nil, err
	}
	defer f.release()
	if _, err := s.health.prove(&s.files, f, nil); err != nil {
		return nil, err
	}
	idx := newIndexes(nil, nil)
	idx.built = true
	b := indexBuilder{base: s.base, cfg: &s.cfg, idx: idx, max: unknownMax(s.base)}
	next := s.base
	ended, _, err := s.eachGood(f, 0, s.base-1, func(fr frame) {
		b.add(fr)
		next = fr.last + 1
	})
	if err != nil {
		return nil, err
	}
	idx.partial = !ended && s.health.guard.Load() == nil
	b.addTime(true)
	s.index.stored = storedEntries{}
	s.files.renamed.Store(true) // the files may be missing
	s.idx.Store(idx)
	lost, err := s.noteLostEnd(next)
	s.index.dirty = !lost
	return idx, err
}

// eachGood calls visit with each batch from a position on, behind the offset last, and passes over damage that is
// known. It returns where it stopped, and whether that is the end of the file and not the first place that is not the
// next batch.
func (s *Segment) eachGood(f *openFile, position, last int64, visit func(frame)) (ended bool, stop int64, err error) {
	sc := s.scanner(f)
	defer sc.release()
	for {
		fr, err := sc.at(position)
		if err == io.EOF || isBadFrame(err) || err == nil && !fr.damaged && fr.last <= last {
			return err == io.EOF, position, nil
		}
		if err != nil {
			return false, position, err
		}
		if !fr.damaged {
			visit(fr)
			last = fr.last
		}
		position = fr.end()
	}
}

// forgetPartial drops indexes that were made while damage was the end of the file.
func (s *Segment) forgetPartial() {
	s.index.Lock()
	defer s.index.Unlock()
	idx := s.idx.Load()
	if idx == nil || !idx.partial || s.index.owned {
		return
	}
	s.idx.Store(nil)
	s.index.dirty = false
	s.stamps.forgetMax()
}

// An indexBuilder applies the rule of which batches get an entry: the first one after more than
// IndexIntervalBytes bytes of batches since the last entry.
type indexBuilder struct {
	base  int64
	cfg   *Config
	idx   *indexes
	max   maxTimestamp // of all batches added
	bytes int64        // since the last entry
}

// add enters a batch. Batches whose offset or position no index can hold get no entry, and
// neither does any when an index is full: the log rolls before.
func (b *indexBuilder) add(f frame) (added bool) {
	if f.maxTimestamp > b.max.timestamp {
		b.max = maxTimestamp{timestamp: f.maxTimestamp, offset: f.last}
	}
	if b.bytes > int64(b.cfg.IndexIntervalBytes) && f.position <= math.MaxInt32 && inRange(f.last, b.base) {
		e := offsetEntry{int32(f.last - b.base), int32(f.position)}
		if e.follows(b.idx.lastOffset()) && len(b.idx.offsets.Load().view()) < b.cfg.maxOffsetEntries() {
			appendTo(&b.idx.offsets, e)
			added = true
		}
		b.addTime(false)
		b.bytes = 0
	}
	b.bytes += int64(f.size)
	return added
}

// addTime enters the largest timestamp so far if it is larger than that of the last entry. The
// last slot is for the final entry of a segment.
func (b *indexBuilder) addTime(final bool) {
	if !inRange(b.max.offset, b.base) {
		return
	}
	room := b.cfg.maxTimeEntries()
	if !final {
		room--
	}
	e := timeEntry{b.max.timestamp, int32(b.max.offset - b.base)}
	if e.follows(b.idx.lastTime()) && len(b.idx.times.Load().view()) < room {
		appendTo(&b.idx.times, e)
	}
}

func inRange(offset, base int64) bool {
	return offset >= base && offset-base <= math.MaxInt32
}

// storeLocked writes the entries that are not in the index files yet.
func (s *Segment) storeLocked(trim bool) error {
	if err := s.storeTxnsLocked(); err != nil {
		return err
	}
	if err := s.makeIndexFilesLocked(); err != nil {
		return err
	}
	idx := s.idx.Load()
	offsets, times := idx.offsets.Load().view(), idx.times.Load().view()
	changed, err := offsetLayout.store(s, offsets, s.index.stored.offsets, trim)
	s.index.unsynced = s.index.unsynced || changed
	if err != nil {
		return err
	}
	s.index.stored.offsets = len(offsets)
	changed, err = timeLayout.store(s, times, s.index.stored.times, trim)
	s.index.unsynced = s.index.unsynced || changed
	if err != nil {
		return err
	}
	s.index.stored.times = len(times)
	s.index.dirty = s.index.dirty && !trim
	return nil
}

// maybeStorePieceLocked writes entries once there are enough of them. An error is not lost:
// the entries stay, and Seal or Close meets it again.
func (s *Segment) maybeStorePieceLocked(idx *indexes) {
	if n := len(idx.offsets.Load().view()); (n-s.index.stored.offsets)*offsetEntrySize >= pieceSize {
		_ = s.storeLocked(false)
	}
}

// syncIndexFiles makes the index files durable.
func (s *Segment) syncIndexFiles() error {
	for _, kind := range []Kind{IndexFile, TimeIndexFile} {
		if err := s.files.sync(kind); err != nil {
			return err
		}
	}
	return nil
}
