package commitlog

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// An EpochCache knows at which offset each leader epoch began. Replicas compare theirs to
// find where their logs part. (Kafka class LeaderEpochFileCache, KIP-101.)
//
// Changes are made by the log under its mutex; look-ups take no lock. A change is in
// memory at once and in the file after sync, which the log calls outside its mutex and
// before the change matters: before an append is acknowledged and before the recovery
// point passes it. What a crash takes from the file, recovery finds in the batches again.
//
// The epoch of the leader is in no entry before something is written in it: until then it begins
// at the log end, wherever that is, and the metadata knows it (doc/decisions/0010).
//
// Invariant: epochs and start offsets both ascend strictly.
type EpochCache struct {
	fs   vfs.FS
	path string

	// entries is replaced by the writer, never modified.
	entries atomic.Pointer[[]checkpoint.EpochEntry]
	dirty   atomic.Bool  // entries are newer than the file
	entered atomic.Int32 // epoch that the leader has entered, -1 for none
	proven  atomic.Bool  // the batches agree, see Log.provenEpochs

	file sync.Mutex // held while the file is written
}

func newEpochCache(fsys vfs.FS, path string) *EpochCache {
	c := &EpochCache{fs: fsys, path: path}
	c.entered.Store(-1)
	c.store(nil)
	return c
}

// openEpochCache reads the file. Entries that contradict a later one are dropped. With an error comes a
// cache as well if the file has told all the same.
func openEpochCache(fsys vfs.FS, path string) (*EpochCache, error) {
	entries, err := checkpoint.ReadEpochs(fsys, path)
	if !checkpoint.Whole(err) {
		return nil, err
	}
	c := newEpochCache(fsys, path)
	for _, e := range entries {
		c.assign(e.Epoch, e.StartOffset)
	}
	c.dirty.Store(err != nil || len(c.list()) != len(entries))
	return c, err
}

func (c *EpochCache) list() []checkpoint.EpochEntry { return *c.entries.Load() }

func (c *EpochCache) store(entries []checkpoint.EpochEntry) {
	c.entries.Store(&entries)
	c.dirty.Store(true)
}

// sync makes the file say what the cache says.
func (c *EpochCache) sync() error {
	if !c.dirty.Load() {
		return nil
	}
	c.file.Lock()
	defer c.file.Unlock()
	if !c.dirty.Swap(false) {
		return nil
	}
	if err := checkpoint.WriteEpochs(c.fs, c.path, c.list()); err != nil {
		c.dirty.Store(true)
		return err
	}
	return nil
}

// assign notes that epoch begins at offset start. It drops from the end what contradicts
// that: entries of the same or a later epoch, or from start on.
func (c *EpochCache) assign(epoch int32, start int64) {
	if epoch < 0 || start < 0 {
		return
	}
	if c.entered.Load() > epoch {
		c.entered.Store(-1)
	}
	entries := c.list()
	n := len(entries)
	if n > 0 && entries[n-1].Epoch == epoch && entries[n-1].StartOffset <= start {
		return
	}
	for n > 0 && (entries[n-1].Epoch >= epoch || entries[n-1].StartOffset >= start) {
		n--
	}
	c.store(append(slices.Clone(entries[:n]), checkpoint.EpochEntry{Epoch: epoch, StartOffset: start}))
}

// enter notes that the log has a leader in epoch from its end on. If an entry knows a later one,
// which no leader was in, it goes.
func (c *EpochCache) enter(epoch int32, logEnd int64) {
	if e, ok := c.latest(); ok && e.Epoch > epoch {
		c.assign(epoch, logEnd)
	}
	c.entered.Store(epoch)
}

// latest returns the last entry.
func (c *EpochCache) latest() (checkpoint.EpochEntry, bool) {
	entries := c.list()
	if len(entries) == 0 {
		return checkpoint.EpochEntry{}, false
	}
	return entries[len(entries)-1], true
}

// latestEpoch returns the last epoch, -1 when there is none.
func (c *EpochCache) latestEpoch() int32 {
	epoch := c.entered.Load()
	if e, ok := c.latest(); ok {
		epoch = max(epoch, e.Epoch)
	}
	return epoch
}

// view returns the entries, and the epoch at the log end in which nothing was written yet, or -1.
// That one takes the place of an entry there.
func (c *EpochCache) view(logEnd int64) (entries []checkpoint.EpochEntry, idle int32) {
	idle, entries = c.entered.Load(), c.list()
	n := len(entries)
	if n > 0 && entries[n-1].Epoch >= idle {
		return entries, -1
	}
	if idle >= 0 && n > 0 && entries[n-1].StartOffset >= logEnd {
		n, _ = searchStart(entries, logEnd)
	}
	return entries[:n], idle
}

// endOffset answers OffsetForLeaderEpoch: the largest epoch that is not above the asked
// one, and the offset where it ended. Both are -1 when the log cannot tell.
func (c *EpochCache) endOffset(epoch int32, logEnd int64) (int32, int64) {
	entries, latest := c.view(logEnd)
	n := len(entries)
	if latest < 0 && n > 0 {
		latest = entries[n-1].Epoch
	}
	switch {
	case epoch < 0 || epoch > latest:
		return -1, -1
	case epoch == latest:
		return epoch, logEnd
	}
	i, found := slices.BinarySearchFunc(entries, epoch, func(e checkpoint.EpochEntry, epoch int32) int {
		return int(int64(e.Epoch) - int64(epoch))
	})
	if found {
		i++
	}
	end := logEnd // unless entries[i] is the first of a higher epoch
	if i < n {
		end = entries[i].StartOffset
	}
	if i == 0 {
		return epoch, end
	}
	return entries[i-1].Epoch, end
}

// epochFor returns the epoch in which offset was or will be written.
func (c *EpochCache) epochFor(offset, logEnd int64) (int32, bool) {
	entries, idle := c.view(logEnd)
	if idle >= 0 && offset >= logEnd {
		return idle, true
	}
	i, found := searchStart(entries, offset)
	if found {
		i++
	}
	if i == 0 {
		return -1, false
	}
	return entries[i-1].Epoch, true
}

// truncateFromEnd drops the epochs that begin at end or later, and so that of the leader.
func (c *EpochCache) truncateFromEnd(end int64) {
	c.entered.Store(-1)
	entries := c.list()
	if i, _ := searchStart(entries, end); i < len(entries) {
		c.store(slices.Clone(entries[:i]))
	}
}

// truncateFromStart drops the epochs that ended before start; the one that holds start
// begins there now.
func (c *EpochCache) truncateFromStart(start int64) {
	entries := c.list()
	i, found := searchStart(entries, start)
	if i == 0 {
		return
	}
	if found {
		c.store(slices.Clone(entries[i:]))
		return
	}
	kept := slices.Clone(entries[i-1:])
	kept[0].StartOffset = start
	c.store(kept)
}

func (c *EpochCache) clear() {
	c.entered.Store(-1)
	if len(c.list()) > 0 {
		c.store(nil)
	}
}

// searchStart returns the index of the first entry that begins at offset or later.
func searchStart(entries []checkpoint.EpochEntry, offset int64) (int, bool) {
	return slices.BinarySearchFunc(entries, offset, func(e checkpoint.EpochEntry, offset int64) int {
		switch {
		case e.StartOffset < offset:
			return -1
		case e.StartOffset > offset:
			return 1
		}
		return 0
	})
}
